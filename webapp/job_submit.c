/* SPDX-License-Identifier: MIT */
#include "webapp/jobs.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/store/app_store.h"
#include "common/store/system_store.h"
#include "webapp/handlers.h"
#include "webapp/hooks.h"
#include "webapp/job_view.h"

#include "common/base/openssl.h"

void submission_done(struct submission *submission)
{
    job_request_free(submission->request);
    routing_put(submission->routing);
    free(submission->text);
    free(submission->tags);
}

enum err_code submission_allowed(const struct request *req, struct err *err)
{
    if (bus_publisher_state(req->web->pub) == BUS_BLOCKED)
        return err_set(err, ERR_BROKER_BLOCKED,
                       "the broker is short of memory or disk and takes no messages: try later; "
                       "administrators: 'sluice doctor'");
    return ERR_OK;
}

/* The application that a request names. */
static enum err_code load_app(const struct request *req, const struct job_request *request,
                              struct app *ret_app, struct err *err)
{
    const char *version = request->app_version ? request->app_version : "";
    enum err_code rc =
        app_store_get(req->web->store, req->who.tenant, request->app_id, version, ret_app, err);
    if (rc == ERR_NOT_FOUND) {
        err_clear(err);
        return err_set_at(
            err, ERR_NOT_FOUND, "/appId",
            "there is no application %s version %s; 'sluice apps' lists those there are",
            request->app_id, version);
    }
    return rc; /* one that is disabled holds the job when its turn comes */
}

/* A queue that takes an application's jobs shall run its command and no other. A stored request has
 * both: the application is merged into it. */
static enum err_code check_members(const struct job_request *request, struct err *err)
{
    if (!request->app_id || !json_object_get(request->root, "command"))
        return ERR_OK;
    return err_set_at(
        err, ERR_INVALID, "/command",
        "appId and command exclude each other: the application %s has the command; send "
        "args for more arguments, or leave appId out",
        request->app_id);
}

static enum err_code merge_app(const struct request *req, struct job_request **take_request,
                               bool is_merged, struct job_request **ret_merged, struct err *err)
{
    AUTO(job_request_free) struct job_request *request = TAKE(*take_request);
    struct app app = {0};
    enum err_code rc = is_merged ? ERR_OK : check_members(request, err);
    if (rc == ERR_OK && request->app_id)
        rc = load_app(req, request, &app, err);
    if (rc == ERR_OK && request->app_id && !is_merged)
        rc = job_request_merge(request, sv_of(app.definition), ret_merged, err);
    else if (rc == ERR_OK)
        *ret_merged = TAKE(request);
    app_done(&app);
    return rc;
}

enum err_code submission_complete(const struct request *req, struct job_request **take_request,
                                  bool is_merged, struct job_request **ret_complete,
                                  struct err *err)
{
    const struct config *cfg = req->web->cfg;
    AUTO(job_request_free) struct job_request *complete = NULL;
    enum err_code rc = merge_app(req, take_request, is_merged, &complete, err);
    if (rc == ERR_OK)
        rc = job_request_complete(complete, cfg->limits_default_minutes * 60u,
                                  cfg->limits_max_minutes * 60u, err);
    if (rc == ERR_OK)
        *ret_complete = TAKE(complete);
    return rc;
}

/* The header wins over the member. */
static enum err_code find_key(const struct request *req, const struct job_request *request,
                              struct submission *submission, struct err *err)
{
    struct sv key = request_header(req, HEADER_IDEMPOTENCY_KEY);
    const char *where = "Idempotency-Key";
    if (!key.ptr) {
        key = sv_of(request->idempotency_key);
        where = "/idempotencyKey";
    }
    if (!key.ptr)
        return ERR_OK;
    while (key.len > 0 && (key.ptr[key.len - 1] == ' ' || key.ptr[key.len - 1] == '\t'))
        key.len--; /* of a header they are no part of the value (RFC 9110, 5.5) */
    if (key.len == 0 || !sv_is_utf8(key) || !sv_copy(key, submission->key, sizeof(submission->key)))
        return err_set_at(err, ERR_INVALID, where, "an idempotency key has 1 to %zu bytes of UTF-8",
                          sizeof(submission->key) - 1);
    return ERR_OK;
}

static enum err_code hash_request(const struct job_request *request, uint8_t *ret_hash,
                                  struct err *err)
{
    TEXT_AUTO char *text = job_request_text(request);
    if (!text || EVP_Digest(text, strlen(text), ret_hash, NULL, EVP_sha256(), NULL) != 1)
        return err_set(err, ERR_NOMEM, "out of memory");
    return ERR_OK;
}

static enum err_code too_long_for_queue(const struct job_request *request,
                                        const struct job_queue *queue, struct err *err)
{
    bool minutes = json_object_get(request->root, "maxMinutes") != NULL;
    unsigned unit_s = minutes ? 60 : 1;
    return err_set_at(err, ERR_INVALID, minutes ? "/maxMinutes" : "/maxSeconds",
                      "%u %s are too long for queue %s, which the job would go to: at most %u; ask "
                      "for less, or see by 'sluice explain' what another queue wants",
                      request->max_seconds / unit_s, minutes ? "minutes" : "seconds", queue->name,
                      queue->max_seconds / unit_s);
}

static enum err_code choose_queue(const struct request *req, bool named_limit,
                                  struct submission *submission, struct err *err)
{
    struct routing_row row;
    struct job_request *request = submission->request;
    enum err_code rc = router_get(req->web->router, req->who.tenant, &submission->routing, err);
    if (rc)
        return rc;
    routing_row_init(&row, request, req->who.tenant, req->who.user, clock_wall_us());
    const struct routing_queue *queue = routing_choose(submission->routing, &row.row);
    if (!queue)
        return err_set(err, ERR_STATE, "no filter takes this job, and the queue %s is disabled",
                       QUEUE_DEFAULT);
    submission->queue = &queue->queue;
    routed_text(submission->routing, &row.row, queue, submission->routed);
    uint32_t most = queue->queue.max_seconds;
    if (most == 0 || request->max_seconds <= most)
        return ERR_OK;
    if (named_limit)
        return too_long_for_queue(request, &queue->queue, err);
    request->max_seconds = most;
    (void)json_object_del(request->root, "maxMinutes"); /* of the application */
    if (json_object_set_new(request->root, "maxSeconds", json_integer(most)))
        return err_set(err, ERR_NOMEM, "out of memory");
    return ERR_OK;
}

static enum err_code check_system(const struct request *req, const struct job_request *request,
                                  struct err *err)
{
    struct job_system row;
    if (!request->system_id)
        return ERR_OK;
    enum err_code rc =
        system_store_get(req->web->store, req->who.tenant, request->system_id, &row, err);
    if (rc != ERR_NOT_FOUND)
        return rc;
    err_clear(err);
    return err_set_at(err, ERR_NOT_FOUND, "/systemId",
                      "there is no system %s; 'sluice systems' lists those there are",
                      request->system_id);
}

enum err_code submission_prepare(const struct request *req, struct job_request **take_request,
                                 bool is_merged, struct submission *ret, struct err *err)
{
    AUTO(job_request_free) struct job_request *request = TAKE(*take_request);
    bool named_limit = request->has_max_seconds;
    enum err_code rc = find_key(req, request, ret, err);
    if (rc == ERR_OK && ret->key[0])
        rc = hash_request(request, ret->hash, err);
    if (rc == ERR_OK)
        rc = submission_complete(req, &request, is_merged, &ret->request, err);
    if (rc == ERR_OK)
        rc = check_system(req, ret->request, err);
    if (rc == ERR_OK)
        rc = submission_hooks(req, ret->request, ret, err);
    if (rc == ERR_OK)
        rc = choose_queue(req, named_limit, ret, err);
    if (rc)
        return rc;
    ret->text = job_request_text(ret->request);
    ret->tags = job_request_tags(ret->request);
    return ret->text && ret->tags ? ERR_OK : err_set(err, ERR_NOMEM, "out of memory");
}

void submission_to_job(const struct request *req, const struct submission *submission,
                       struct job_new *ret_job)
{
    const struct job_request *request = submission->request;
    *ret_job = (struct job_new){
        .id = uuid_v7(),
        .tenant = req->who.tenant,
        .owner = req->who.user,
        .name = request->name,
        .app_id = request->app_id,
        .app_version = request->app_version,
        .system_id = request->system_id,
        .queue = submission->queue->name,
        .node_count = request->node_count,
        .cores_per_node = request->cores_per_node,
        .memory_mb = request->memory_mb,
        .max_seconds = request->max_seconds,
        .request = sv_of(submission->text),
        .tags = submission->tags,
        .idempotency_key = submission->key[0] ? submission->key : NULL,
        .hooks = submission->hooks,
        .hook_count = submission->hook_count,
        .detail = submission->routed,
    };
    memcpy(ret_job->body_hash, submission->hash, sizeof(ret_job->body_hash));
}

void submission_publish(const struct request *req, const struct submission *submission,
                        const struct job_submitted *done)
{
    if (done->replayed)
        return;
    const struct outbox_message message = {
        .outbox_id = done->outbox_id,
        .job = done->id,
        .epoch = 1,
        .tenant = req->who.tenant,
        .queue = submission->queue->name,
        .queue_type = submission->queue->queue_type,
        .traceparent = req->trace,
    };
    outbox_send(req->web->outbox, &message);
}

json_t *submission_warnings(const struct request *req, const char *queue)
{
    json_t *warnings = json_array();
    char text[QUEUE_NAME_SIZE + 128];
    if (router_serves(req->web->router, req->who.tenant, queue))
        return warnings;
    (void)snprintf(text, sizeof(text),
                   "queue %s has no worker that takes jobs: the job waits there until one does",
                   queue);
    json_array_append_new(warnings, json_string(text));
    return warnings;
}

static void reply_location(struct request *req, const struct uuid *id)
{
    char text[UUID_TEXT_SIZE];
    char location[64];
    (void)snprintf(location, sizeof(location), "/v1/jobs/%s", uuid_text(id, text));
    reply_header(req, "Location", location);
}

enum err_code reply_job(struct request *req, unsigned status, const struct uuid *id,
                        struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    enum err_code rc = job_store_get(req->web->store, req->who.tenant, id, &job, err);
    if (rc)
        return rc;
    reply_json(req, status, job_view(job, true));
    reply_location(req, id);
    return ERR_OK;
}

/* ---- POST /v1/jobs: stored together with those that come at the same time ------------------- */

struct submit_op {
    struct submit_item item; /* first */
    struct request *req;
    struct submission submission;
    uint64_t wait_s;
    struct allowance_hold wait; /* taken before the job is stored: what was stored is not refused */
    int64_t began_us;
};

static void op_free(struct submit_op *op)
{
    submission_done(&op->submission);
    allowance_return(&op->wait);
    free(op);
}
DEFINE_AUTO(struct submit_op *, op_free)

static enum err_code answer_replayed(struct request *req, struct err *err)
{
    return reply_job(req, MHD_HTTP_OK, &req->subject, err);
}

/* The job of an earlier request has to be read: not on a thread that stores. */
static enum err_code reply_earlier(struct request *req, const struct uuid *id, struct err *err)
{
    req->subject = *id;
    if (!server_park(req))
        return err_set(err, ERR_TIMEOUT, "too late to answer");
    server_resume(req, answer_replayed);
    return REQUEST_PARKED;
}

static enum err_code reply_submitted(struct submit_op *op, struct err *err)
{
    struct request *req = op->req;
    const struct job_submitted *done = &op->item.item.done;
    if (op->wait_s > 0)
        return job_wait(req, &done->id, (unsigned)op->wait_s, &op->wait, err);
    if (done->replayed)
        return reply_earlier(req, &done->id, err);
    json_t *root = op->submission.request->root;
    (void)json_object_del(root, "idempotencyKey"); /* it is not kept with the job */
    json_t *view = job_view_new(&op->item.item.job, done, root);
    json_object_set_new(view, "warnings", submission_warnings(req, op->submission.queue->name));
    reply_json(req, MHD_HTTP_CREATED, view);
    reply_location(req, &done->id);
    return ERR_OK;
}

/* The job is stored, or not: the answer says so. */
static void on_stored(struct submit_item *item)
{
    AUTO(op_free) struct submit_op *op = (struct submit_op *)item;
    struct request *req = op->req;
    struct err err = item->item.err;
    enum err_code rc = err.code;
    log_set_request(req->id);
    if (rc == ERR_OK) {
        FAULT("web.row_committed");
        web_count_submit_us(clock_mono_us() - op->began_us);
        submission_publish(req, &op->submission, &item->item.done);
        FAULT("web.published");
        rc = reply_submitted(op, &err);
    }
    if (rc != REQUEST_PARKED)
        server_answer(req, rc, &err);
    log_set_request(NULL);
}

static enum err_code prepare_op(struct submit_op *op, struct err *err)
{
    AUTO(job_request_free) struct job_request *request = NULL;
    struct request *req = op->req;
    enum err_code rc = request_number(req, "wait", 0, UINT32_MAX, &op->wait_s, err);
    if (rc == ERR_OK)
        rc = job_request_parse(buf_sv(&req->body), &request, err);
    if (rc == ERR_OK)
        rc = submission_allowed(req, err);
    if (rc == ERR_OK && op->wait_s > 0)
        rc = allowance_take(req->web->allowances, ALLOWANCE_WAITS, &req->who, 1, &op->wait, err);
    if (rc == ERR_OK)
        rc = submission_prepare(req, &request, false, &op->submission, err);
    if (rc)
        return rc;
    submission_to_job(req, &op->submission, &op->item.item.job);
    if (op->wait_s > req->web->cfg->web_wait_max_s)
        op->wait_s = req->web->cfg->web_wait_max_s;
    return ERR_OK;
}

enum err_code job_submit(struct request *req, struct err *err)
{
    AUTO(op_free) struct submit_op *op = calloc(1, sizeof(*op));
    if (!op)
        return err_set(err, ERR_NOMEM, "out of memory");
    op->req = req;
    op->item.done = on_stored;
    op->began_us = clock_mono_us();
    enum err_code rc = prepare_op(op, err);
    if (rc == ERR_OK)
        rc = submitter_add(req->web->submitter, &op->item, err);
    if (rc)
        return rc;
    (void)TAKE(op); /* on_stored has it, and the request: both may be gone by now */
    return REQUEST_PARKED;
}
