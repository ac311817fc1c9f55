/* SPDX-License-Identifier: MIT */
#include "common/store/job_row.h"

#include "common/base/fault.h"

/* ---- cancel --------------------------------------------------------------------------------- */

struct cancel {
    const char *tenant;
    const struct uuid *id;
    const char *actor;
    struct job_cancelled result;
    uint64_t seq;
};

struct locked_job { /* its row is locked until the transaction ends */
    enum job_state status;
    bool has_owner;
    struct uuid owner;
    uint64_t fence;
    bool cancel_requested;
    bool owner_gone;
};

static enum err_code lock_job(struct txn *txn, const struct cancel *ctx, struct locked_job *ret_job,
                              struct err *err)
{
    char status[STATE_TEXT_SIZE];
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_JOB_LOCK, DB_ARGS(db_uuid(ctx->id), db_text(ctx->tenant)),
               DB_COLS(COL_TEXT(status), COL_UUID_OR(&ret_job->owner, &ret_job->has_owner),
                       COL_U64(&ret_job->fence), COL_BOOL(&ret_job->cancel_requested),
                       COL_BOOL(&ret_job->owner_gone)),
               &found, err);
    if (rc)
        return rc;
    return found ? state_of(status, &ret_job->status, err) : no_such_job(ctx->id, err);
}

static enum err_code write_event(struct txn *txn, struct cancel *ctx, const struct locked_job *job,
                                 const struct job_move *move, struct err *err)
{
    const struct history history = {
        .job = ctx->id,
        .actor = ctx->actor,
        .fence = job->fence,
        .from = job->status,
        .condition = move->to == JOB_CANCELLED ? JOB_COND_CANCELLED_BY_USER : JOB_COND_NONE,
    };
    return history_write(txn->db, &history, move, 1, &ctx->seq, err);
}

static enum err_code cancel_now(struct txn *txn, struct cancel *ctx, const struct locked_job *job,
                                struct err *err)
{
    const struct job_move move = {.to = JOB_CANCELLED, .kind = "cancelled"};
    char kept[KEPT_CONDITIONS_SIZE];
    enum err_code rc =
        db_exec(txn->db, DB_JOB_CANCEL_NOW,
                DB_ARGS(db_text(kept_conditions(JOB_COND_CANCELLED_BY_USER, kept, sizeof(kept))),
                        db_text(job_condition_text(JOB_COND_CANCELLED_BY_USER)),
                        db_text(ctx->actor), db_uuid(ctx->id)),
                NULL, err);
    if (rc)
        return rc;
    if (job->status == JOB_BLOCKED)
        rc = db_exec(txn->db, DB_BLOCKED_DELETE, DB_ARGS(db_uuid(ctx->id)), NULL, err);
    if (rc)
        return rc;
    ctx->result = (struct job_cancelled){.state = JOB_CANCELLED, .done = true};
    return write_event(txn, ctx, job, &move, err);
}

static enum err_code ask_owner(struct txn *txn, struct cancel *ctx, const struct locked_job *job,
                               struct err *err)
{
    const struct job_move move = {.to = job->status, .kind = "cancel-requested"};
    ctx->result =
        (struct job_cancelled){.state = job->status, .has_owner = true, .owner_worker = job->owner};
    if (job->cancel_requested)
        return ERR_OK;
    enum err_code rc = db_exec(txn->db, DB_JOB_CANCEL_ASK,
                               DB_ARGS(db_text(ctx->actor), db_uuid(ctx->id)), NULL, err);
    return rc ? rc : write_event(txn, ctx, job, &move, err);
}

static enum err_code ended(struct txn *txn, const struct cancel *ctx, const struct locked_job *job,
                           struct err *err)
{
    bool ours = false;
    enum err_code rc = history_has(txn, ctx->id, ctx->seq, &ours, err);
    if (rc || (ours && ctx->result.done))
        return rc;
    char text[UUID_TEXT_SIZE];
    return err_set(err, ERR_STATE, "job %s has ended: it is %s", uuid_text(ctx->id, text),
                   job_state_text(job->status));
}

static enum err_code cancel(struct txn *txn, void *ctx_, struct err *err)
{
    struct cancel *ctx = ctx_;
    struct locked_job job = {0};
    enum err_code rc = lock_job(txn, ctx, &job, err);
    if (rc)
        return rc;
    if (job_state_ends(job.status))
        return ended(txn, ctx, &job, err);
    /* An owner that is not live answers nothing, has no process any more, and is fenced by the
     * state if it should come back. */
    return job.has_owner && !job.owner_gone ? ask_owner(txn, ctx, &job, err)
                                            : cancel_now(txn, ctx, &job, err);
}

enum err_code job_store_cancel(struct store *store, const char *tenant, const struct uuid *id,
                               const char *actor, struct job_cancelled *ret, struct err *err)
{
    struct cancel ctx = {.tenant = tenant, .id = id, .actor = actor};
    enum err_code rc = store_txn(store, cancel, &ctx, err);
    if (rc)
        return rc;
    FAULT("job.cancel.after_commit");
    *ret = ctx.result;
    return ERR_OK;
}

/* ---- hide and show -------------------------------------------------------------------------- */

struct visibility {
    const char *tenant;
    const struct uuid *id;
    bool visible;
};

static enum err_code not_hidden(struct txn *txn, const struct visibility *ctx, struct err *err)
{
    char status[STATE_TEXT_SIZE];
    char text[UUID_TEXT_SIZE];
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_JOB_STATUS, DB_ARGS(db_uuid(ctx->id), db_text(ctx->tenant)),
               DB_COLS(COL_TEXT(status)), &found, err);
    if (rc)
        return rc;
    if (!found)
        return no_such_job(ctx->id, err);
    return err_set(err, ERR_STATE, "job %s is %s; only a job that has ended can be hidden",
                   uuid_text(ctx->id, text), status);
}

static enum err_code set_visible(struct txn *txn, void *ctx_, struct err *err)
{
    const struct visibility *ctx = ctx_;
    uint64_t rows = 0;
    enum err_code rc = db_exec(
        txn->db, DB_JOB_VISIBLE,
        DB_ARGS(db_u64(ctx->visible), db_uuid(ctx->id), db_text(ctx->tenant), db_u64(ctx->visible)),
        &rows, err);
    if (rc || rows > 0)
        return rc;
    return not_hidden(txn, ctx, err);
}

enum err_code job_store_set_visible(struct store *store, const char *tenant, const struct uuid *id,
                                    bool visible, struct err *err)
{
    struct visibility ctx = {tenant, id, visible};
    return store_once(store, set_visible, &ctx, err);
}
