/* SPDX-License-Identifier: MIT */
#include "common/store/job_row.h"

#include "common/base/fault.h"
#include "common/store/rows.h"

#include <assert.h>
#include <inttypes.h>

/* ---- giving a job back ---------------------------------------------------------------------- */

struct hand_back {
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
    const struct job_move move = {.to = ctx->from, .kind = "handed-back", .detail = ctx->detail};
    const struct history history = {
        .job = &hold->id, .worker = &hold->worker, .fence = hold->fence, .from = ctx->from};
    uint64_t rows = 0;
    enum err_code rc = db_exec(txn->db, DB_JOB_HAND_BACK,
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

enum err_code job_store_hand_back(struct store *store, const struct job_hold *hold,
                                  enum job_state from, const char *detail,
                                  struct job_handed_back *ret, struct err *err)
{
    struct hand_back ctx = {.hold = hold, .from = from, .detail = detail};
    assert(job_state_is_active(from));
    enum err_code rc = store_txn(store, hand_back, &ctx, err);
    if (rc)
        return rc;
    FAULT("job.hand_back.after_commit");
    *ret = ctx.result;
    return ERR_OK;
}

/* ---- the jobs of a worker ------------------------------------------------------------------- */

struct held {
    enum db_stmt_id stmt;
    const struct uuid *worker;
    struct rows rows;
};

static enum err_code read_held(struct txn *txn, void *ctx, struct err *err)
{
    struct held *held = ctx;
    struct job_hold_row row;
    char status[STATE_TEXT_SIZE];
    bool more = true;
    rows_clear(&held->rows);
    enum err_code rc =
        db_select(txn->db, held->stmt, DB_ARGS(db_uuid(held->worker)),
                  DB_COLS(COL_UUID(&row.id), COL_U64(&row.fence), COL_TEXT(status)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = state_of(status, &row.status, err);
        if (rc == ERR_OK && more)
            rc = rows_add(&held->rows, &row, err);
    }
    db_end(txn->db);
    return rc;
}

static enum err_code list_held(struct store *store, struct held *held,
                               struct job_hold_row **ret_rows, size_t *ret_count, struct err *err)
{
    held->rows = ROWS_OF(struct job_hold_row);
    enum err_code rc = store_once(store, read_held, held, err);
    if (rc == ERR_OK) {
        *ret_count = held->rows.count;
        *ret_rows = rows_take(&held->rows);
    }
    rows_done(&held->rows);
    return rc;
}

enum err_code job_store_cancel_requests(struct store *store, const struct uuid *worker,
                                        struct job_hold_row **ret_rows, size_t *ret_count,
                                        struct err *err)
{
    struct held held = {.stmt = DB_JOB_CANCEL_REQUESTS, .worker = worker};
    return list_held(store, &held, ret_rows, ret_count, err);
}

enum err_code job_store_owned(struct store *store, const struct uuid *worker,
                              struct job_hold_row **ret_rows, size_t *ret_count, struct err *err)
{
    struct held held = {.stmt = DB_JOB_OWNED, .worker = worker};
    return list_held(store, &held, ret_rows, ret_count, err);
}
