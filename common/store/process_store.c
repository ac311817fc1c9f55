/* SPDX-License-Identifier: MIT */
#include "common/store/process_store.h"

#include "common/store/pool.h"
#include "common/store/rows.h"

static enum err_code seen(struct txn *txn, void *ctx, struct err *err)
{
    const struct process_row *row = ctx;
    enum err_code rc =
        db_exec(txn->db, DB_PROCESS_SEEN,
                DB_ARGS(db_uuid(&row->id), db_text(row->service), db_text(row->host),
                        db_u64(row->pid), db_text(row->version), db_u64(row->schema)),
                NULL, err);
    return rc ? rc : db_exec(txn->db, DB_PROCESS_FORGET, DB_NO_ARGS, NULL, err);
}

enum err_code process_store_seen(struct store *store, const struct process_row *row,
                                 struct err *err)
{
    struct process_row copy = *row;
    return store_txn(store, seen, &copy, err);
}

static enum err_code gone(struct txn *txn, void *ctx, struct err *err)
{
    return db_exec(txn->db, DB_PROCESS_GONE, DB_ARGS(db_uuid((const struct uuid *)ctx)), NULL, err);
}

enum err_code process_store_gone(struct store *store, const struct uuid *id, struct err *err)
{
    struct uuid copy = *id;
    return store_once(store, gone, &copy, err);
}

struct listing {
    int64_t within_ms;
    struct rows rows;
};

static enum err_code list(struct txn *txn, void *ctx, struct err *err)
{
    struct listing *listing = ctx;
    struct process_row row = {.pid = 0};
    bool more = true;
    rows_clear(&listing->rows);
    enum err_code rc =
        db_select(txn->db, DB_PROCESS_LIST, DB_ARGS(db_i64(listing->within_ms * 1000)),
                  DB_COLS(COL_TEXT(row.service), COL_TEXT(row.host), COL_U32(&row.pid),
                          COL_TEXT(row.version), COL_U32(&row.schema), COL_I64(&row.age_us)),
                  err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = rows_add(&listing->rows, &row, err);
    }
    db_end(txn->db);
    return rc;
}

enum err_code process_store_list(struct store *store, int64_t within_ms,
                                 struct process_row **ret_rows, size_t *ret_count, struct err *err)
{
    struct listing listing = {.within_ms = within_ms, .rows = ROWS_OF(struct process_row)};
    enum err_code rc = store_once(store, list, &listing, err);
    if (rc == ERR_OK) {
        *ret_count = listing.rows.count;
        *ret_rows = rows_take(&listing.rows);
    }
    rows_done(&listing.rows);
    return rc;
}
