/* SPDX-License-Identifier: MIT */
#include "worker/runner/client_inside.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "worker/runner/confine.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 5000
#define RETRY_US 20000
#define EXIT_LOCKED 75 /* the runner's: another one lives, or is about to end */

extern char **environ;

/* The runner needs no setting of the worker's, and no secret among them: all but SLUICE_*. */
static char **runner_environ(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **kept = calloc(count + 1, sizeof(*kept));
    for (size_t i = 0, at = 0; kept && i < count; i++) {
        if (strncmp(environ[i], "SLUICE_", 7) != 0 || strncmp(environ[i], "SLUICE_FAULT=", 13) == 0)
            kept[at++] = environ[i];
    }
    return kept;
}

static enum err_code spawn_runner(const struct runner_client_config *cfg, struct err *err)
{
    char *argv[] = {strdup(cfg->runner_path), strdup("--dir"),          strdup(cfg->work_dir),
                    strdup("--name"),         strdup(cfg->worker_name), NULL};
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
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
    char **env = runner_environ();
    int error = env ? posix_spawn_file_actions_init(&actions) : ENOMEM;
    if (!error) {
        error = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
        if (!error)
            error = posix_spawn(&pid, cfg->runner_path, &actions, &attributes, argv, env);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    free(env);
    (void)posix_spawnattr_destroy(&attributes);
    for (size_t i = 0; i + 1 < ARRAY_LEN(argv); i++)
        free(argv[i]);
    if (error)
        return err_set_errno(err, ERR_CONFIG, error,
                             "cannot start %s (worker.runner; empty: the one beside the worker)",
                             cfg->runner_path);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXIT_LOCKED))
        return ERR_OK;
    return err_set(err, ERR_INTERNAL, "%s did not start (wait status %d)", cfg->runner_path,
                   status);
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
    int error = pthread_create(&client->thread, NULL, runner_client_main, client);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return err_set_errno(err, ERR_IO, error, "cannot start a thread");
    client->has_thread = true;
    return ERR_OK;
}

static enum err_code make_hello(const struct runner_client_config *cfg, int work_dir, int version,
                                json_t **ret_hello, struct err *err)
{
    char worker[UUID_TEXT_SIZE];
    BUF_AUTO struct buf secret = BUF_INIT(RUNNER_SECRET_SIZE);
    json_t *hello = json_pack("{s:s, s:i, s:s}", "op", "hello", "version", version, "worker",
                              uuid_text(&cfg->worker_id, worker));
    enum err_code rc = hello ? ERR_OK : err_set(err, ERR_NOMEM, "no memory for a greeting");
    if (rc == ERR_OK && version == RUNNER_PROTOCOL)
        rc = fs_read(work_dir, RUNNER_SECRET, &secret, err);
    if (rc == ERR_OK && version == RUNNER_PROTOCOL) {
        json_t *confine = cfg->confine ? confine_json(cfg->confine) : NULL;
        if (json_object_set_new(hello, "secret", json_string(buf_text(&secret))) != 0 ||
            (cfg->confine && json_object_set_new(hello, "confine", confine) != 0))
            rc = err_set(err, ERR_NOMEM, "no memory for a greeting");
    }
    if (rc) {
        json_decref(hello);
        return rc;
    }
    *ret_hello = hello;
    return ERR_OK;
}

/* One connection and its greeting; takes fd. */
static enum err_code greet(const struct runner_client_config *cfg,
                           const struct runner_callbacks *callbacks, int *take_fd, json_t *hello,
                           struct runner_client **ret_client, struct err *err)
{
    json_t *answer = NULL;
    struct runner_client *client = calloc(1, sizeof(*client));
    if (!client) {
        fd_close(take_fd);
        json_decref(hello);
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
        rc = runner_client_ask(client, hello, &answer, err);
    else
        json_decref(hello);
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

/* It serves us, and ends as soon as none of its jobs runs: then we start one of our version. */
static enum err_code greet_former(const struct runner_client_config *cfg,
                                  const struct runner_callbacks *callbacks, int work_dir,
                                  struct runner_client **ret_client, struct err *err)
{
    AUTO(runner_client_free) struct runner_client *client = NULL;
    json_t *hello = NULL;
    FD_AUTO int fd = connect_at(work_dir);
    if (fd < 0)
        return err_set(err, ERR_IO, "the runner ended the connection");
    enum err_code rc = make_hello(cfg, work_dir, RUNNER_PROTOCOL_FORMER, &hello, err);
    if (rc == ERR_OK)
        rc = greet(cfg, callbacks, &fd, hello, &client, err);
    if (rc || !client)
        return rc;
    log_event(LOG_WARN, "worker.runner.former", LOG_I("pid", client->pid));
    client->former = true;
    rc = runner_client_ask(client, json_pack("{s:s}", "op", "bye"), NULL, err);
    if (rc == ERR_OK)
        *ret_client = TAKE(client);
    return rc;
}

/* One try. ERR_IO: it ended while we connected, or has just been started: try again. */
static enum err_code try_open(const struct runner_client_config *cfg,
                              const struct runner_callbacks *callbacks, int work_dir,
                              struct runner_client **ret_client, struct err *err)
{
    AUTO(runner_client_free) struct runner_client *client = NULL;
    json_t *hello = NULL;
    FD_AUTO int fd = connect_at(work_dir);
    if (fd < 0) {
        enum err_code rc = spawn_runner(cfg, err);
        return rc ? rc
                  : err_set(err, ERR_IO, "a runner has the lock of %s but does not listen",
                            cfg->work_dir);
    }
    enum err_code rc = make_hello(cfg, work_dir, RUNNER_PROTOCOL, &hello, err);
    if (rc == ERR_OK)
        rc = greet(cfg, callbacks, &fd, hello, &client, err);
    if (rc == ERR_PROTOCOL || rc == ERR_NOT_FOUND) { /* it may be of the version before */
        fd_close(&fd);
        err_clear(err);
        rc = greet_former(cfg, callbacks, work_dir, &client, err);
    }
    if (client)
        client->confine = cfg->confine && cfg->confine->mode == RUNNER_CONFINE_REQUIRED;
    if (rc == ERR_OK && client)
        rc = arm(client, err);
    if (rc == ERR_OK)
        *ret_client = TAKE(client);
    return rc;
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
        rc = try_open(cfg, callbacks, work_dir, ret_client, &why);
        if (rc == ERR_OK)
            return ERR_OK;
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
        runner_client_ask(client, json_pack("{s:s}", "op", "bye"), NULL, &ignored) != ERR_OK)
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
