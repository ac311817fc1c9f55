/* SPDX-License-Identifier: MIT */
#include "worker/runner/client.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "worker/runner/protocol.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 5000
#define RETRY_US 20000
#define READ_BYTES ((size_t)64 * 1024)
#define EXIT_LOCKED 75 /* the runner's: another one lives, or is about to end */

extern char **environ;

/* A request that waits for its answer. */
struct call {
    struct call *next;
    json_int_t id;
    json_t *answer; /* NULL until it is there */
    pthread_cond_t done;
};

struct runner_client {
    int fd;
    pid_t pid;
    int timeout_ms;
    struct runner_callbacks callbacks;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t send_lock; /* held over send: frames must not mix */
    pthread_mutex_t lock;      /* guards what follows */
    struct call *calls;
    json_int_t last_id;
    bool lost;
    bool closing;
};

/* ---- calls ---- */

static enum err_code send_frame(struct runner_client *client, const json_t *message,
                                struct err *err)
{
    BUF_AUTO struct buf frame = BUF_INIT(RUNNER_REQUEST_MAX + 16);
    enum err_code rc = protocol_pack(&frame, message, RUNNER_REQUEST_MAX, err);
    if (rc)
        return rc;
    size_t sent = 0;
    (void)pthread_mutex_lock(&client->send_lock);
    while (sent < frame.len) {
        ssize_t done = send(client->fd, frame.ptr + sent, frame.len - sent, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            break;
        sent += (size_t)done;
    }
    int error = errno;
    if (sent > 0 && sent < frame.len) /* half a frame: nothing can follow it */
        (void)shutdown(client->fd, SHUT_RDWR);
    (void)pthread_mutex_unlock(&client->send_lock);
    if (sent == frame.len)
        return ERR_OK;
    if (error == EAGAIN)
        return err_set(err, ERR_TIMEOUT, "the runner does not read");
    return err_set_errno(err, ERR_IO, error, "cannot reach the runner");
}

static void call_add(struct runner_client *client, struct call *call)
{
    clock_cond_init(&call->done);
    (void)pthread_mutex_lock(&client->lock);
    call->id = ++client->last_id;
    call->next = client->calls;
    client->calls = call;
    (void)pthread_mutex_unlock(&client->lock);
}

static void call_wait(struct runner_client *client, struct call *call, int64_t deadline_ms)
{
    (void)pthread_mutex_lock(&client->lock);
    while (!call->answer && !client->lost) {
        if (!clock_cond_wait_until(&call->done, &client->lock, deadline_ms))
            break;
    }
    (void)pthread_mutex_unlock(&client->lock);
}

/* ret_lost: no answer can come any more. */
static void call_remove(struct runner_client *client, struct call *call, bool *ret_lost)
{
    (void)pthread_mutex_lock(&client->lock);
    struct call **at = &client->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    *ret_lost = client->lost;
    (void)pthread_mutex_unlock(&client->lock);
    (void)pthread_cond_destroy(&call->done);
}

/* Takes the message; *ret_answer is a new reference, or nothing is wanted of it (NULL). */
static enum err_code ask(struct runner_client *client, json_t *message, json_t **ret_answer,
                         struct err *err)
{
    struct call call = {0};
    bool lost = false;
    int64_t deadline_ms = clock_mono_ms() + client->timeout_ms;
    if (!message)
        return err_set(err, ERR_NOMEM, "no memory for a message, or text that is not UTF-8");
    call_add(client, &call);
    enum err_code rc = ERR_OK;
    if (json_object_set_new(message, "id", json_integer(call.id)) != 0)
        rc = err_set(err, ERR_NOMEM, "no memory for a message");
    if (rc == ERR_OK)
        rc = send_frame(client, message, err);
    json_decref(message);
    if (rc == ERR_OK)
        call_wait(client, &call, deadline_ms);
    call_remove(client, &call, &lost);
    if (rc == ERR_OK && call.answer)
        rc = protocol_answer_error(call.answer, err);
    else if (rc == ERR_OK && lost)
        rc = err_set(err, ERR_IO, "the connection to the runner is lost");
    else if (rc == ERR_OK)
        rc =
            err_set(err, ERR_TIMEOUT, "no answer from the runner within %d ms", client->timeout_ms);
    if (rc == ERR_OK && ret_answer)
        *ret_answer = json_incref(call.answer);
    json_decref(call.answer);
    return rc;
}

pid_t runner_client_pid(const struct runner_client *client)
{
    return client->pid;
}

static enum err_code parse_list(const json_t *list, struct runner_job *jobs, struct err *err)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < json_array_size(list); i++)
        rc = runner_job_parse(json_array_get(list, i), &jobs[i], err);
    return rc;
}

enum err_code runner_client_list(struct runner_client *client, struct runner_job **ret_jobs,
                                 size_t *ret_count, struct err *err)
{
    json_t *answer = NULL;
    enum err_code rc = ask(client, json_pack("{s:s}", "op", "list"), &answer, err);
    if (rc)
        return rc;
    const json_t *list = json_object_get(answer, "jobs");
    size_t count = json_array_size(list);
    struct runner_job *jobs = calloc(count + 1, sizeof(*jobs));
    rc = jobs ? parse_list(list, jobs, err) : err_set(err, ERR_NOMEM, "no memory for the list");
    json_decref(answer);
    if (rc) {
        free(jobs);
        return rc;
    }
    *ret_jobs = jobs;
    *ret_count = count;
    return ERR_OK;
}

enum err_code runner_client_ping(struct runner_client *client, int64_t until_ms, int grace_ms,
                                 struct err *err)
{
    /* In this order: a pause between the two shortens the grant, it never lengthens it. */
    int64_t boot_ms = protocol_boot_ms();
    int64_t left_ms = until_ms - clock_mono_ms();
    json_int_t until = boot_ms + left_ms;
    return ask(client,
               json_pack("{s:s, s:I, s:i}", "op", "ping", "until_ms", until > 0 ? until : 0,
                         "grace_ms", grace_ms),
               NULL, err);
}

enum err_code runner_client_start(struct runner_client *client, const struct runner_start *start,
                                  struct runner_job *ret_job, bool *ret_existing, struct err *err)
{
    json_t *message = NULL;
    json_t *answer = NULL;
    enum err_code rc = protocol_start_json(start, &message, err);
    if (rc == ERR_OK)
        rc = ask(client, message, &answer, err);
    if (rc)
        return rc;
    rc = runner_job_parse(json_object_get(answer, "job"), ret_job, err);
    if (rc == ERR_OK)
        *ret_existing = json_is_true(json_object_get(answer, "existing"));
    json_decref(answer);
    return rc;
}

/* A request about one run, with the members that all of them have. */
static json_t *about(const char *op, const struct uuid *job, uint64_t fence)
{
    char text[UUID_TEXT_SIZE];
    return json_pack("{s:s, s:s, s:I}", "op", op, "job", uuid_text(job, text), "fence",
                     (json_int_t)fence);
}

static json_t *with(json_t *message, const char *name, json_t *value)
{
    if (message && value && json_object_set(message, name, value) == 0) {
        json_decref(value);
        return message;
    }
    json_decref(message);
    json_decref(value);
    return NULL;
}

enum err_code runner_client_adopt(struct runner_client *client, const struct uuid *job,
                                  uint64_t old_fence, uint64_t new_fence,
                                  struct runner_job *ret_job, struct err *err)
{
    json_t *answer = NULL;
    json_t *message =
        with(about("adopt", job, old_fence), "new_fence", json_integer((json_int_t)new_fence));
    enum err_code rc = ask(client, message, &answer, err);
    if (rc)
        return rc;
    rc = runner_job_parse(json_object_get(answer, "job"), ret_job, err);
    json_decref(answer);
    return rc;
}

enum err_code runner_client_signal(struct runner_client *client, const struct uuid *job,
                                   uint64_t fence, int signal_number, struct err *err)
{
    return ask(client, with(about("signal", job, fence), "signal", json_integer(signal_number)),
               NULL, err);
}

enum err_code runner_client_kill(struct runner_client *client, const struct uuid *job,
                                 uint64_t fence, int grace_ms, const char *note, struct err *err)
{
    json_t *message = with(about("kill", job, fence), "grace_ms", json_integer(grace_ms));
    return ask(client, with(message, "note", json_string(note ? note : "")), NULL, err);
}

enum err_code runner_client_forget(struct runner_client *client, const struct uuid *job,
                                   uint64_t fence, struct err *err)
{
    return ask(client, about("forget", job, fence), NULL, err);
}

/* ---- the client's thread ---- */

static void take_answer(struct runner_client *client, json_t *message)
{
    json_int_t id = json_integer_value(json_object_get(message, "re"));
    (void)pthread_mutex_lock(&client->lock);
    struct call *call = client->calls;
    while (call && call->id != id)
        call = call->next;
    if (call && !call->answer) { /* else it came too late for its caller */
        call->answer = json_incref(message);
        (void)pthread_cond_signal(&call->done);
    }
    (void)pthread_mutex_unlock(&client->lock);
}

static void take_event(struct runner_client *client, const json_t *message)
{
    struct runner_record record;
    struct err err = {0};
    if (runner_record_parse(json_object_get(message, "record"), &record, &err) != ERR_OK)
        log_err("runner.event.unreadable", &err);
    else
        client->callbacks.on_exit(client->callbacks.arg, &record);
}

/* All messages that are complete; false: the other side breaks the protocol. */
static bool take_messages(struct runner_client *client, struct buf *in, struct err *err)
{
    for (;;) {
        json_t *message = NULL;
        if (protocol_unpack(in, RUNNER_ANSWER_MAX, &message, err) != ERR_OK)
            return false;
        if (!message)
            return true;
        if (json_object_get(message, "event"))
            take_event(client, message);
        else
            take_answer(client, message);
        json_decref(message);
    }
}

static void end_calls(struct runner_client *client, const struct err *why)
{
    (void)pthread_mutex_lock(&client->lock);
    client->lost = true;
    for (struct call *call = client->calls; call; call = call->next)
        (void)pthread_cond_signal(&call->done);
    bool closing = client->closing;
    (void)pthread_mutex_unlock(&client->lock);
    if (!closing)
        client->callbacks.on_lost(client->callbacks.arg, why);
}

static void *client_main(void *arg)
{
    struct runner_client *client = arg; /* close joins us before it frees it */
    BUF_AUTO struct buf in = BUF_INIT(RUNNER_ANSWER_MAX + READ_BYTES);
    struct err why = {0};
    char *bytes = malloc(READ_BYTES);
    while (bytes) {
        ssize_t got = recv(client->fd, bytes, READ_BYTES, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            (void)err_set_errno(&why, ERR_IO, errno, "cannot read from the runner");
        if (got <= 0 || !buf_add(&in, bytes, (size_t)got) || !take_messages(client, &in, &why))
            break;
    }
    free(bytes);
    (void)err_set(&why, ERR_IO, "the runner ended the connection");
    end_calls(client, &why);
    return NULL;
}

/* ---- opening ---- */

static enum err_code spawn_runner(const struct runner_client_config *cfg, struct err *err)
{
    char *argv[] = {strdup(cfg->runner_path), strdup("--dir"),          strdup(cfg->work_dir),
                    strdup("--name"),         strdup(cfg->worker_name), NULL};
    posix_spawnattr_t attributes;
    sigset_t signals;
    pid_t pid = -1;
    int status = 0;
    (void)posix_spawnattr_init(&attributes);
    (void)sigemptyset(&signals);
    (void)posix_spawnattr_setsigmask(&attributes, &signals);
    (void)sigfillset(&signals);
    (void)posix_spawnattr_setsigdefault(&attributes, &signals);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(&pid, cfg->runner_path, NULL, &attributes, argv, environ);
    (void)posix_spawnattr_destroy(&attributes);
    for (size_t i = 0; i + 1 < ARRAY_LEN(argv); i++)
        free(argv[i]);
    if (error)
        return err_set_errno(err, ERR_CONFIG, error, "cannot start %s", cfg->runner_path);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXIT_LOCKED))
        return ERR_OK;
    return err_set(err, ERR_INTERNAL, "%s did not start (wait status %d)", cfg->runner_path, status);
}

static int connect_at(int work_dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", work_dir,
                   RUNNER_SOCKET);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid())
        return fd;
    fd_close(&fd);
    return -1;
}

static enum err_code start_thread(struct runner_client *client, struct err *err)
{
    sigset_t all;
    sigset_t before;
    struct timeval timeout = {.tv_sec = client->timeout_ms / 1000,
                              .tv_usec = (suseconds_t)(client->timeout_ms % 1000) * 1000};
    (void)setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&client->thread, NULL, client_main, client);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return err_set_errno(err, ERR_IO, error, "cannot start a thread");
    client->has_thread = true;
    return ERR_OK;
}

/* One connection and its greeting; takes fd. */
static enum err_code greet(const struct runner_client_config *cfg,
                           const struct runner_callbacks *callbacks, int *take_fd,
                           struct runner_client **ret_client, struct err *err)
{
    char worker[UUID_TEXT_SIZE];
    json_t *answer = NULL;
    struct runner_client *client = calloc(1, sizeof(*client));
    if (!client) {
        fd_close(take_fd);
        return err_set(err, ERR_NOMEM, "no memory for a client");
    }
    client->fd = *take_fd;
    *take_fd = -1;
    client->timeout_ms = cfg->timeout_ms > 0 ? cfg->timeout_ms : DEFAULT_TIMEOUT_MS;
    client->callbacks = *callbacks;
    client->closing = true; /* on_lost only once open has succeeded */
    (void)pthread_mutex_init(&client->send_lock, NULL);
    (void)pthread_mutex_init(&client->lock, NULL);
    enum err_code rc = start_thread(client, err);
    if (rc == ERR_OK)
        rc = ask(client,
                 json_pack("{s:s, s:i, s:s}", "op", "hello", "version", RUNNER_PROTOCOL, "worker",
                           uuid_text(&cfg->worker_id, worker)),
                 &answer, err);
    if (rc) {
        runner_client_free(client);
        return rc;
    }
    client->pid = (pid_t)json_integer_value(json_object_get(answer, "pid"));
    json_decref(answer);
    *ret_client = client;
    return ERR_OK;
}

/* From now on the loss of the connection is told; ERR_IO if it is lost already. */
static enum err_code arm(struct runner_client *client, struct err *err)
{
    (void)pthread_mutex_lock(&client->lock);
    bool lost = client->lost;
    client->closing = false;
    (void)pthread_mutex_unlock(&client->lock);
    return lost ? err_set(err, ERR_IO, "the runner ended the connection") : ERR_OK;
}

enum err_code runner_client_open(const struct runner_client_config *cfg,
                                 const struct runner_callbacks *callbacks,
                                 struct runner_client **ret_client, struct err *err)
{
    FD_AUTO int work_dir = -1;
    int timeout_ms = cfg->timeout_ms > 0 ? cfg->timeout_ms : DEFAULT_TIMEOUT_MS;
    int64_t deadline_ms = clock_mono_ms() + timeout_ms;
    enum err_code rc = fs_open_dir(cfg->work_dir, false, &work_dir, err);
    if (rc)
        return rc;
    for (;;) {
        struct err why = {0};
        AUTO(runner_client_free) struct runner_client *client = NULL;
        int fd = connect_at(work_dir);
        if (fd >= 0) {
            rc = greet(cfg, callbacks, &fd, &client, &why);
            if (rc == ERR_OK)
                rc = arm(client, &why);
        } else { /* none lives, or it is about to end */
            rc = spawn_runner(cfg, &why);
            if (rc == ERR_OK && clock_mono_ms() < deadline_ms)
                rc = err_set(&why, ERR_IO, "the runner cannot be reached yet");
            else if (rc == ERR_OK)
                rc = err_set(&why, ERR_TIMEOUT, "a runner has the lock of %s but does not listen",
                             cfg->work_dir);
        }
        if (rc == ERR_OK) {
            *ret_client = TAKE(client);
            return ERR_OK;
        }
        /* ERR_IO: it ended while we connected, so a new one is started */
        if (rc != ERR_IO || clock_mono_ms() >= deadline_ms) {
            *err = why;
            return rc;
        }
        (void)usleep(RETRY_US);
    }
}

void runner_client_close(struct runner_client *client, bool stop_if_idle)
{
    struct err ignored = {0};
    if (!client)
        return;
    (void)pthread_mutex_lock(&client->lock);
    client->closing = true;
    (void)pthread_mutex_unlock(&client->lock);
    if (stop_if_idle && client->has_thread &&
        ask(client, json_pack("{s:s}", "op", "bye"), NULL, &ignored) != ERR_OK)
        log_event(LOG_DEBUG, "runner.bye.failed", LOG_S("detail", ignored.text));
    (void)shutdown(client->fd, SHUT_RDWR);
    if (client->has_thread)
        (void)pthread_join(client->thread, NULL);
    fd_close(&client->fd);
    (void)pthread_mutex_destroy(&client->send_lock);
    (void)pthread_mutex_destroy(&client->lock);
    free(client);
}

void runner_client_free(struct runner_client *client)
{
    runner_client_close(client, false);
}
