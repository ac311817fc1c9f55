/* SPDX-License-Identifier: MIT */
#include "common/store/reading.h"

static void drop_rows(struct reading *reading)
{
    if (reading->clear)
        reading->clear(reading->rows);
    rows_clear(reading->rows);
}

static enum err_code add_row(struct reading *reading, struct err *err)
{
    enum err_code rc = reading->complete ? reading->complete(reading->row, err) : ERR_OK;
    if (rc == ERR_OK)
        rc = rows_add(reading->rows, reading->row, err);
    if (rc == ERR_OK && reading->clear) /* what it holds is the item's now */
        memset(reading->row, 0, reading->rows->item_size);
    return rc;
}

enum err_code read_rows(struct db *db, struct reading *reading, struct err *err)
{
    bool more = true;
    enum err_code rc = db_select(db, reading->stmt, reading->args, reading->cols, err);
    while (rc == ERR_OK && more) {
        rc = db_next(db, &more, err);
        if (rc == ERR_OK && more)
            rc = add_row(reading, err);
    }
    db_end(db);
    return rc;
}

static enum err_code read_again(struct txn *txn, void *ctx, struct err *err)
{
    struct reading *reading = ctx;
    drop_rows(reading);
    return read_rows(txn->db, reading, err);
}

enum err_code read_all(struct store *store, struct reading *reading, struct err *err)
{
    enum err_code rc = store_once(store, read_again, reading, err);
    if (rc) {
        drop_rows(reading);
        rows_done(reading->rows);
    }
    return rc;
}

struct look {
    const struct reading *reading;
    bool found;
};

static enum err_code look(struct txn *txn, void *ctx, struct err *err)
{
    struct look *look = ctx;
    const struct reading *reading = look->reading;
    enum err_code rc =
        db_one(txn->db, reading->stmt, reading->args, reading->cols, &look->found, err);
    if (rc == ERR_OK && look->found && reading->complete)
        rc = reading->complete(reading->row, err);
    return rc;
}

enum err_code read_one(struct store *store, const struct reading *reading, bool *ret_found,
                       struct err *err)
{
    struct look one = {.reading = reading};
    enum err_code rc = store_once(store, look, &one, err);
    if (rc == ERR_OK)
        *ret_found = one.found;
    return rc;
}
