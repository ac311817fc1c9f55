/* SPDX-License-Identifier: MIT */
#include "common/store/app_store.h"

#include "common/store/named.h"

#define APP_ROW_COLS(app)                                                                          \
    DB_COLS(COL_TEXT((app)->tenant), COL_TEXT((app)->id), COL_TEXT((app)->app_version),            \
            COL_BOOL(&(app)->enabled), COL_HEAP(&(app)->definition), COL_U32(&(app)->version),     \
            COL_I64(&(app)->created_us), COL_I64(&(app)->updated_us))

static const struct named_kind apps = {.noun = "application",
                                       .version = "revision",
                                       .get = DB_APP_GET,
                                       .lock = DB_APP_LOCK,
                                       .same = DB_APP_SAME,
                                       .insert = DB_APP_INSERT,
                                       .update = DB_APP_UPDATE,
                                       .remove = DB_APP_DELETE};

static struct named app_of(const char *tenant, const char *id, const char *app_version)
{
    return (struct named){.kind = &apps,
                          .name = id,
                          .edition = app_version,
                          .key = {db_text(tenant), db_text(id), db_text(app_version)},
                          .key_count = 3};
}

void app_done(struct app *app)
{
    text_free(&app->definition);
}

void app_list_done(struct app_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        app_done(&list->items[i]);
    free(list->items);
    *list = (struct app_list){0};
}

static void clear_apps(struct rows *rows)
{
    struct app *items = rows->items;
    for (size_t i = 0; i < rows->count; i++)
        app_done(&items[i]);
    rows_clear(rows);
}

enum err_code app_store_list(struct store *store, const char *tenant, const struct app_page *page,
                             struct app_list *ret_list, struct err *err)
{
    struct app row = {0};
    struct rows rows = ROWS_OF(struct app);
    struct reading reading = {.stmt = DB_APP_LIST,
                              .args = DB_ARGS(db_text(tenant), db_text(page->id), db_text(page->id),
                                              db_text(page->app_version), db_u64(page->limit)),
                              .cols = APP_ROW_COLS(&row),
                              .row = &row,
                              .clear = clear_apps,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    app_done(&row);
    if (rc)
        return rc;
    ret_list->count = rows.count;
    ret_list->items = rows_take(&rows);
    return ERR_OK;
}

enum err_code app_store_get(struct store *store, const char *tenant, const char *id,
                            const char *app_version, struct app *ret_app, struct err *err)
{
    const struct named of = app_of(tenant, id, app_version);
    struct app row = {0};
    enum err_code rc = named_get(store, &of, APP_ROW_COLS(&row), err);
    if (rc == ERR_OK)
        *ret_app = row;
    else
        app_done(&row);
    return rc;
}

enum err_code app_store_put(struct store *store, const struct app *app, uint32_t expect_version,
                            uint32_t *ret_version, bool *ret_made, struct err *err)
{
    struct named_change change = {.of = app_of(app->tenant, app->id, app->app_version),
                                  .expect = expect_version,
                                  .values = DB_ARGS(db_text(app->definition), db_text(app->tenant),
                                                    db_text(app->id), db_text(app->app_version))};
    enum err_code rc = named_put(store, &change, err);
    if (rc)
        return rc;
    *ret_version = change.version;
    *ret_made = change.made;
    return ERR_OK;
}

enum err_code app_store_delete(struct store *store, const char *tenant, const char *id,
                               const char *app_version, uint32_t expect_version, struct err *err)
{
    struct named_change change = {.of = app_of(tenant, id, app_version), .expect = expect_version};
    return named_delete(store, &change, err);
}

enum err_code app_store_enable(struct store *store, const char *tenant, const char *id,
                               const char *app_version, bool enabled, struct err *err)
{
    const struct named of = app_of(tenant, id, app_version);
    const struct db_arg to = db_u64(enabled);
    return named_exec(store, &of, DB_APP_ENABLE,
                      DB_ARGS(to, to, db_text(tenant), db_text(id), db_text(app_version)), err);
}
