/* SPDX-License-Identifier: MIT */
#include "common/store/overview_store.h"

#include "common/store/job_row.h"
#include "common/store/reading.h"

#define AT_ONCE 50000u /* events that are counted in one transaction */
#define FORGET_AT_ONCE 1000u

struct tenant_rate {
    char tenant[TENANT_SIZE];
    struct job_rate rate;
};

struct count {
    struct rows rows; /* struct tenant_rate */
    bool more;
};

static enum err_code count_events(struct txn *txn, struct rows *rows, uint64_t after, uint64_t upto,
                                  struct err *err)
{
    struct tenant_rate row = {0};
    struct job_rate *rate = &row.rate;
    struct reading reading = {.stmt = DB_RATE_COUNT,
                              .args = DB_ARGS(db_u64(after), db_u64(upto)),
                              .cols = DB_COLS(COL_TEXT(row.tenant), COL_U64(&rate->minute),
                                              COL_U64(&rate->accepted), COL_U64(&rate->started),
                                              COL_U64(&rate->finished), COL_U64(&rate->failed),
                                              COL_U64(&rate->cancelled)),
                              .row = &row,
                              .rows = rows};
    rows_clear(rows);
    return read_rows(txn->db, &reading, err);
}

static enum err_code add_rates(struct txn *txn, const struct rows *rows, struct err *err)
{
    const struct tenant_rate *items = rows->items;
    enum err_code rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < rows->count; i++) {
        const struct job_rate *rate = &items[i].rate;
        rc = db_exec(txn->db, DB_RATE_ADD,
                     DB_ARGS(db_text(items[i].tenant), db_u64(rate->minute), db_u64(rate->accepted),
                             db_u64(rate->started), db_u64(rate->finished), db_u64(rate->failed),
                             db_u64(rate->cancelled)),
                     NULL, err);
    }
    return rc;
}

/* The reader's row is locked: who comes second finds the work done. */
static enum err_code count(struct txn *txn, void *ctx, struct err *err)
{
    struct count *count = ctx;
    uint64_t seq = 0;
    uint64_t seen = 0;
    uint64_t newest = 0;
    bool due = false;
    bool found = false;
    count->more = false;
    enum err_code rc = db_one(
        txn->db, DB_RATE_READER_LOCK, DB_NO_ARGS,
        DB_COLS(COL_U64(&seq), COL_U64(&seen), COL_BOOL(&due), COL_U64(&newest)), &found, err);
    if (rc || !found || !due)
        return rc;
    if (seen > seq) {
        uint64_t upto = seen - seq > AT_ONCE ? seq + AT_ONCE : seen;
        rc = count_events(txn, &count->rows, seq, upto, err);
        if (rc == ERR_OK)
            rc = add_rates(txn, &count->rows, err);
        count->more = upto < seen;
        if (rc || count->more)
            return rc ? rc
                      : db_exec(txn->db, DB_RATE_READER_STEP, DB_ARGS(db_u64(upto)), NULL, err);
        seq = upto;
    } else if (newest == seq) {
        return ERR_OK;
    }
    rc = db_exec(txn->db, DB_RATE_READER_MOVE, DB_ARGS(db_u64(seq), db_u64(newest)), NULL, err);
    return rc ? rc : db_exec(txn->db, DB_RATE_FORGET, DB_ARGS(db_u64(FORGET_AT_ONCE)), NULL, err);
}

enum err_code rate_store_count(struct store *store, bool *ret_more, struct err *err)
{
    struct count ctx = {.rows = ROWS_OF(struct tenant_rate)};
    enum err_code rc = store_txn(store, count, &ctx, err);
    rows_done(&ctx.rows);
    if (rc == ERR_OK)
        *ret_more = ctx.more;
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

enum err_code rate_store_read(struct store *store, const char *tenant, uint64_t since,
                              struct job_rate_list *ret_list, struct err *err)
{
    struct job_rate rate;
    struct rows rows = ROWS_OF(struct job_rate);
    struct reading reading = {.stmt = DB_RATE_READ,
                              .args = DB_ARGS(db_text(tenant), db_u64(since)),
                              .cols = DB_COLS(COL_U64(&rate.minute), COL_U64(&rate.accepted),
                                              COL_U64(&rate.started), COL_U64(&rate.finished),
                                              COL_U64(&rate.failed), COL_U64(&rate.cancelled)),
                              .row = &rate,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    ret_list->count = rows.count;
    ret_list->items = rows_take(&rows);
    return ERR_OK;
}
