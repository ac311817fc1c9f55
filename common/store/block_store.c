/* SPDX-License-Identifier: MIT */
#include "common/store/block_store.h"

#include "common/base/fault.h"
#include "common/store/block_txn.h"
#include "common/store/job_row.h"

#include <assert.h>
#include <inttypes.h>

struct locked { /* the job's row is locked until the transaction ends */
    char status_text[STATE_TEXT_SIZE];
    char tenant[TENANT_SIZE];
    enum job_state status;
    bool has_owner;
    struct uuid owner;
    uint64_t fence;
    uint32_t epoch;
    bool cancel_requested;
};

static enum err_code lock_job(struct txn *txn, const struct uuid *id, struct locked *ret_job,
                              struct err *err)
{
    bool found = false;
    enum err_code rc = db_one(
        txn->db, DB_JOB_LOCK_ANY, DB_ARGS(db_uuid(id)),
        DB_COLS(COL_TEXT(ret_job->status_text), COL_UUID_OR(&ret_job->owner, &ret_job->has_owner),
                COL_U64(&ret_job->fence), COL_U32(&ret_job->epoch), COL_TEXT(ret_job->tenant),
                COL_BOOL(&ret_job->cancel_requested)),
        &found, err);
    if (rc)
        return rc;
    return found ? state_of(ret_job->status_text, &ret_job->status, err) : no_such_job(id, err);
}

/* ---- is it ours to block? ------------------------------------------------------------------- */

static bool is_held(const struct block *ctx, const struct locked *job)
{
    return job->has_owner && uuid_eq(&job->owner, &ctx->hold->worker) &&
           job->fence == ctx->hold->fence && job->status == ctx->from;
}

/* The event of an earlier try, or of an earlier call whose commit was unknown to the caller. */
static enum err_code was_made(struct txn *txn, struct block *ctx, bool *ret_made, struct err *err)
{
    uint64_t seq = 0;
    bool found = false;
    enum err_code rc = ERR_OK;
    if (ctx->hold)
        rc = db_one(txn->db, DB_EVENT_OF_HOLD,
                    DB_ARGS(db_uuid(ctx->id), db_u64(ctx->hold->fence), db_uuid(&ctx->hold->worker),
                            db_text(job_state_text(JOB_BLOCKED))),
                    DB_COLS(COL_U64(&seq)), ret_made, err);
    else
        rc = history_has(txn, ctx->id, ctx->seq, ret_made, err);
    if (rc || !*ret_made)
        return rc;
    return db_one(txn->db, DB_BLOCKED_GET, DB_ARGS(db_uuid(ctx->id)),
                  DB_COLS(COL_UUID(&ctx->recovery)), &found, err);
}

static enum err_code refuse(struct txn *txn, struct block *ctx, const struct locked *job,
                            bool *ret_made, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    enum err_code rc = was_made(txn, ctx, ret_made, err);
    if (rc || *ret_made)
        return rc;
    (void)uuid_text(ctx->id, text);
    if (!ctx->hold)
        return err_set(err, ERR_CONFLICT, "job %s epoch %u cannot be blocked: it is %s, epoch %u%s",
                       text, ctx->epoch, job->status_text, job->epoch,
                       job->has_owner ? ", and somebody owns it" : "");
    store_count_fenced(txn->store);
    return err_set(err, ERR_FENCED,
                   "job %s: fence %" PRIu64 " no longer holds it in state %s; it is %s, fence "
                   "%" PRIu64,
                   text, ctx->hold->fence, job_state_text(ctx->from), job->status_text, job->fence);
}

/* *ret_made: there is nothing left to do. */
static enum err_code check(struct txn *txn, struct block *ctx, const struct locked *job,
                           bool *ret_made, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    bool ours =
        ctx->hold ? is_held(ctx, job)
                  : !job->has_owner && job->epoch == ctx->epoch && job_state_is_active(job->status);
    if (!ours)
        return refuse(txn, ctx, job, ret_made, err);
    if (job->cancel_requested)
        return err_set(err, ERR_STATE, "the cancellation of job %s was asked for",
                       uuid_text(ctx->id, text));
    return ERR_OK;
}

/* ---- the shared row of the cause ------------------------------------------------------------ */

struct cause {
    bool found;
    uint32_t ramp;
};

static enum err_code read_cause(struct txn *txn, enum db_stmt_id stmt, struct block *ctx,
                                const char *tenant, struct cause *ret_cause, struct err *err)
{
    const struct job_block *why = ctx->why;
    *ret_cause = (struct cause){.found = false};
    return db_one(txn->db, stmt,
                  DB_ARGS(db_text(tenant), db_text(job_condition_text(why->condition)),
                          db_text(why->tester), db_text(why->params), db_text(why->policy)),
                  DB_COLS(COL_UUID(&ctx->recovery), COL_U32(&ret_cause->ramp)), &ret_cause->found,
                  err);
}

static enum err_code insert_cause(struct txn *txn, const struct block *ctx, const char *tenant,
                                  struct err *err)
{
    const struct job_block *why = ctx->why;
    const char *condition = job_condition_text(why->condition);
    struct uuid id = uuid_v7();
    return db_exec(txn->db, DB_CAUSE_INSERT,
                   DB_ARGS(db_uuid(&id), db_text(tenant), db_text(condition), db_text(why->tester),
                           db_text(why->params), db_text(why->policy), db_text(condition),
                           db_text(why->tester), db_text(why->params), db_text(why->policy),
                           db_u64((uint64_t)why->first_test_ms * 1000)),
                   NULL, err);
}

/* Normally the row is there and only a shared lock is taken: thousands of jobs that are blocked by
 * one cause at once do not wait for each other. */
static enum err_code join_cause(struct txn *txn, struct block *ctx, const char *tenant,
                                struct err *err)
{
    struct cause cause;
    enum err_code rc = read_cause(txn, DB_CAUSE_LOOK, ctx, tenant, &cause, err);
    if (rc == ERR_OK && (!cause.found || cause.ramp > 0))
        rc = insert_cause(txn, ctx, tenant, err);
    if (rc == ERR_OK)
        rc = read_cause(txn, DB_CAUSE_SHARE, ctx, tenant, &cause, err);
    if (rc || cause.found)
        return rc;
    txn->again = true; /* it was empty, and deleted between the look and the lock */
    return err_set(err, ERR_CONFLICT, "the cause ended just now");
}

/* ---- the transaction ------------------------------------------------------------------------ */

static enum err_code write_event(struct txn *txn, struct block *ctx, const struct locked *job,
                                 struct err *err)
{
    const struct job_move move = {.to = JOB_BLOCKED, .kind = "blocked", .detail = ctx->why->detail};
    const struct history history = {
        .job = ctx->id,
        .worker = ctx->hold ? &ctx->hold->worker : NULL,
        .fence = job->fence,
        .from = job->status,
        .condition = ctx->why->condition,
    };
    return history_write(txn->db, &history, &move, 1, &ctx->seq, err);
}

enum err_code block_txn(struct txn *txn, void *block, struct err *err)
{
    struct block *ctx = block;
    struct locked job = {0};
    char reason[JOB_REASON_SIZE];
    bool made = false;
    enum err_code rc = lock_job(txn, ctx->id, &job, err);
    if (rc == ERR_OK)
        rc = check(txn, ctx, &job, &made, err);
    if (rc || made)
        return rc;
    rc = db_exec(txn->db, DB_JOB_BLOCK,
                 DB_ARGS(db_text(job_condition_text(ctx->why->condition)),
                         db_text(text_fit(ctx->why->detail, reason, sizeof(reason))),
                         db_uuid(ctx->id)),
                 NULL, err);
    if (rc == ERR_OK)
        rc = join_cause(txn, ctx, job.tenant, err);
    if (rc == ERR_OK)
        rc = db_exec(txn->db, DB_BLOCKED_INSERT,
                     DB_ARGS(db_uuid(ctx->id), db_uuid(&ctx->recovery), db_text(job.tenant),
                             db_text(job_state_text(job.status))),
                     NULL, err);
    return rc ? rc : write_event(txn, ctx, &job, err);
}

static enum err_code run(struct store *store, struct block *ctx, struct uuid *ret_recovery,
                         struct err *err)
{
    enum err_code rc = store_txn(store, block_txn, ctx, err);
    if (rc)
        return rc;
    FAULT("job.block.after_commit");
    if (ret_recovery)
        *ret_recovery = ctx->recovery;
    return ERR_OK;
}

enum err_code job_store_block(struct store *store, const struct job_hold *hold, enum job_state from,
                              const struct job_block *why, struct uuid *ret_recovery,
                              struct err *err)
{
    struct block ctx = {.hold = hold, .id = &hold->id, .from = from, .why = why};
    assert(job_state_is_active(from));
    return run(store, &ctx, ret_recovery, err);
}

enum err_code job_store_block_unowned(struct store *store, const struct uuid *id, uint32_t epoch,
                                      const struct job_block *why, struct uuid *ret_recovery,
                                      struct err *err)
{
    struct block ctx = {.id = id, .epoch = epoch, .why = why};
    return run(store, &ctx, ret_recovery, err);
}
