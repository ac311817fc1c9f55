/* SPDX-License-Identifier: MIT */
#include "common/store/tenant_store.h"

#include "common/store/pool.h"
#include "common/store/rows.h"

struct reading {
    enum db_stmt_id stmt;
    struct db_args args;
    struct rows rows;
};

static enum err_code read_names(struct txn *txn, void *ctx, struct err *err)
{
    struct reading *reading = ctx;
    struct tenant_name name;
    bool more = true;
    rows_clear(&reading->rows);
    enum err_code rc =
        db_select(txn->db, reading->stmt, reading->args, DB_COLS(COL_TEXT(name.text)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = rows_add(&reading->rows, &name, err);
    }
    db_end(txn->db);
    return rc;
}

static enum err_code list(struct store *store, struct reading *reading,
                          struct tenant_name **ret_names, size_t *ret_count, struct err *err)
{
    enum err_code rc = store_once(store, read_names, reading, err);
    if (rc == ERR_OK) {
        *ret_count = reading->rows.count;
        *ret_names = rows_take(&reading->rows);
    }
    rows_done(&reading->rows);
    return rc;
}

enum err_code tenant_store_list(struct store *store, struct tenant_name **ret_names,
                                size_t *ret_count, struct err *err)
{
    struct reading reading = {DB_TENANT_LIST, DB_NO_ARGS, ROWS_OF(struct tenant_name)};
    return list(store, &reading, ret_names, ret_count, err);
}

enum err_code tenant_store_list_waiting(struct store *store, struct tenant_name **ret_names,
                                        size_t *ret_count, struct err *err)
{
    struct reading reading = {DB_TENANT_LIST_WAITING, DB_ARGS(db_u64(TENANTS_ALWAYS_SERVED)),
                              ROWS_OF(struct tenant_name)};
    return list(store, &reading, ret_names, ret_count, err);
}

enum err_code tenant_store_list_busy(struct store *store, struct tenant_name **ret_names,
                                     size_t *ret_count, struct err *err)
{
    struct reading reading = {DB_TENANT_LIST_BUSY, DB_NO_ARGS, ROWS_OF(struct tenant_name)};
    return list(store, &reading, ret_names, ret_count, err);
}
