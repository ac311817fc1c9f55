/* SPDX-License-Identifier: MIT */
#include "webapp/jobs.h"

#include "common/base/openssl.h"
#include "common/base/spare.h"
#include "common/model/limits.h"
#include "webapp/allowance.h"
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
    char detail[64 + ROUTED_SIZE];
    char id[UUID_TEXT_SIZE];
    enum err_code rc = job_of_path_to_change(req, &old, err);
    if (rc == ERR_OK)
        rc = submission_allowed(req, err);
    if (rc == ERR_OK)
        rc = prepare_again(req, old, &submission, err);
    if (rc)
        return rc;
    (void)snprintf(detail, sizeof(detail), "resubmitted from %s, %s", uuid_text(&old->id, id),
                   submission.routed);
    submission_to_job(req, &submission, &job);
    job.detail = detail;
    rc = job_store_submit(req->web->store, &job, &done, err);
    if (rc)
        return rc;
    submission_publish(req, &submission, &done);
    return reply_job(req, done.replayed ? MHD_HTTP_OK : MHD_HTTP_CREATED, &done.id, err);
}

/* ---- POST /v1/jobs:batch --------------------------------------------------------------------- */

#define BATCH_FAULTS_MAX 200 /* of all items; beyond it an item tells its first fault alone */

struct batch_item {
    struct submission submission;
    struct err err;
    struct err_list faults;
    struct job_new job;
    struct job_submitted done;
    bool good;
};

struct batch {
    struct batch_item *items;
    size_t count;
    size_t good;
    uint64_t bytes; /* of the requests that were prepared */
    char key[80];   /* begin of its items' keys; "": none */
    uint8_t hash[32];
};

static void batch_done(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        submission_done(&batch->items[i].submission);
        err_list_done(&batch->items[i].faults);
    }
    free(batch->items);
}
#define BATCH_AUTO __attribute__((cleanup(batch_done)))

/* lists: whether all faults of this item are told, or its first alone. */
static void prepare_item(const struct request *req, json_t *value, size_t index, bool lists,
                         struct batch_item *item)
{
    AUTO(job_request_free) struct job_request *request = NULL;
    char prefix[32];
    (void)snprintf(prefix, sizeof(prefix), "/jobs/%zu", index);
    item->err.list = lists ? &item->faults : NULL;
    enum err_code rc = job_request_from_json(value, prefix, &request, &item->err);
    if (rc == ERR_OK && request->idempotency_key)
        rc = err_set_at(&item->err, ERR_INVALID, prefix,
                        "idempotencyKey is not taken in a batch: submit this job by itself");
    if (rc == ERR_OK)
        rc = submission_prepare(req, &request, false, &item->submission, &item->err);
    if (rc)
        return;
    item->good = true;
}

/* Taken once all items are at their places: it points into them. */
static void to_job(const struct request *req, const struct batch *batch, size_t index)
{
    struct batch_item *item = &batch->items[index];
    struct submission *submission = &item->submission;
    if (batch->key[0]) {
        (void)snprintf(submission->key, sizeof(submission->key), "%s %zu", batch->key, index);
        memcpy(submission->hash, batch->hash, sizeof(submission->hash));
    }
    submission_to_job(req, submission, &item->job);
}

/* What the whole batch stands for: without it, no item is worth trying. */
static bool is_fatal(enum err_code code)
{
    return err_http(code) >= MHD_HTTP_INTERNAL_SERVER_ERROR;
}

/* Each holds what its application adds: a small body may become very large. */
static enum err_code check_bytes(const struct request *req, const struct batch *batch, size_t index,
                                 struct err *err)
{
    uint64_t most = req->web->cfg->limits_batch_bytes;
    char pointer[32];
    if (batch->bytes <= most)
        return ERR_OK;
    (void)snprintf(pointer, sizeof(pointer), "/jobs/%zu", index);
    return err_set_at(err, ERR_TOO_LARGE, pointer,
                      "with their applications merged in, the first %zu of %zu jobs have %llu "
                      "bytes; the limit is %llu (limits.batch_bytes): send fewer in one batch",
                      index + 1, batch->count, (unsigned long long)batch->bytes,
                      (unsigned long long)most);
}

static enum err_code prepare_items(const struct request *req, const json_t *jobs,
                                   struct batch *batch, struct err *err)
{
    size_t faults = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct batch_item *item = &batch->items[i];
        prepare_item(req, json_array_get(jobs, i), i, faults < BATCH_FAULTS_MAX, item);
        faults += item->faults.count;
        if (item->good)
            to_job(req, batch, i);
        batch->good += item->good;
        batch->bytes += item->good ? strlen(item->submission.text) : 0;
        if (is_fatal(item->err.code)) {
            *err = item->err;
            err->list = NULL; /* it goes with the batch */
            return err->code;
        }
        enum err_code rc = check_bytes(req, batch, i, err);
        if (rc)
            return rc;
    }
    return ERR_OK;
}

/* The keys of its items are made of the batch's, so that a further try finds those that were
 * stored; they are all bound to the whole body. A client's own keys do not begin so by accident. */
static enum err_code read_key(const struct request *req, const json_t *root, struct batch *batch,
                              struct err *err)
{
    struct sv key = request_header(req, HEADER_IDEMPOTENCY_KEY);
    uint8_t hash[32];
    if (!key.ptr)
        return ERR_OK;
    if (key.len == 0 || key.len > LIMIT_KEY_BYTES || !sv_is_utf8(key))
        return err_set_at(err, ERR_INVALID, "Idempotency-Key",
                          "an idempotency key has 1 to %d bytes of UTF-8", LIMIT_KEY_BYTES);
    TEXT_AUTO char *text = spare_text(json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS));
    if (!text || EVP_Digest(text, strlen(text), batch->hash, NULL, EVP_sha256(), NULL) != 1 ||
        EVP_Digest(key.ptr, key.len, hash, NULL, EVP_sha256(), NULL) != 1)
        return err_set(err, ERR_NOMEM, "out of memory");
    size_t used = (size_t)snprintf(batch->key, sizeof(batch->key), "batch ");
    for (size_t i = 0; i < sizeof(hash); i++, used += 2)
        (void)snprintf(batch->key + used, sizeof(batch->key) - used, "%02x", hash[i]);
    return ERR_OK;
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
    rc = read_key(req, root, batch, err);
    return rc ? rc : prepare_items(req, jobs, batch, err);
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
    if (rc == ERR_IDEMPOTENCY) {
        err_clear(err);
        rc = err_set_at(err, ERR_IDEMPOTENCY, "Idempotency-Key",
                        "this idempotency key was used for another batch; take a new key for a new "
                        "one");
    }
    return rc;
}

/* What became of a job that an earlier try has stored. */
static void look_again(const struct request *req, struct batch_item *item, json_t *view)
{
    AUTO(job_free) struct job *job = NULL;
    item->err.code =
        job_store_get(req->web->store, req->who.tenant, &item->done.id, &job, &item->err);
    item->good = item->err.code == ERR_OK;
    if (item->good)
        json_object_set_new(view, "job",
                            json_pack("{s:o,s:s,s:s,s:s}", "id", view_uuid(&job->id), "name",
                                      job->name, "status", job_state_text(job->status), "queue",
                                      job->queue));
}

static json_t *item_view(const struct request *req, struct batch_item *item, size_t index)
{
    json_t *view = json_object();
    int good = item->done.replayed ? MHD_HTTP_OK : MHD_HTTP_CREATED;
    if (item->good && item->done.replayed)
        look_again(req, item, view);
    json_object_set_new(view, "index", json_integer((json_int_t)index));
    json_object_set_new(view, "status", json_integer(item->good ? good : err_http(item->err.code)));
    if (item->good && !item->done.replayed)
        json_object_set_new(view, "job",
                            json_pack("{s:o,s:s,s:s,s:s}", "id", view_uuid(&item->done.id), "name",
                                      item->job.name, "status", job_state_text(JOB_PENDING),
                                      "queue", item->job.queue));
    if (item->good && !item->done.replayed)
        json_object_set_new(view, "warnings", submission_warnings(req, item->job.queue));
    if (!item->good)
        json_object_set_new(view, "problem",
                            problem_of(&item->err, req->uri.raw, req->uri.path_length, req->id));
    return view;
}

enum err_code job_batch(struct request *req, struct err *err)
{
    BATCH_AUTO struct batch batch = {0};
    ALLOWANCE_AUTO struct allowance_hold hold = {0};
    enum err_code rc = submission_allowed(req, err);
    if (rc == ERR_OK) /* it may hold its thread for long, and asks the database for each job */
        rc = allowance_take(req->web->allowances, ALLOWANCE_BATCHES, &req->who, 1, &hold, err);
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
