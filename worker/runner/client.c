/* SPDX-License-Identifier: MIT */
#include "worker/runner/client.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/runner/client_inside.h"

#include <errno.h>
#include <sys/socket.h>

#define READ_BYTES ((size_t)64 * 1024)
#define PING_WAIT_MS 500

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

static enum err_code ask_for(struct runner_client *client, json_t *message, int timeout_ms,
                             json_t **ret_answer, struct err *err)
{
    struct call call = {0};
    bool lost = false;
    int64_t deadline_ms = clock_mono_ms() + timeout_ms;
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
        rc = err_set(err, ERR_TIMEOUT, "no answer from the runner within %d ms", timeout_ms);
    if (rc == ERR_OK && ret_answer)
        *ret_answer = TAKE(call.answer);
    json_decref(call.answer);
    return rc;
}

enum err_code runner_client_ask(struct runner_client *client, json_t *message, json_t **ret_answer,
                                struct err *err)
{
    return ask_for(client, message, client->timeout_ms, ret_answer, err);
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
    enum err_code rc = runner_client_ask(client, json_pack("{s:s}", "op", "list"), &answer, err);
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
    json_int_t until = until_ms;
    /* A runner that hangs hears the pings when it goes on: the later ones must be there by then. */
    int timeout_ms = client->timeout_ms < PING_WAIT_MS ? client->timeout_ms : PING_WAIT_MS;
    return ask_for(client,
                   json_pack("{s:s, s:I, s:i}", "op", "ping", "until_ms", until > 0 ? until : 0,
                             "grace_ms", grace_ms),
                   timeout_ms, NULL, err);
}

enum err_code runner_client_start(struct runner_client *client, const struct runner_start *start,
                                  struct runner_job *ret_job, bool *ret_existing, struct err *err)
{
    json_t *message = NULL;
    json_t *answer = NULL;
    if (client->former && client->confine)
        return err_set(err, ERR_STATE,
                       "the runner (pid %d) is of the version before and cannot confine jobs; one "
                       "of this version takes its place when its last job has ended",
                       (int)client->pid);
    enum err_code rc = protocol_start_json(start, &message, err);
    if (rc == ERR_OK)
        rc = runner_client_ask(client, message, &answer, err);
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
    enum err_code rc = runner_client_ask(client, message, &answer, err);
    if (rc)
        return rc;
    rc = runner_job_parse(json_object_get(answer, "job"), ret_job, err);
    json_decref(answer);
    return rc;
}

enum err_code runner_client_signal(struct runner_client *client, const struct uuid *job,
                                   uint64_t fence, int signal_number, struct err *err)
{
    return runner_client_ask(
        client, with(about("signal", job, fence), "signal", json_integer(signal_number)), NULL,
        err);
}

enum err_code runner_client_kill(struct runner_client *client, const struct uuid *job,
                                 uint64_t fence, int grace_ms, const char *note, struct err *err)
{
    json_t *message = with(about("kill", job, fence), "grace_ms", json_integer(grace_ms));
    return runner_client_ask(client, with(message, "note", json_string(note ? note : "")), NULL,
                             err);
}

enum err_code runner_client_forget(struct runner_client *client, const struct uuid *job,
                                   uint64_t fence, struct err *err)
{
    return runner_client_ask(client, about("forget", job, fence), NULL, err);
}

enum err_code runner_client_forget_soon(struct runner_client *client, const struct uuid *job,
                                        uint64_t fence, struct err *err)
{
    json_t *message = with(about("forget", job, fence), "id", json_integer(0));
    if (!message)
        return err_set(err, ERR_NOMEM, "no memory for a message");
    enum err_code rc = send_frame(client, message, err);
    json_decref(message);
    return rc;
}

/* ---- the client's thread ---- */

/* Hands the message to the caller that waits for it: from then on this thread leaves it alone. */
static void take_answer(struct runner_client *client, json_t **take_message)
{
    json_t *message = TAKE(*take_message);
    json_int_t id = json_integer_value(json_object_get(message, "re"));
    (void)pthread_mutex_lock(&client->lock);
    struct call *call = client->calls;
    while (call && call->id != id)
        call = call->next;
    if (call && !call->answer) { /* else it came too late for its caller */
        call->answer = TAKE(message);
        (void)pthread_cond_signal(&call->done);
    }
    (void)pthread_mutex_unlock(&client->lock);
    json_decref(message);
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
            take_answer(client, &message);
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

void *runner_client_main(void *arg)
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
