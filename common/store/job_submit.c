/* SPDX-License-Identifier: MIT */
#include "common/store/job_row.h"

#include "common/base/fault.h"

#include <assert.h>

#define ROWS_AT_ONCE 16
#define JOB_PARAMS 14
/* A statement with many rows must stay well below the server's max_allowed_packet. */
#define REQUESTS_SIZE_MAX 1000000

struct submission {
    const struct job_new *jobs;
    size_t count;
    struct job_submitted *ret;
};

/* ---- checks --------------------------------------------------------------------------------- */

static bool fits(const char *text, size_t size)
{
    return !text || strlen(text) < size;
}

static enum err_code check(const struct job_new *job, struct err *err)
{
    bool all_fit = fits(job->tenant, TENANT_SIZE) && fits(job->owner, USER_SIZE) &&
                   fits(job->name, JOB_NAME_SIZE) && fits(job->app_id, APP_ID_SIZE) &&
                   fits(job->app_version, APP_VERSION_SIZE) &&
                   fits(job->system_id, SYSTEM_ID_SIZE) && fits(job->queue, QUEUE_NAME_SIZE) &&
                   fits(job->idempotency_key, 129) && fits(job->tags, 4097);
    return all_fit ? ERR_OK
                   : err_set(err, ERR_INVALID, "a text of the job is longer than its column");
}

/* ---- rows ----------------------------------------------------------------------------------- */

static enum err_code insert_jobs(struct db *db, const struct job_new *jobs, size_t count,
                                 struct err *err)
{
    struct db_arg args[ROWS_AT_ONCE * JOB_PARAMS];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct job_new *job = &jobs[i];
        args[n++] = db_uuid(&job->id);
        args[n++] = db_text(job->tenant);
        args[n++] = db_text(job->owner);
        args[n++] = db_text(job->name);
        args[n++] = db_text_or_null(job->app_id);
        args[n++] = db_text_or_null(job->app_version);
        args[n++] = db_text_or_null(job->system_id);
        args[n++] = db_text(job->queue);
        args[n++] = db_u64(job->node_count);
        args[n++] = db_u64(job->cores_per_node);
        args[n++] = db_u64(job->memory_mb);
        args[n++] = db_u64(job->max_seconds);
        args[n++] = db_text(job->tags ? job->tags : "[]");
        args[n++] = db_sv(job->request);
    }
    return db_exec(db, count == 1 ? DB_JOB_INSERT_1 : DB_JOB_INSERT_16, (struct db_args){args, n},
                   NULL, err);
}

static enum err_code insert_events(struct db *db, const struct job_new *jobs, size_t count,
                                   struct err *err)
{
    struct db_arg args[ROWS_AT_ONCE * 4];
    char details[ROWS_AT_ONCE][DETAIL_SIZE];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        args[n++] = db_uuid(&jobs[i].id);
        args[n++] = db_text(jobs[i].tenant);
        args[n++] = db_text(jobs[i].owner);
        args[n++] = db_text(text_fit(jobs[i].detail, details[i], DETAIL_SIZE));
    }
    return db_exec(db, count == 1 ? DB_SUBMITTED_1 : DB_SUBMITTED_16, (struct db_args){args, n},
                   NULL, err);
}

static enum err_code insert_outbox(struct db *db, const struct job_new *jobs, size_t count,
                                   struct job_submitted *ret, struct err *err)
{
    struct db_arg args[ROWS_AT_ONCE * 3];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        args[n++] = db_uuid(&jobs[i].id);
        args[n++] = db_text(jobs[i].tenant);
        args[n++] = db_text(jobs[i].queue);
    }
    enum err_code rc = db_exec(db, count == 1 ? DB_OUTBOX_INSERT_1 : DB_OUTBOX_INSERT_16,
                               (struct db_args){args, n}, NULL, err);
    if (rc)
        return rc;
    /* One INSERT of a known number of rows numbers them without gaps. */
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct job_submitted){.id = jobs[i].id,
                                        .outbox_id = db_insert_id(db) + i * db_auto_step(db)};
    }
    return ERR_OK;
}

static enum err_code insert_all(struct db *db, const struct submission *sub, size_t first,
                                size_t count, struct err *err)
{
    const struct job_new *jobs = sub->jobs + first;
    enum err_code rc = insert_jobs(db, jobs, count, err);
    if (rc == ERR_OK)
        rc = insert_events(db, jobs, count, err);
    if (rc == ERR_OK)
        rc = insert_outbox(db, jobs, count, sub->ret + first, err);
    return rc;
}

/* ---- one job -------------------------------------------------------------------------------- */

/* Somebody used the key: for the same body, his job is the answer. */
static enum err_code replay(struct txn *txn, const struct submission *sub, struct err *err)
{
    const struct job_new *job = sub->jobs;
    uint8_t hash[32];
    struct uuid id;
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_IDEM_GET,
               DB_ARGS(db_text(job->tenant), db_text(job->owner), db_text(job->idempotency_key)),
               DB_COLS(COL_BYTES(hash), COL_UUID(&id)), &found, err);
    if (rc)
        return rc;
    if (!found) { /* he rolled back meanwhile */
        txn->again = true;
        return err_set(err, ERR_DUPLICATE, "the key is being used by another request");
    }
    if (memcmp(hash, job->body_hash, sizeof(hash)) != 0)
        return err_set(err, ERR_IDEMPOTENCY,
                       "the idempotency key '%s' was used for a request with another body; take "
                       "a new key for a new job",
                       job->idempotency_key);
    if (uuid_eq(&id, &job->id)) /* our own earlier try was committed after all */
        return ERR_OK;
    *sub->ret = (struct job_submitted){.id = id, .replayed = true};
    return ERR_OK;
}

static enum err_code use_key(struct txn *txn, const struct submission *sub, bool *ret_new,
                             struct err *err)
{
    const struct job_new *job = sub->jobs;
    struct err used = {0};
    enum err_code rc =
        db_exec(txn->db, DB_IDEM_INSERT,
                DB_ARGS(db_text(job->tenant), db_text(job->owner), db_text(job->idempotency_key),
                        db_bytes(job->body_hash, sizeof(job->body_hash)), db_uuid(&job->id)),
                NULL, &used);
    *ret_new = rc == ERR_OK;
    if (rc == ERR_DUPLICATE)
        return replay(txn, sub, err);
    if (rc)
        *err = used;
    return rc;
}

static enum err_code submit(struct txn *txn, void *ctx, struct err *err)
{
    const struct submission *sub = ctx;
    struct err failed = {0};
    enum err_code rc = ERR_OK;
    if (sub->count == 1 && sub->jobs->idempotency_key) {
        bool is_new = false;
        rc = use_key(txn, sub, &is_new, err);
        if (rc || !is_new)
            return rc;
    }
    for (size_t done = 0; rc == ERR_OK && done < sub->count;) {
        size_t bytes = 0;
        size_t some = 0;
        while (some < ROWS_AT_ONCE && done + some < sub->count && bytes < REQUESTS_SIZE_MAX)
            bytes += sub->jobs[done + some++].request.len;
        if (some < ROWS_AT_ONCE)
            some = 1;
        rc = insert_all(txn->db, sub, done, some, &failed);
        done += some;
    }
    /* The id is ours alone: if it is there, an earlier try was committed, and ret still holds the
     * numbers of its outbox rows. */
    if (rc == ERR_DUPLICATE && txn->commit_unknown)
        return ERR_OK;
    if (rc)
        *err = failed;
    FAULT("job.submit.before_commit");
    return rc;
}

enum err_code job_store_submit_many(struct store *store, const struct job_new *jobs, size_t count,
                                    struct job_submitted *ret, struct err *err)
{
    struct submission sub = {jobs, count, ret};
    for (size_t i = 0; i < count; i++) {
        enum err_code rc = check(&jobs[i], err);
        if (rc)
            return rc;
    }
    enum err_code rc = store_txn(store, submit, &sub, err);
    if (rc == ERR_OK)
        FAULT("job.submit.after_commit");
    return rc;
}

enum err_code job_store_submit(struct store *store, const struct job_new *job,
                               struct job_submitted *ret, struct err *err)
{
    return job_store_submit_many(store, job, 1, ret, err);
}

struct forget {
    uint32_t hours;
    uint32_t limit;
    uint64_t rows;
};

static enum err_code forget_keys(struct txn *txn, void *ctx, struct err *err)
{
    struct forget *forget = ctx;
    return db_exec(txn->db, DB_IDEM_FORGET, DB_ARGS(db_u64(forget->hours), db_u64(forget->limit)),
                   &forget->rows, err);
}

enum err_code job_store_forget_keys(struct store *store, uint32_t hours, uint32_t limit,
                                    uint64_t *ret_rows, struct err *err)
{
    struct forget forget = {.hours = hours, .limit = limit};
    enum err_code rc = store_once(store, forget_keys, &forget, err);
    if (rc == ERR_OK)
        *ret_rows = forget.rows;
    return rc;
}
