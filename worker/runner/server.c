/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/fault.h"
#include "common/base/log.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 * 1024)
#define GRACE_MAX_MS ((json_int_t)24 * 3600 * 1000)

static void link_close(struct runner *runner, struct link *link)
{
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
    runner_rewatch(runner, &link->watch, link->out.len > 0);
}

/* Takes the reference. */
static void say(struct runner *runner, struct link *link, json_t *message)
{
    struct err err = {0};
    if (link->watch.fd >= 0 &&
        protocol_pack(&link->out, message, RUNNER_ANSWER_MAX, &err) == ERR_OK)
        link_flush(runner, link);
    else if (link->watch.fd >= 0) {
        log_err("runner.worker.unreachable", &err);
        link_close(runner, link);
    }
    json_decref(message);
}

static json_t *job_answer(const struct run *run)
{
    return json_pack("{s:o}", "job", runner_job_json(&run->job));
}

static json_t *start_answer(const struct run *run, bool existing)
{
    return json_pack("{s:o, s:b}", "job", runner_job_json(&run->job), "existing", existing);
}

static void answer(struct runner *runner, struct link *link, json_int_t id, json_t *body)
{
    if (!body)
        body = json_object();
    if (body)
        (void)json_object_set_new(body, "re", json_integer(id));
    say(runner, link, body);
}

void server_started(struct runner *runner, struct run *run)
{
    if (run->asked && run->asked_by == runner->peer_generation)
        answer(runner, &runner->peer, run->asked, start_answer(run, false));
    run->asked = 0;
}

void server_exited(struct runner *runner, struct run *run)
{
    char text[UUID_TEXT_SIZE];
    log_event(LOG_INFO, "runner.run.ended", LOG_S("job", uuid_text(&run->job.job, text)),
              LOG_U("run", run->job.run), LOG_I("exit_code", run->record.exit_code),
              LOG_I("signal", run->record.signal), LOG_S("start_error", run->record.start_error),
              LOG_S("reason", runner_reason_text(run->record.reason)));
    if (run->asked && run->asked_by == runner->peer_generation)
        server_started(runner, run);
    else if (runner->peer.watch.fd >= 0)
        say(runner, &runner->peer,
            json_pack("{s:s, s:o}", "event", "exited", "record", runner_record_json(&run->record)));
    run->asked = 0;
}

/* ---- requests: each sets *ret_body (NULL: an empty answer) or fails ---- */

struct request {
    json_t *message;
    json_int_t id;
    bool later; /* it is answered when its time has come */
};

static enum err_code wrong_members(const json_error_t *why, struct err *err)
{
    return err_set(err, ERR_INVALID, "members of the request: %s", why->text);
}

/* The run that is named, if its fence is the right one. */
static enum err_code named_run(const struct runner *runner, const char *job, json_int_t fence,
                               struct run **ret_run, struct err *err)
{
    struct uuid id;
    if (!uuid_parse(sv_of(job), &id))
        return err_set(err, ERR_INVALID, "job is not a UUID");
    struct run *run = job_find(runner, &id);
    if (!run)
        return err_set(err, ERR_NOT_FOUND, "job %s is not here", job);
    if (fence < 0 || (uint64_t)fence != run->job.fence)
        return err_set(err, ERR_FENCED, "job %s has fence %llu, not %lld", job,
                       (unsigned long long)run->job.fence, (long long)fence);
    *ret_run = run;
    return ERR_OK;
}

static enum err_code do_ping(struct runner *runner, struct request *request, json_t **ret_body,
                             struct err *err)
{
    json_int_t until = 0;
    json_int_t grace = 0;
    json_error_t why;
    (void)ret_body;
    if (json_unpack_ex(request->message, &why, JSON_STRICT, "{s:s, s:I, s:I, s:I}", "op",
                       &(const char *){NULL}, "id", &(json_int_t){0}, "until_ms", &until,
                       "grace_ms", &grace) != 0)
        return wrong_members(&why, err);
    if (grace < 0 || grace > GRACE_MAX_MS || until < 0 || until == NEVER)
        return err_set(err, ERR_INVALID, "until_ms or grace_ms is out of range");
    runner->granted = true;
    runner->grant_until = until;
    runner->grant_grace = grace;
    return ERR_OK;
}

static enum err_code do_list(struct runner *runner, struct request *request, json_t **ret_body,
                             struct err *err)
{
    (void)request;
    json_t *list = json_array();
    for (const struct run *run = runner->runs; list && run; run = run->next)
        (void)json_array_append_new(list, runner_job_json(&run->job));
    if (!list || json_array_size(list) != runner->run_count) {
        json_decref(list);
        return err_set(err, ERR_NOMEM, "no memory for the list");
    }
    *ret_body = json_pack("{s:o}", "jobs", list);
    return ERR_OK;
}

static enum err_code may_start(const struct runner *runner, struct err *err)
{
    if (runner->stopping)
        return err_set(err, ERR_STOPPING, "the runner is stopping");
    if (!runner->granted || protocol_boot_ms() >= runner->grant_until - runner->grant_grace)
        return err_set(err, ERR_STATE, "no grant: jobs may not live now, ping first");
    return ERR_OK;
}

static enum err_code do_start(struct runner *runner, struct request *request, json_t **ret_body,
                              struct err *err)
{
    struct runner_start start;
    struct run *run = NULL;
    enum err_code rc = protocol_start_parse(request->message, &start, err);
    if (rc)
        return rc;
    FAULT("runner.asked");
    struct run *held = job_find(runner, &start.job);
    if (held && held->phase == RUN_EXITED && held->job.fence < start.fence) {
        job_forget(runner, held); /* its owner is fenced: nobody can use that result */
        held = NULL;
    }
    if (held)
        *ret_body = start_answer(held, true);
    else
        rc = may_start(runner, err);
    if (rc == ERR_OK && !held)
        rc = job_start(runner, &start, &run, err);
    if (run) {
        run->asked = request->id;
        run->asked_by = runner->peer_generation;
        request->later = true;
    }
    protocol_start_clear(&start);
    return rc;
}

static enum err_code do_adopt(struct runner *runner, struct request *request, json_t **ret_body,
                              struct err *err)
{
    const char *job = NULL;
    json_int_t fence = 0;
    json_int_t new_fence = 0;
    json_error_t why;
    struct run *run = NULL;
    if (json_unpack_ex(request->message, &why, JSON_STRICT, "{s:s, s:I, s:s, s:I, s:I}", "op",
                       &(const char *){NULL}, "id", &(json_int_t){0}, "job", &job, "fence", &fence,
                       "new_fence", &new_fence) != 0)
        return wrong_members(&why, err);
    enum err_code rc = named_run(runner, job, fence, &run, err);
    if (rc == ERR_OK && new_fence <= fence)
        rc = err_set(err, ERR_INVALID, "new_fence is not above fence");
    if (rc == ERR_OK)
        rc = job_adopt(runner, run, (uint64_t)new_fence, err);
    if (rc == ERR_OK)
        *ret_body = job_answer(run);
    return rc;
}

static enum err_code do_signal(struct runner *runner, struct request *request, json_t **ret_body,
                               struct err *err)
{
    const char *job = NULL;
    json_int_t fence = 0;
    int number = 0;
    json_error_t why;
    struct run *run = NULL;
    (void)ret_body;
    if (json_unpack_ex(request->message, &why, JSON_STRICT, "{s:s, s:I, s:s, s:I, s:i}", "op",
                       &(const char *){NULL}, "id", &(json_int_t){0}, "job", &job, "fence", &fence,
                       "signal", &number) != 0)
        return wrong_members(&why, err);
    enum err_code rc = named_run(runner, job, fence, &run, err);
    if (rc == ERR_OK && (number < 1 || number >= NSIG))
        rc = err_set(err, ERR_INVALID, "%d is no signal", number);
    if (rc == ERR_OK && (run->phase > RUN_RUNNING || run->child_ended))
        rc = err_set(err, ERR_STATE, "job %s has ended", job);
    if (rc == ERR_OK)
        job_signal(run, number);
    return rc;
}

static enum err_code do_kill(struct runner *runner, struct request *request, json_t **ret_body,
                             struct err *err)
{
    const char *job = NULL;
    const char *note = NULL;
    json_int_t fence = 0;
    json_int_t grace = 0;
    json_error_t why;
    struct run *run = NULL;
    (void)ret_body;
    if (json_unpack_ex(request->message, &why, JSON_STRICT, "{s:s, s:I, s:s, s:I, s:I, s:s}", "op",
                       &(const char *){NULL}, "id", &(json_int_t){0}, "job", &job, "fence", &fence,
                       "grace_ms", &grace, "note", &note) != 0)
        return wrong_members(&why, err);
    enum err_code rc = named_run(runner, job, fence, &run, err);
    if (rc == ERR_OK && (grace < 0 || grace > GRACE_MAX_MS || strlen(note) >= RUNNER_NOTE_SIZE))
        rc = err_set(err, ERR_INVALID, "grace_ms or note is out of range");
    if (rc == ERR_OK)
        job_end(run, RUNNER_KILLED, grace, note);
    return rc;
}

static enum err_code do_forget(struct runner *runner, struct request *request, json_t **ret_body,
                               struct err *err)
{
    const char *job = NULL;
    json_int_t fence = 0;
    json_error_t why;
    struct run *run = NULL;
    (void)ret_body;
    if (json_unpack_ex(request->message, &why, JSON_STRICT, "{s:s, s:I, s:s, s:I}", "op",
                       &(const char *){NULL}, "id", &(json_int_t){0}, "job", &job, "fence",
                       &fence) != 0)
        return wrong_members(&why, err);
    enum err_code rc = named_run(runner, job, fence, &run, err);
    if (rc == ERR_OK && run->phase != RUN_EXITED)
        rc = err_set(err, ERR_STATE, "job %s runs", job);
    if (rc == ERR_OK)
        job_forget(runner, run);
    return rc;
}

static enum err_code do_bye(struct runner *runner, struct request *request, json_t **ret_body,
                            struct err *err)
{
    (void)request;
    (void)ret_body;
    (void)err;
    runner->leaving = true;
    return ERR_OK;
}

static const struct {
    const char *op;
    enum err_code (*serve)(struct runner *, struct request *, json_t **, struct err *);
} requests[] = {
    {"ping", do_ping},     {"list", do_list}, {"start", do_start},   {"adopt", do_adopt},
    {"signal", do_signal}, {"kill", do_kill}, {"forget", do_forget}, {"bye", do_bye},
};

static void serve(struct runner *runner, struct link *link, json_t *message)
{
    struct err err = {0};
    struct request request = {message, json_integer_value(json_object_get(message, "id")), false};
    const char *op = json_string_value(json_object_get(message, "op"));
    json_t *body = NULL;
    size_t i = 0;
    while (op && i < ARRAY_LEN(requests) && strcmp(op, requests[i].op) != 0)
        i++;
    enum err_code rc = op && i < ARRAY_LEN(requests)
                           ? requests[i].serve(runner, &request, &body, &err)
                           : err_set(&err, ERR_PROTOCOL, "unknown request %s", op ? op : "");
    if (rc)
        say(runner, link, protocol_error_json(request.id, &err));
    else if (!request.later)
        answer(runner, link, request.id, body);
}

/* ---- connections ---- */

static enum err_code greet(struct runner *runner, const json_t *message, struct err *err)
{
    int version = 0;
    const char *op = NULL;
    const char *worker = NULL;
    json_int_t id = 0;
    json_error_t why;
    union { /* json_unpack only borrows here */
        const json_t *lent;
        json_t *taken;
    } either = {message};
    if (json_unpack_ex(either.taken, &why, JSON_STRICT, "{s:s, s:I, s:i, s:s}", "op", &op, "id",
                       &id, "version", &version, "worker", &worker) != 0)
        return wrong_members(&why, err);
    if (strcmp(op, "hello") != 0 || version != RUNNER_PROTOCOL)
        return err_set(err, ERR_PROTOCOL, "hello with version %d was expected", RUNNER_PROTOCOL);
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
        link_close(runner, &runner->guest);
        return;
    }
    link_close(runner, &runner->peer);
    struct watch watch = runner->peer.watch;
    watch.fd = runner->guest.watch.fd;
    runner->peer = runner->guest;
    runner->peer.watch = watch;
    runner->guest.watch.fd = -1;
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
            serve(runner, link, message);
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

static void listener_ready(struct runner *runner, struct watch *watch)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    struct err err = {0};
    FD_AUTO int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid()) {
        log_event(LOG_WARN, "runner.peer.refused", LOG_U("uid", peer.uid));
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
    link_close(runner, &runner->guest);
    link_close(runner, &runner->peer);
    fd_close(&runner->listener.fd);
}
