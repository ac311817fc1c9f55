/* SPDX-License-Identifier: MIT */
#include "common/store/outbox_store.h"

#include "common/store/pool.h"
#include "common/store/rows.h"

#define IDS_AT_ONCE 256

struct reading {
    uint64_t after_id;
    uint32_t age_ms;
    uint32_t limit;
    struct rows rows;
};

static enum err_code read_rows(struct txn *txn, void *ctx, struct err *err)
{
    struct reading *reading = ctx;
    struct outbox_row row;
    bool more = true;
    rows_clear(&reading->rows);
    enum err_code rc =
        db_select(txn->db, DB_OUTBOX_READ,
                  DB_ARGS(db_u64(reading->after_id), db_u64((uint64_t)reading->age_ms * 1000),
                          db_u64(reading->limit)),
                  DB_COLS(COL_U64(&row.id), COL_UUID(&row.job), COL_U32(&row.epoch),
                          COL_TEXT(row.tenant), COL_TEXT(row.queue), COL_TEXT(row.queue_type)),
                  err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = rows_add(&reading->rows, &row, err);
    }
    db_end(txn->db);
    return rc;
}

enum err_code outbox_store_read(struct store *store, uint64_t after_id, uint32_t age_ms,
                                uint32_t limit, struct outbox_list *ret_list, struct err *err)
{
    struct reading reading = {
        .after_id = after_id, .age_ms = age_ms, .limit = limit, .rows = ROWS_OF(struct outbox_row)};
    enum err_code rc = store_once(store, read_rows, &reading, err);
    if (rc == ERR_OK) {
        ret_list->count = reading.rows.count;
        ret_list->items = rows_take(&reading.rows);
    }
    rows_done(&reading.rows);
    return rc;
}

struct ids {
    const uint64_t *ids;
    size_t count;
};

static enum err_code delete_ids(struct txn *txn, void *ctx, struct err *err)
{
    const struct ids *ids = ctx;
    struct db_arg args[IDS_AT_ONCE];
    size_t wide = ids->count == 1 ? 1 : ids->count <= 16 ? 16 : IDS_AT_ONCE;
    enum db_stmt_id stmt = wide == 1    ? DB_OUTBOX_DELETE_1
                           : wide == 16 ? DB_OUTBOX_DELETE_16
                                        : DB_OUTBOX_DELETE_256;
    for (size_t i = 0; i < wide; i++) /* the last id fills the places that are left */
        args[i] = db_u64(ids->ids[i < ids->count ? i : ids->count - 1]);
    return db_exec(txn->db, stmt, (struct db_args){args, wide}, NULL, err);
}

enum err_code outbox_store_delete(struct store *store, const uint64_t *ids, size_t count,
                                  struct err *err)
{
    for (size_t done = 0; done < count;) {
        size_t some = count - done < IDS_AT_ONCE ? count - done : IDS_AT_ONCE;
        struct ids part = {ids + done, some};
        enum err_code rc = store_once(store, delete_ids, &part, err);
        if (rc)
            return rc;
        done += some;
    }
    return ERR_OK;
}

static enum err_code count_rows(struct txn *txn, void *ctx, struct err *err)
{
    bool found = false;
    return db_one(txn->db, DB_OUTBOX_COUNT, DB_NO_ARGS, DB_COLS(COL_U64((uint64_t *)ctx)), &found,
                  err);
}

enum err_code outbox_store_count(struct store *store, uint64_t *ret_rows, struct err *err)
{
    return store_once(store, count_rows, ret_rows, err);
}
