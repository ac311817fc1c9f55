/* SPDX-License-Identifier: MIT */
#include "common/store/system_store.h"

#include "common/store/named.h"

#define SYSTEM_ROW_COLS(row)                                                                       \
    DB_COLS(COL_TEXT((row)->tenant), COL_TEXT((row)->id), COL_TEXT((row)->kind),                   \
            COL_BOOL(&(row)->enabled), COL_U32(&(row)->max_active),                                \
            COL_U32(&(row)->max_active_per_owner), COL_TEXT((row)->description),                   \
            COL_U32(&(row)->version), COL_I64(&(row)->created_us), COL_I64(&(row)->updated_us))

static const struct named_kind systems = {.noun = "system",
                                          .version = "version",
                                          .get = DB_SYSTEM_GET,
                                          .lock = DB_SYSTEM_LOCK,
                                          .same = DB_SYSTEM_SAME,
                                          .insert = DB_SYSTEM_INSERT,
                                          .update = DB_SYSTEM_UPDATE,
                                          .remove = DB_SYSTEM_DELETE};

static struct named system_of(const char *tenant, const char *id)
{
    return (struct named){
        .kind = &systems, .name = id, .key = {db_text(tenant), db_text(id)}, .key_count = 2};
}

enum err_code system_store_list(struct store *store, const char *tenant,
                                const struct name_page *page, struct job_system **ret_items,
                                size_t *ret_count, struct err *err)
{
    struct job_system row;
    struct rows rows = ROWS_OF(struct job_system);
    struct reading reading = {
        .stmt = DB_SYSTEM_LIST,
        .args = DB_ARGS(db_text(tenant), db_text(page->after), db_u64(page->limit)),
        .cols = SYSTEM_ROW_COLS(&row),
        .row = &row,
        .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_items = rows_take(&rows);
    return ERR_OK;
}

enum err_code system_store_get(struct store *store, const char *tenant, const char *id,
                               struct job_system *ret_system, struct err *err)
{
    const struct named of = system_of(tenant, id);
    struct job_system row;
    enum err_code rc = named_get(store, &of, SYSTEM_ROW_COLS(&row), err);
    if (rc == ERR_OK)
        *ret_system = row;
    return rc;
}

enum err_code system_store_put(struct store *store, const struct job_system *what,
                               uint32_t expect_version, uint32_t *ret_version, bool *ret_made,
                               struct err *err)
{
    struct named_change change = {.of = system_of(what->tenant, what->id),
                                  .expect = expect_version,
                                  .values = DB_ARGS(db_text(what->kind), db_u64(what->max_active),
                                                    db_u64(what->max_active_per_owner),
                                                    db_text(what->description),
                                                    db_text(what->tenant), db_text(what->id))};
    enum err_code rc = named_put(store, &change, err);
    if (rc)
        return rc;
    *ret_version = change.version;
    *ret_made = change.made;
    return ERR_OK;
}

enum err_code system_store_delete(struct store *store, const char *tenant, const char *id,
                                  uint32_t expect_version, struct err *err)
{
    struct named_change change = {.of = system_of(tenant, id), .expect = expect_version};
    return named_delete(store, &change, err);
}

enum err_code system_store_enable(struct store *store, const char *tenant, const char *id,
                                  bool enabled, struct err *err)
{
    const struct named of = system_of(tenant, id);
    return named_exec(store, &of, DB_SYSTEM_ENABLE,
                      DB_ARGS(db_u64(enabled), db_u64(enabled), db_text(tenant), db_text(id)), err);
}
