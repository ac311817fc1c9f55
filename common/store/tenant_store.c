/* SPDX-License-Identifier: MIT */
#include "common/store/tenant_store.h"

#include "common/store/reading.h"

static enum err_code list(struct store *store, enum db_stmt_id stmt, struct db_args args,
                          struct tenant_name **ret_names, size_t *ret_count, struct err *err)
{
    struct tenant_name row;
    struct rows rows = ROWS_OF(struct tenant_name);
    struct reading reading = {.stmt = stmt,
                              .args = args,
                              .cols = DB_COLS(COL_TEXT(row.text)),
                              .row = &row,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_names = rows_take(&rows);
    return ERR_OK;
}

enum err_code tenant_store_list(struct store *store, struct tenant_name **ret_names,
                                size_t *ret_count, struct err *err)
{
    return list(store, DB_TENANT_LIST, DB_NO_ARGS, ret_names, ret_count, err);
}

enum err_code tenant_store_list_waiting(struct store *store, struct tenant_name **ret_names,
                                        size_t *ret_count, struct err *err)
{
    return list(store, DB_TENANT_LIST_WAITING, DB_ARGS(db_u64(TENANTS_ALWAYS_SERVED)), ret_names,
                ret_count, err);
}

enum err_code tenant_store_list_busy(struct store *store, struct tenant_name **ret_names,
                                     size_t *ret_count, struct err *err)
{
    return list(store, DB_TENANT_LIST_BUSY, DB_NO_ARGS, ret_names, ret_count, err);
}
