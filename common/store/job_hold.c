/* SPDX-License-Identifier: MIT */
#include "common/store/job_row.h"

#include "common/base/fault.h"
#include "common/store/reading.h"

#include <assert.h>
#include <inttypes.h>

/* ---- giving a job back ---------------------------------------------------------------------- */

struct hand_back {
    enum db_stmt_id stmt;
    const char *kind; /* of the event */
    const struct job_hold *hold;
    enum job_state from;
    const char *detail;
    struct job_handed_back result;
    uint64_t seq;
};

static enum err_code hand_back_lost(struct txn *txn, const struct hand_back *ctx, struct err *err)
{
    bool ours = false;
    enum err_code rc = history_has(txn, &ctx->hold->id, ctx->seq, &ours, err);
    if (rc || ours)
        return rc;
    char text[UUID_TEXT_SIZE];
    store_count_fenced(txn->store);
    return err_set(err, ERR_FENCED, "job %s: fence %" PRIu64 " no longer holds it in state %s",
                   uuid_text(&ctx->hold->id, text), ctx->hold->fence, job_state_text(ctx->from));
}

static enum err_code hand_back(struct txn *txn, void *ctx_, struct err *err)
{
    struct hand_back *ctx = ctx_;
    const struct job_hold *hold = ctx->hold;
    const struct job_move move = {.to = ctx->from, .kind = ctx->kind, .detail = ctx->detail};
    const struct history history = {
        .job = &hold->id, .worker = &hold->worker, .fence = hold->fence, .from = ctx->from};
    uint64_t rows = 0;
    enum err_code rc = db_exec(txn->db, ctx->stmt,
                               DB_ARGS(db_uuid(&hold->id), db_uuid(&hold->worker),
                                       db_u64(hold->fence), db_text(job_state_text(ctx->from))),
                               &rows, err);
    if (rc)
        return rc;
    if (rows == 0)
        return hand_back_lost(txn, ctx, err);
    ctx->result.epoch = (uint32_t)db_insert_id(txn->db);
    rc = db_exec(txn->db, DB_JOB_OUTBOX, DB_ARGS(db_uuid(&hold->id)), NULL, err);
    if (rc)
        return rc;
    ctx->result.outbox_id = db_insert_id(txn->db);
    return history_write(txn->db, &history, &move, 1, &ctx->seq, err);
}

static enum err_code send(struct store *store, struct hand_back *ctx, struct job_handed_back *ret,
                          struct err *err)
{
    assert(job_state_is_active(ctx->from));
    enum err_code rc = store_txn(store, hand_back, ctx, err);
    if (rc)
        return rc;
    FAULT("job.hand_back.after_commit");
    *ret = ctx->result;
    return ERR_OK;
}

enum err_code job_store_hand_back(struct store *store, const struct job_hold *hold,
                                  enum job_state from, const char *detail,
                                  struct job_handed_back *ret, struct err *err)
{
    struct hand_back ctx = {.stmt = DB_JOB_HAND_BACK,
                            .kind = "handed-back",
                            .hold = hold,
                            .from = from,
                            .detail = detail};
    return send(store, &ctx, ret, err);
}

enum err_code job_store_send_again(struct store *store, const struct job_hold *hold,
                                   enum job_state from, const char *detail,
                                   struct job_handed_back *ret, struct err *err)
{
    struct hand_back ctx = {.stmt = DB_JOB_SEND_AGAIN,
                            .kind = "requeued",
                            .hold = hold,
                            .from = from,
                            .detail = detail};
    return send(store, &ctx, ret, err);
}

/* ---- the jobs of a worker ------------------------------------------------------------------- */

struct held {
    struct job_hold_row row;
    char status[STATE_TEXT_SIZE];
};

static enum err_code complete(void *row, struct err *err)
{
    struct held *held = row;
    return state_of(held->status, &held->row.status, err);
}

static enum err_code list_held(struct store *store, enum db_stmt_id stmt, const struct uuid *worker,
                               struct job_hold_row **ret_rows, size_t *ret_count, struct err *err)
{
    struct held held;
    struct rows rows = ROWS_OF(struct job_hold_row);
    struct reading reading = {
        .stmt = stmt,
        .args = DB_ARGS(db_uuid(worker)),
        .cols = DB_COLS(COL_UUID(&held.row.id), COL_U64(&held.row.fence), COL_TEXT(held.status)),
        .row = &held,
        .complete = complete,
        .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_rows = rows_take(&rows);
    return ERR_OK;
}

enum err_code job_store_cancel_requests(struct store *store, const struct uuid *worker,
                                        struct job_hold_row **ret_rows, size_t *ret_count,
                                        struct err *err)
{
    return list_held(store, DB_JOB_CANCEL_REQUESTS, worker, ret_rows, ret_count, err);
}

enum err_code job_store_owned(struct store *store, const struct uuid *worker,
                              struct job_hold_row **ret_rows, size_t *ret_count, struct err *err)
{
    return list_held(store, DB_JOB_OWNED, worker, ret_rows, ret_count, err);
}
