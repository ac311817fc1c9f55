/* SPDX-License-Identifier: MIT */
#include "common/store/process_store.h"

#include "common/base/clock.h"
#include "common/store/reading.h"

static enum err_code seen(struct txn *txn, void *ctx, struct err *err)
{
    const struct process_row *row = ctx;
    enum err_code rc = db_exec(txn->db, DB_PROCESS_SEEN,
                               DB_ARGS(db_uuid(&row->id), db_text(row->service), db_text(row->host),
                                       db_u64(row->pid), db_text(row->version), db_u64(row->schema),
                                       db_i64(clock_wall_us())),
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

enum err_code process_store_list(struct store *store, int64_t within_ms,
                                 struct process_row **ret_rows, size_t *ret_count, struct err *err)
{
    struct process_row row = {.pid = 0};
    struct rows rows = ROWS_OF(struct process_row);
    struct reading reading = {.stmt = DB_PROCESS_LIST,
                              .args = DB_ARGS(db_i64(within_ms * 1000)),
                              .cols = DB_COLS(COL_TEXT(row.service), COL_TEXT(row.host),
                                              COL_U32(&row.pid), COL_TEXT(row.version),
                                              COL_U32(&row.schema), COL_I64(&row.age_us),
                                              COL_I64(&row.clock_ms)),
                              .row = &row,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_rows = rows_take(&rows);
    return ERR_OK;
}
