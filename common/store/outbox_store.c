/* SPDX-License-Identifier: MIT */
#include "common/store/outbox_store.h"

#include "common/store/reading.h"

#define IDS_AT_ONCE 256

enum err_code outbox_store_read(struct store *store, uint64_t after_id, uint32_t age_ms,
                                uint32_t limit, struct outbox_list *ret_list, struct err *err)
{
    struct outbox_row row;
    struct rows rows = ROWS_OF(struct outbox_row);
    struct reading reading = {
        .stmt = DB_OUTBOX_READ,
        .args = DB_ARGS(db_u64(after_id), db_u64((uint64_t)age_ms * 1000), db_u64(limit)),
        .cols = DB_COLS(COL_U64(&row.id), COL_UUID(&row.job), COL_U32(&row.epoch),
                        COL_TEXT(row.tenant), COL_TEXT(row.queue), COL_TEXT(row.queue_type)),
        .row = &row,
        .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    ret_list->count = rows.count;
    ret_list->items = rows_take(&rows);
    return ERR_OK;
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
