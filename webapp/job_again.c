/* SPDX-License-Identifier: MIT */
#include "webapp/jobs.h"

#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/problem.h"

/* ---- POST /v1/jobs/{id}/resubmit ------------------------------------------------------------- */

/* The stored request has its application merged in: the new job does what the old one did, though
 * the application may have changed since. */
static enum err_code prepare_again(const struct request *req, const struct job *job,
                                   struct submission *ret, struct err *err)
{
    AUTO(job_request_free) struct job_request *request = NULL;
    enum err_code rc = job_request_parse(sv_of(job->request), &request, err);
    if (rc)
        return rc;
    return submission_prepare(req, &request, true, ret, err);
}

enum err_code job_resubmit(struct request *req, struct err *err)
{
    AUTO(job_free) struct job *old = NULL;
    SUBMISSION_AUTO struct submission submission = {0};
    struct job_new job;
    struct job_submitted done = {0};
    char detail[64];
    char id[UUID_TEXT_SIZE];
    enum err_code rc = job_of_path_to_change(req, &old, err);
    if (rc == ERR_OK)
        rc = submission_allowed(req, err);
    if (rc == ERR_OK)
        rc = prepare_again(req, old, &submission, err);
    if (rc)
        return rc;
    (void)snprintf(detail, sizeof(detail), "resubmitted from %s", uuid_text(&old->id, id));
    submission_to_job(req, &submission, &job);
    job.detail = detail;
    rc = job_store_submit(req->web->store, &job, &done, err);
    if (rc)
        return rc;
    submission_publish(req, &submission, &done);
    return reply_job(req, done.replayed ? MHD_HTTP_OK : MHD_HTTP_CREATED, &done.id, err);
}

/* ---- POST /v1/jobs:batch --------------------------------------------------------------------- */

struct batch_item {
    struct submission submission;
    struct err err;
    struct job_new job;
    struct job_submitted done;
    bool good;
};

struct batch {
    struct batch_item *items;
    size_t count;
    size_t good;
};

static void batch_done(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        submission_done(&batch->items[i].submission);
    free(batch->items);
}
#define BATCH_AUTO __attribute__((cleanup(batch_done)))

static void prepare_item(const struct request *req, json_t *value, size_t index,
                         struct batch_item *item)
{
    AUTO(job_request_free) struct job_request *request = NULL;
    char prefix[32];
    (void)snprintf(prefix, sizeof(prefix), "/jobs/%zu", index);
    enum err_code rc = job_request_from_json(value, prefix, &request, &item->err);
    if (rc == ERR_OK && request->idempotency_key)
        rc = err_set_at(&item->err, ERR_INVALID, prefix,
                        "idempotencyKey is not taken in a batch: submit this job by itself");
    if (rc == ERR_OK)
        rc = submission_prepare(req, &request, false, &item->submission, &item->err);
    if (rc)
        return;
    submission_to_job(req, &item->submission, &item->job);
    item->good = true;
}

/* What the whole batch stands for: without it, no item is worth trying. */
static bool is_fatal(enum err_code code)
{
    return err_http(code) >= MHD_HTTP_INTERNAL_SERVER_ERROR;
}

static enum err_code read_batch(const struct request *req, struct batch *batch, struct err *err)
{
    JSON_AUTO json_t *root = NULL;
    enum err_code rc = request_json(req, &root, err);
    if (rc)
        return rc;
    json_t *jobs = json_object_get(root, "jobs");
    size_t most = req->web->cfg->limits_batch_max;
    if (!json_is_array(jobs) || json_object_size(root) != 1)
        return err_set_at(err, ERR_INVALID, "/jobs", "the body is {\"jobs\": [...]} and no more");
    if (json_array_size(jobs) == 0 || json_array_size(jobs) > most)
        return err_set_at(err, ERR_INVALID, "/jobs",
                          "a batch has 1 to %zu jobs (limits.batch_max), this one %zu", most,
                          json_array_size(jobs));
    batch->items = calloc(json_array_size(jobs), sizeof(*batch->items));
    if (!batch->items)
        return err_set(err, ERR_NOMEM, "out of memory");
    batch->count = json_array_size(jobs);
    for (size_t i = 0; i < batch->count; i++) {
        struct batch_item *item = &batch->items[i];
        prepare_item(req, json_array_get(jobs, i), i, item);
        batch->good += item->good;
        if (is_fatal(item->err.code)) {
            *err = item->err;
            return err->code;
        }
    }
    return ERR_OK;
}

static enum err_code store_good(const struct request *req, struct batch *batch,
                                struct job_new *jobs, struct job_submitted *done, struct err *err)
{
    size_t count = 0;
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->items[i].good)
            jobs[count++] = batch->items[i].job;
    }
    if (count > 0)
        rc = job_store_submit_many(req->web->store, jobs, count, done, err);
    count = 0;
    for (size_t i = 0; rc == ERR_OK && i < batch->count; i++) {
        struct batch_item *item = &batch->items[i];
        if (!item->good)
            continue;
        item->done = done[count++];
        submission_publish(req, &item->submission, &item->done);
    }
    return rc;
}

/* The good ones in one transaction. */
static enum err_code store_batch(const struct request *req, struct batch *batch, struct err *err)
{
    struct job_new *jobs = calloc(batch->good + 1, sizeof(*jobs));
    struct job_submitted *done = calloc(batch->good + 1, sizeof(*done));
    enum err_code rc = jobs && done ? store_good(req, batch, jobs, done, err)
                                    : err_set(err, ERR_NOMEM, "out of memory");
    free(jobs);
    free(done);
    return rc;
}

static json_t *item_view(const struct request *req, const struct batch_item *item, size_t index)
{
    json_t *view = json_object();
    json_object_set_new(view, "index", json_integer((json_int_t)index));
    json_object_set_new(view, "status",
                        json_integer(item->good ? MHD_HTTP_CREATED : err_http(item->err.code)));
    if (item->good)
        json_object_set_new(view, "job",
                            json_pack("{s:o,s:s,s:s,s:s}", "id", view_uuid(&item->done.id), "name",
                                      item->job.name, "status", job_state_text(JOB_PENDING),
                                      "queue", item->job.queue));
    else
        json_object_set_new(view, "problem",
                            problem_of(&item->err, req->uri.raw, req->uri.path_length, req->id));
    return view;
}

enum err_code job_batch(struct request *req, struct err *err)
{
    BATCH_AUTO struct batch batch = {0};
    enum err_code rc = submission_allowed(req, err);
    if (rc == ERR_OK && req->header[HEADER_IDEMPOTENCY_KEY])
        rc = err_set_at(err, ERR_INVALID, "Idempotency-Key", "a batch takes no Idempotency-Key");
    if (rc == ERR_OK)
        rc = read_batch(req, &batch, err);
    if (rc == ERR_OK)
        rc = store_batch(req, &batch, err);
    if (rc)
        return rc;
    json_t *items = json_array();
    for (size_t i = 0; i < batch.count; i++)
        json_array_append_new(items, item_view(req, &batch.items[i], i));
    reply_json(req, MHD_HTTP_OK, json_pack("{s:o}", "items", items));
    return ERR_OK;
}
