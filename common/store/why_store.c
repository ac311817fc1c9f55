/* SPDX-License-Identifier: MIT */
#include "common/store/why_store.h"

#include "common/store/job_row.h"

#include <string.h>

#define WHY_KIND_SIZE 25

struct look {
    const struct job *job;
    uint32_t lease_ms;
    struct why why;
};

static enum err_code read_since(struct txn *txn, struct look *look, struct err *err)
{
    bool found = false;
    return db_one(txn->db, DB_WHY_SINCE,
                  DB_ARGS(db_text(job_state_text(look->job->status)), db_uuid(&look->job->id)),
                  DB_COLS(COL_I64(&look->why.now_us), COL_I64(&look->why.since_us)), &found, err);
}

static enum err_code read_group(struct txn *txn, struct look *look, struct err *err)
{
    struct why_blocked *blocked = &look->why.blocked;
    bool found = false;
    return db_one(txn->db, DB_WHY_GROUP,
                  DB_ARGS(db_uuid(&blocked->recovery), db_uuid(&look->job->id),
                          db_u64(WHY_AHEAD_MAX), db_uuid(&look->job->id)),
                  DB_COLS(COL_U32(&blocked->before), COL_TEXT(blocked->released_by),
                          COL_I64(&blocked->released_us)),
                  &found, err);
}

static enum err_code read_blocked(struct txn *txn, struct look *look, struct err *err)
{
    struct why_blocked *blocked = &look->why.blocked;
    char resume[STATE_TEXT_SIZE];
    enum err_code rc = db_one(
        txn->db, DB_WHY_BLOCKED, DB_ARGS(db_uuid(&look->job->id)),
        DB_COLS(COL_UUID(&blocked->recovery), COL_TEXT(resume), COL_I64(&blocked->blocked_us),
                COL_TEXT(blocked->tester), COL_TEXT(blocked->params), COL_U32(&blocked->tests),
                COL_U32(&blocked->tries), COL_I64(&blocked->next_us), COL_I64(&blocked->next_in_us),
                COL_TEXT(blocked->last_result), COL_TEXT(blocked->last_detail),
                COL_U32(&blocked->ramp), COL_TEXT(blocked->policy)),
        &look->why.has_blocked, err);
    if (rc == ERR_OK && look->why.has_blocked)
        rc = state_of(resume, &blocked->resume, err);
    if (rc == ERR_OK && look->why.has_blocked)
        rc = read_group(txn, look, err);
    return rc;
}

static enum err_code read_owned(struct txn *txn, struct look *look, struct err *err)
{
    struct why *why = &look->why;
    char kind[WHY_KIND_SIZE] = "";
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_WHY_OWNED, DB_ARGS(db_uuid(&look->job->id), db_uuid(&look->job->id)),
               DB_COLS(COL_I64(&why->asked_us), COL_TEXT(kind), COL_I64(&why->delayed_us),
                       COL_TEXT(why->delay)),
               &found, err);
    if (strcmp(kind, "delayed") != 0)
        why->delayed_us = 0;
    return rc;
}

static enum err_code read_held(struct txn *txn, struct look *look, struct err *err)
{
    bool found = false;
    int64_t now_us = 0;
    return db_one(txn->db, DB_WHY_SINCE,
                  DB_ARGS(db_text(job_state_text(JOB_BLOCKED)), db_uuid(&look->job->id)),
                  DB_COLS(COL_I64(&now_us), COL_I64(&look->why.held_us)), &found, err);
}

static enum err_code read_why(struct txn *txn, void *ctx, struct err *err)
{
    struct look *look = ctx;
    const struct job *job = look->job;
    look->why = (struct why){.lease_ms = look->lease_ms};
    enum err_code rc = read_since(txn, look, err);
    if (rc == ERR_OK && job->has_owner)
        rc = read_owned(txn, look, err);
    if (rc == ERR_OK && job->status == JOB_CANCELLED)
        rc = read_held(txn, look, err);
    if (rc == ERR_OK && job->status == JOB_BLOCKED)
        rc = read_blocked(txn, look, err);
    return rc;
}

enum err_code why_store_read(struct store *store, const struct job *job, uint32_t lease_ms,
                             struct why *ret_why, struct err *err)
{
    struct look look = {.job = job, .lease_ms = lease_ms};
    enum err_code rc = store_once(store, read_why, &look, err);
    if (rc == ERR_OK && job_state_is_active(job->status))
        rc = why_queue_read(store, job->tenant, job->queue, lease_ms, &look.why.queue, err);
    if (rc == ERR_OK && job->status == JOB_PENDING)
        rc = why_queue_ahead(store, job, &look.why.queue, err);
    if (rc == ERR_OK)
        rc = why_run_read(store, job, &look.why.run, err);
    if (rc == ERR_OK && job->has_owner) {
        struct err gone = {0};
        rc = worker_store_get(store, job->tenant, &job->owner_worker, &look.why.worker, &gone);
        look.why.has_worker = rc == ERR_OK;
        if (rc == ERR_NOT_FOUND)
            rc = ERR_OK;
        if (rc)
            *err = gone;
    }
    if (rc == ERR_OK)
        *ret_why = look.why;
    return rc;
}
