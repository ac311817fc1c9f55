/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/log.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPT_PAUSE_MS 1000
#define STRANGERS_PAUSE_MS 10000
#define READ_BYTES ((size_t)64 * 1024)

static void link_close(struct runner *runner, struct link *link)
{
    link->writing = false;
    runner_unwatch(runner, &link->watch);
    buf_done(&link->in);
    buf_done(&link->out);
}

static void link_flush(struct runner *runner, struct link *link)
{
    size_t sent = 0;
    while (sent < link->out.len) {
        ssize_t done =
            send(link->watch.fd, link->out.ptr + sent, link->out.len - sent, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno != EAGAIN) { /* gone: reading tells, and closes it */
            sent = link->out.len;
            break;
        }
        if (done < 0)
            break;
        sent += (size_t)done;
    }
    if (sent > 0)
        memmove(link->out.ptr, link->out.ptr + sent, link->out.len - sent);
    link->out.len -= sent;
    if (link->writing != (link->out.len > 0)) {
        link->writing = link->out.len > 0;
        runner_rewatch(runner, &link->watch, link->writing);
    }
}

void server_flush(struct runner *runner)
{
    if (runner->peer.watch.fd >= 0 && runner->peer.out.len > 0 && !runner->peer.writing)
        link_flush(runner, &runner->peer);
    if (runner->guest.watch.fd >= 0 && runner->guest.out.len > 0 && !runner->guest.writing)
        link_flush(runner, &runner->guest);
}

/* Takes the reference. */
static void say(struct runner *runner, struct link *link, json_t *message)
{
    struct err err = {0};
    if (link->watch.fd >= 0 &&
        protocol_pack(&link->out, message, RUNNER_ANSWER_MAX, &err) != ERR_OK) {
        log_err("runner.worker.unreachable", &err);
        link_close(runner, link);
    }
    json_decref(message);
}

/* Sends body (taken) as the answer to request id. */
static void answer(struct runner *runner, struct link *link, json_int_t id, json_t *body)
{
    if (body)
        (void)json_object_set_new(body, "re", json_integer(id));
    say(runner, link, body);
}

void server_started(struct runner *runner, struct run *run)
{
    if (run->asked && run->asked_by == runner->peer_generation)
        answer(runner, &runner->peer, run->asked, request_start_answer(run, false));
    run->asked = 0;
}

void server_adopted(struct runner *runner, struct run *run)
{
    if (run->adopting && run->asked_by == runner->peer_generation)
        answer(runner, &runner->peer, run->adopting,
               json_pack("{s:o}", "job", runner_job_json(&run->job)));
    run->adopting = 0;
}

void server_exited(struct runner *runner, struct run *run)
{
    char text[UUID_TEXT_SIZE];
    /* An ordinary end is the worker's to log; this log must not grow with every job. */
    log_event(run->record.reason == RUNNER_NONE ? LOG_DEBUG : LOG_INFO, "runner.run.ended",
              LOG_S("job", uuid_text(&run->job.job, text)), LOG_U("run", run->job.run),
              LOG_I("exit_code", run->record.exit_code), LOG_I("signal", run->record.signal),
              LOG_S("start_error", run->record.start_error),
              LOG_S("reason", runner_reason_text(run->record.reason)));
    if (run->asked && run->asked_by == runner->peer_generation)
        server_started(runner, run);
    else if (runner->peer.watch.fd >= 0)
        say(runner, &runner->peer,
            json_pack("{s:s, s:o}", "event", "exited", "record", runner_record_json(&run->record)));
    run->asked = 0;
}

/* ---- connections ---- */

static enum err_code greet(struct runner *runner, const json_t *message, struct err *err)
{
    int version = 0;
    const char *op = NULL;
    const char *worker = NULL;
    const char *secret = NULL;
    const json_t *confine = NULL;
    json_int_t id = 0;
    json_error_t why;
    union { /* json_unpack only borrows here */
        const json_t *lent;
        json_t *taken;
    } either = {message};
    if (json_unpack_ex(either.taken, &why, JSON_STRICT, "{s:s, s:I, s:i, s:s, s:s, s?o}", "op", &op,
                       "id", &id, "version", &version, "worker", &worker, "secret", &secret,
                       "confine", &confine) != 0)
        return err_set(err, ERR_PROTOCOL, "members of hello: %s", why.text);
    if (strcmp(op, "hello") != 0 || version != RUNNER_PROTOCOL)
        return err_set(err, ERR_PROTOCOL, "hello with version %d was expected", RUNNER_PROTOCOL);
    if (!peer_knows_secret(runner, secret))
        return err_set(err, ERR_FORBIDDEN, "the secret is not the one in %s", RUNNER_SECRET);
    enum err_code rc = confine ? confine_set(runner->confine, confine, err) : ERR_OK;
    if (rc)
        return rc;
    log_event(LOG_INFO, "runner.worker.connected", LOG_S("worker", worker),
              LOG_U("jobs", job_running(runner)));
    return ERR_OK;
}

/* The guest becomes the worker; the former worker, if it is still there, is let go. */
static void welcome(struct runner *runner, json_t *message)
{
    struct err err = {0};
    json_int_t id = json_integer_value(json_object_get(message, "id"));
    if (greet(runner, message, &err) != ERR_OK) {
        log_err("runner.hello.refused", &err);
        say(runner, &runner->guest, protocol_error_json(id, &err));
        link_flush(runner, &runner->guest);
        link_close(runner, &runner->guest);
        return;
    }
    link_close(runner, &runner->peer);
    struct watch watch = runner->peer.watch;
    watch.fd = runner->guest.watch.fd;
    runner->peer = runner->guest;
    runner->peer.watch = watch;
    runner->guest.watch.fd = -1;
    runner->guest.writing = false;
    runner->guest.in = BUF_INIT(runner->peer.in.limit);
    runner->guest.out = BUF_INIT(runner->peer.out.limit);
    runner->peer_generation++;
    runner->leaving = runner->stopping;
    runner_rewatch(runner, &runner->peer.watch, false);
    answer(runner, &runner->peer, id,
           json_pack("{s:i, s:i}", "version", RUNNER_PROTOCOL, "pid", (int)getpid()));
}

/* The messages that are there. A guest that is welcomed hands its bytes to the peer. */
static void take_messages(struct runner *runner, struct link *link)
{
    for (;;) {
        struct err err = {0};
        json_t *message = NULL;
        if (link->watch.fd < 0)
            return;
        if (protocol_unpack(&link->in, RUNNER_REQUEST_MAX, &message, &err) != ERR_OK) {
            log_err("runner.message.refused", &err);
            link_close(runner, link);
            return;
        }
        if (!message)
            return;
        if (link == &runner->guest) {
            welcome(runner, message);
            link = &runner->peer;
        } else {
            json_t *reply = NULL;
            if (request_serve(runner, message, &reply))
                say(runner, link, reply);
        }
        json_decref(message);
    }
}

static void link_ready(struct runner *runner, struct watch *watch)
{
    static char bytes[READ_BYTES];
    struct link *link = watch == &runner->peer.watch ? &runner->peer : &runner->guest;
    if (link->out.len > 0)
        link_flush(runner, link);
    ssize_t got = recv(watch->fd, bytes, sizeof(bytes), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0 || !buf_add(&link->in, bytes, (size_t)got)) {
        if (link == &runner->peer)
            log_event(LOG_WARN, "runner.worker.gone", LOG_U("jobs", job_running(runner)));
        link_close(runner, link);
        return;
    }
    take_messages(runner, link);
}

void server_hear(struct runner *runner)
{
    if (runner->peer.watch.fd >= 0)
        link_ready(runner, &runner->peer.watch);
}

/* A connection that cannot be accepted (EMFILE, ENFILE) leaves the listener readable: the loop
 * would spin. So it is not watched for a moment. */
static void listener_failed(struct runner *runner, int cause)
{
    if (cause == EAGAIN || cause == EINTR || cause == ECONNABORTED)
        return;
    log_event(LOG_WARN, "runner.accept.failed", LOG_S("reason", strerrordesc_np(cause)),
              LOG_I("again_in_ms", ACCEPT_PAUSE_MS));
    runner_release(runner, &runner->listener);
    runner->listen_at = protocol_boot_ms() + ACCEPT_PAUSE_MS;
}

int64_t server_listen(struct runner *runner, int64_t now)
{
    struct err err = {0};
    if (runner->listen_at == 0)
        return NEVER;
    if (now < runner->listen_at)
        return runner->listen_at;
    runner->listen_at = 0;
    if (runner_watch(runner, &runner->listener, &err) == ERR_OK)
        return NEVER;
    runner->listen_at = now + ACCEPT_PAUSE_MS;
    return runner->listen_at;
}

/* A job may connect as often as it likes: the log must not grow with that. */
static void refuse_stranger(struct runner *runner, const struct ucred *peer)
{
    int64_t now = protocol_boot_ms();
    runner->strangers++;
    if (now < runner->strangers_at)
        return;
    log_event(LOG_WARN, "runner.peer.refused", LOG_U("uid", peer->uid), LOG_I("pid", peer->pid),
              LOG_U("refused", runner->strangers));
    runner->strangers = 0;
    runner->strangers_at = now + STRANGERS_PAUSE_MS;
}

static void listener_ready(struct runner *runner, struct watch *watch)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    struct err err = {0};
    FD_AUTO int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        listener_failed(runner, errno);
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid() ||
        peer_is_job(peer.pid)) {
        refuse_stranger(runner, &peer);
        return;
    }
    link_close(runner, &runner->guest);
    runner->guest.watch.fd = fd;
    fd = -1;
    if (runner_watch(runner, &runner->guest.watch, &err) != ERR_OK)
        link_close(runner, &runner->guest);
}

enum err_code server_open(struct runner *runner, struct err *err)
{
    struct link fresh = {.watch = {.fd = -1, .ready = link_ready},
                         .in = BUF_INIT(RUNNER_REQUEST_MAX + READ_BYTES),
                         .out = BUF_INIT(2 * RUNNER_ANSWER_MAX)};
    runner->peer = runner->guest = fresh;
    runner->listener.ready = listener_ready;
    return runner_watch(runner, &runner->listener, err);
}

void server_close(struct runner *runner)
{
    server_flush(runner);
    link_close(runner, &runner->guest);
    link_close(runner, &runner->peer);
    fd_close(&runner->listener.fd);
}
