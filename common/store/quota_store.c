/* SPDX-License-Identifier: MIT */
#include "common/store/quota_store.h"

#include "common/store/named.h"

#define QUOTA_ROW_COLS(row)                                                                        \
    DB_COLS(COL_TEXT((row)->tenant), COL_TEXT((row)->owner), COL_U32(&(row)->max_active),          \
            COL_U32(&(row)->version), COL_I64(&(row)->created_us), COL_I64(&(row)->updated_us))

static const struct named_kind quotas = {.noun = "quota for",
                                         .version = "version",
                                         .get = DB_QUOTA_GET,
                                         .lock = DB_QUOTA_LOCK,
                                         .same = DB_QUOTA_SAME,
                                         .insert = DB_QUOTA_INSERT,
                                         .update = DB_QUOTA_UPDATE,
                                         .remove = DB_QUOTA_DELETE};

static const char *whose(const char *owner)
{
    return strcmp(owner, QUOTA_TENANT_OWNER) == 0 ? "the tenant" : owner;
}

static struct named quota_of(const char *tenant, const char *owner)
{
    return (struct named){.kind = &quotas,
                          .name = whose(owner),
                          .key = {db_text(tenant), db_text(owner)},
                          .key_count = 2};
}

enum err_code quota_store_list(struct store *store, const char *tenant,
                               const struct name_page *page, struct quota **ret_items,
                               size_t *ret_count, struct err *err)
{
    struct quota row;
    struct rows rows = ROWS_OF(struct quota);
    struct reading reading = {.stmt = DB_QUOTA_LIST,
                              .args = DB_ARGS(db_text(tenant), db_text(page->after),
                                              db_text(page->after), db_u64(page->limit)),
                              .cols = QUOTA_ROW_COLS(&row),
                              .row = &row,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_items = rows_take(&rows);
    return ERR_OK;
}

enum err_code quota_store_get(struct store *store, const char *tenant, const char *owner,
                              struct quota *ret_quota, struct err *err)
{
    const struct named of = quota_of(tenant, owner);
    struct quota row;
    enum err_code rc = named_get(store, &of, QUOTA_ROW_COLS(&row), err);
    if (rc == ERR_OK)
        *ret_quota = row;
    return rc;
}

enum err_code quota_store_put(struct store *store, const struct quota *quota,
                              uint32_t expect_version, uint32_t *ret_version, bool *ret_made,
                              struct err *err)
{
    struct named_change change = {.of = quota_of(quota->tenant, quota->owner),
                                  .expect = expect_version,
                                  .values = DB_ARGS(db_u64(quota->max_active),
                                                    db_text(quota->tenant), db_text(quota->owner))};
    enum err_code rc = named_put(store, &change, err);
    if (rc)
        return rc;
    *ret_version = change.version;
    *ret_made = change.made;
    return ERR_OK;
}

enum err_code quota_store_delete(struct store *store, const char *tenant, const char *owner,
                                 uint32_t expect_version, struct err *err)
{
    struct named_change change = {.of = quota_of(tenant, owner), .expect = expect_version};
    return named_delete(store, &change, err);
}
