/* SPDX-License-Identifier: MIT */
#include "common/store/tenant_store.h"

#include "common/store/pool.h"
#include "common/store/rows.h"

static enum err_code read_names(struct txn *txn, void *ctx, struct err *err)
{
    struct rows *rows = ctx;
    struct tenant_name name;
    bool more = true;
    rows_clear(rows);
    enum err_code rc =
        db_select(txn->db, DB_TENANT_LIST, DB_NO_ARGS, DB_COLS(COL_TEXT(name.text)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = rows_add(rows, &name, err);
    }
    db_end(txn->db);
    return rc;
}

enum err_code tenant_store_list(struct store *store, struct tenant_name **ret_names,
                                size_t *ret_count, struct err *err)
{
    struct rows rows = ROWS_OF(struct tenant_name);
    enum err_code rc = store_once(store, read_names, &rows, err);
    if (rc == ERR_OK) {
        *ret_count = rows.count;
        *ret_names = rows_take(&rows);
    }
    rows_done(&rows);
    return rc;
}
