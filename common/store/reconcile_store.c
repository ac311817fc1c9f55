/* SPDX-License-Identifier: MIT */
#include "common/store/reconcile_store.h"

#include "common/store/job_row.h"
#include "common/store/reading.h"

/* ---- looking -------------------------------------------------------------------------------- */

struct search {
    const struct stray_search *what;
    struct rows rows;
};

struct stray_row {
    struct stray stray;
    char status[STATE_TEXT_SIZE];
};

static enum err_code complete(void *row, struct err *err)
{
    struct stray_row *read = row;
    return state_of(read->status, &read->stray.resume, err);
}

/* The statement's columns: job, and (if it is not STRAY_ROW) epoch and state. */
static enum err_code find_kind(struct txn *txn, struct search *search, enum stray_kind kind,
                               struct db_args args, struct err *err)
{
    static const enum db_stmt_id stmts[STRAY_KIND_COUNT] = {
        [STRAY_BLOCKED] = DB_STRAY_BLOCKED,
        [STRAY_ROW] = DB_STRAY_ROWS,
        [STRAY_OWNED] = DB_STRAY_OWNED,
    };
    struct stray_row row = {.stray = {.kind = kind}, .status = "PENDING"};
    struct reading reading = {
        .stmt = stmts[kind],
        .args = args,
        .cols = DB_COLS(COL_UUID(&row.stray.job), COL_U32(&row.stray.epoch), COL_TEXT(row.status)),
        .row = &row,
        .complete = complete,
        .rows = &search->rows};
    if (kind == STRAY_ROW)
        reading.cols.count = 1;
    return read_rows(txn->db, &reading, err);
}

static enum err_code find(struct txn *txn, void *ctx, struct err *err)
{
    struct search *search = ctx;
    const struct stray_search *what = search->what;
    rows_clear(&search->rows);
    enum err_code rc = find_kind(txn, search, STRAY_BLOCKED,
                                 DB_ARGS(db_text(what->tenant), db_u64(what->limit)), err);
    if (rc == ERR_OK)
        rc = find_kind(txn, search, STRAY_ROW, DB_ARGS(db_text(what->tenant), db_u64(what->limit)),
                       err);
    if (rc == ERR_OK)
        rc = find_kind(txn, search, STRAY_OWNED,
                       DB_ARGS(db_text(what->tenant), db_i64(what->owner_ms * 1000),
                               db_i64(what->requeued_ms * 1000), db_u64(what->limit)),
                       err);
    return rc;
}

enum err_code reconcile_store_find(struct store *store, const struct stray_search *what,
                                   struct stray_list *ret_list, struct err *err)
{
    struct search search = {.what = what, .rows = ROWS_OF(struct stray)};
    enum err_code rc = store_once(store, find, &search, err);
    if (rc == ERR_OK) {
        ret_list->count = search.rows.count;
        ret_list->items = rows_take(&search.rows);
    }
    rows_done(&search.rows);
    return rc;
}

/* ---- repairing ------------------------------------------------------------------------------ */

struct repair {
    const struct recovery_lead *lead;
    const struct stray *stray;
    bool done;
    uint64_t seq;
};

static enum err_code change(struct txn *txn, const struct stray *stray, uint64_t *ret_rows,
                            struct err *err)
{
    const char *state = job_state_text(stray->resume);
    if (stray->kind == STRAY_BLOCKED)
        return db_exec(txn->db, DB_STRAY_UNBLOCK,
                       DB_ARGS(db_text(state), db_uuid(&stray->job), db_u64(stray->epoch)),
                       ret_rows, err);
    return db_exec(txn->db, DB_STRAY_REQUEUE,
                   DB_ARGS(db_uuid(&stray->job), db_u64(stray->epoch), db_text(state)), ret_rows,
                   err);
}

static enum err_code read_fence(struct txn *txn, const struct uuid *job, uint64_t *ret_fence,
                                struct err *err)
{
    struct uuid owner;
    char status[STATE_TEXT_SIZE];
    bool found = false;
    return db_one(txn->db, DB_JOB_OWNER, DB_ARGS(db_uuid(job)),
                  DB_COLS(COL_UUID(&owner), COL_U64(ret_fence), COL_TEXT(status)), &found, err);
}

/* A new epoch, its outbox row, its event. */
static enum err_code requeue(struct txn *txn, struct repair *repair, struct err *err)
{
    const struct stray *stray = repair->stray;
    const bool was_blocked = stray->kind == STRAY_BLOCKED;
    static const char *const details[STRAY_KIND_COUNT] = {
        [STRAY_BLOCKED] = "it was BLOCKED, and nothing held it",
        [STRAY_OWNED] = "its owner was not live for long, and no message came",
    };
    const struct job_move move = {
        .to = stray->resume, .kind = "requeued", .detail = details[stray->kind]};
    struct history history = {.job = &stray->job,
                              .from = was_blocked ? JOB_BLOCKED : stray->resume};
    uint64_t rows = 0;
    enum err_code rc = change(txn, stray, &rows, err);
    if (rc || rows == 0)
        return rc;
    rc = db_exec(txn->db, DB_JOB_OUTBOX, DB_ARGS(db_uuid(&stray->job)), NULL, err);
    if (rc == ERR_OK)
        rc = read_fence(txn, &stray->job, &history.fence, err);
    if (rc == ERR_OK)
        rc = history_write(txn->db, &history, &move, 1, &repair->seq, err);
    repair->done = rc == ERR_OK;
    return rc;
}

static enum err_code repair(struct txn *txn, void *ctx, struct err *err)
{
    struct repair *repair = ctx;
    uint64_t rows = 0;
    repair->done = false;
    enum err_code rc = recovery_lead_check(txn, repair->lead, err);
    if (rc)
        return rc;
    if (repair->stray->kind != STRAY_ROW)
        return requeue(txn, repair, err);
    rc = db_exec(txn->db, DB_STRAY_FORGET, DB_ARGS(db_uuid(&repair->stray->job)), &rows, err);
    repair->done = rows > 0;
    return rc;
}

enum err_code reconcile_store_repair(struct store *store, const struct recovery_lead *lead,
                                     const struct stray *stray, bool *ret_done, struct err *err)
{
    struct repair ctx = {.lead = lead, .stray = stray};
    enum err_code rc = store_txn(store, repair, &ctx, err);
    if (rc == ERR_OK)
        *ret_done = ctx.done;
    return rc;
}
