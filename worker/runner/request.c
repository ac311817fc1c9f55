/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/fault.h"

#include <signal.h>

#define GRACE_MAX_MS ((json_int_t)24 * 3600 * 1000)

json_t *request_start_answer(const struct run *run, bool existing)
{
    struct runner_job job = run->job;
    if (!job.exited)
        job.pid = run->first_pid; /* it may have been reaped since */
    return json_pack("{s:o, s:b}", "job", runner_job_json(&job), "existing", existing);
}

/* Each request sets *ret_body (NULL: an empty answer) or fails. */

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
    runner->grant_slept = runner_slept_ms();
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
    if (held && (held->task || held->asked) && held->job.fence == start.fence)
        run = held; /* on its way: this one gets the answer, nobody waits for the former any more */
    else if (held)
        *ret_body = request_start_answer(held, true);
    else
        rc = may_start(runner, err);
    if (rc == ERR_OK && !held)
        rc = job_start(runner, request->message, &start, &run, err);
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
    (void)ret_body;
    const char *job = NULL;
    json_int_t fence = 0;
    json_int_t new_fence = 0;
    json_error_t why;
    struct run *run = NULL;
    if (json_unpack_ex(request->message, &why, JSON_STRICT, "{s:s, s:I, s:s, s:I, s:I}", "op",
                       &(const char *){NULL}, "id", &(json_int_t){0}, "job", &job, "fence", &fence,
                       "new_fence", &new_fence) != 0)
        return wrong_members(&why, err);
    enum err_code rc = ERR_OK;
    if (new_fence <= fence)
        rc = err_set(err, ERR_INVALID, "new_fence is not above fence");
    /* Asked again, because the answer was lost: it has the new one already. */
    struct err fenced = {0};
    if (rc == ERR_OK && named_run(runner, job, new_fence, &run, &fenced) != ERR_OK)
        rc = named_run(runner, job, fence, &run, err);
    if (rc || !run)
        return rc;
    rc = job_adopt(runner, run, (uint64_t)new_fence, err);
    if (rc)
        return rc;
    if (run->asked_by != runner->peer_generation)
        run->asked = 0; /* whoever asked for its start is gone */
    run->adopting = request->id;
    run->asked_by = runner->peer_generation;
    request->later = true;
    return ERR_OK;
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
    if (rc || !run)
        return rc;
    if (number < 1 || number >= NSIG)
        return err_set(err, ERR_INVALID, "%d is no signal", number);
    if (run->phase > RUN_RUNNING || run->child_ended)
        return err_set(err, ERR_STATE, "job %s has ended", job);
    job_signal(run, number);
    return ERR_OK;
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
    if (rc == ERR_OK && !FAULT_FAILS("runner.kill.lost"))
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
    if (rc || !run)
        return rc;
    if (run->phase != RUN_EXITED)
        return err_set(err, ERR_STATE, "job %s runs", job);
    job_forget(runner, run);
    return ERR_OK;
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

static json_t *with_re(json_t *body, json_int_t id)
{
    if (!body)
        body = json_object();
    if (body)
        (void)json_object_set_new(body, "re", json_integer(id));
    return body;
}

/* Its number is 0: nobody waits for an answer. */
static bool is_quiet(const json_t *message)
{
    const json_t *id = json_object_get(message, "id");
    return json_is_integer(id) && json_integer_value(id) == 0;
}

bool request_serve(struct runner *runner, json_t *message, json_t **ret_answer)
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
    if (is_quiet(message)) {
        json_decref(body);
        return false;
    }
    if (rc)
        *ret_answer = protocol_error_json(request.id, &err);
    else if (!request.later)
        *ret_answer = with_re(body, request.id);
    return rc != ERR_OK || !request.later;
}
