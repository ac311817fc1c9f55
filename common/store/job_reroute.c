/* SPDX-License-Identifier: MIT */
#include "common/store/job_reroute.h"

#include "common/base/fault.h"
#include "common/store/job_row.h"

struct reroute {
    const struct job_reroute *what;
    struct job_rerouted result;
    uint64_t seq;
};

/* Shared until the end of the transaction: whoever deletes the queue counts its jobs after that. */
static enum err_code hold_target(struct txn *txn, const struct job_reroute *what, struct err *err)
{
    uint64_t version = 0;
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_QUEUE_HOLD, DB_ARGS(db_text(what->tenant), db_text(what->to)),
               DB_COLS(COL_U64(&version)), &found, err);
    if (rc || found)
        return rc;
    return err_set(err, ERR_CONFLICT, "queue %s is gone or disabled: look at it again", what->to);
}

static enum err_code not_waiting(struct txn *txn, const struct reroute *ctx, struct err *err)
{
    bool ours = false;
    char text[UUID_TEXT_SIZE];
    enum err_code rc = history_has(txn, &ctx->what->id, ctx->seq, &ours, err);
    if (rc || ours)
        return rc;
    return err_set(err, ERR_CONFLICT, "job %s does not wait in queue %s any more",
                   uuid_text(&ctx->what->id, text), ctx->what->from);
}

static enum err_code write_event(struct txn *txn, struct reroute *ctx, struct err *err)
{
    const struct job_reroute *what = ctx->what;
    char detail[2 * QUEUE_NAME_SIZE + 32];
    (void)snprintf(detail, sizeof(detail), "from queue %s to %s", what->from, what->to);
    const struct job_move move = {.to = JOB_PENDING, .kind = "rerouted", .detail = detail};
    struct uuid owner;
    char status[STATE_TEXT_SIZE];
    uint64_t fence = 0;
    bool found = false;
    bool owned = false;
    enum err_code rc = db_one(
        txn->db, DB_JOB_OWNER, DB_ARGS(db_uuid(&what->id)),
        DB_COLS(COL_UUID_OR(&owner, &owned), COL_U64(&fence), COL_TEXT(status)), &found, err);
    const struct history history = {
        .job = &what->id, .actor = what->actor, .fence = fence, .from = JOB_PENDING};
    return rc ? rc : history_write(txn->db, &history, &move, 1, &ctx->seq, err);
}

static enum err_code reroute(struct txn *txn, void *ctx_, struct err *err)
{
    struct reroute *ctx = ctx_;
    const struct job_reroute *what = ctx->what;
    uint64_t rows = 0;
    enum err_code rc = hold_target(txn, what, err);
    if (rc == ERR_OK)
        rc = db_exec(txn->db, DB_JOB_REROUTE,
                     DB_ARGS(db_text(what->to), db_uuid(&what->id), db_text(what->tenant),
                             db_u64(what->epoch), db_text(what->from)),
                     &rows, err);
    if (rc)
        return rc;
    if (rows == 0)
        return not_waiting(txn, ctx, err);
    ctx->result.epoch = (uint32_t)db_insert_id(txn->db);
    rc = db_exec(txn->db, DB_JOB_OUTBOX, DB_ARGS(db_uuid(&what->id)), NULL, err);
    if (rc)
        return rc;
    ctx->result.outbox_id = db_insert_id(txn->db);
    return write_event(txn, ctx, err);
}

enum err_code job_store_reroute(struct store *store, const struct job_reroute *what,
                                struct job_rerouted *ret, struct err *err)
{
    struct reroute ctx = {.what = what};
    enum err_code rc = store_txn(store, reroute, &ctx, err);
    if (rc)
        return rc;
    FAULT("job.reroute.after_commit");
    *ret = ctx.result;
    return ERR_OK;
}
