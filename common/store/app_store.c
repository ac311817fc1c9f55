/* SPDX-License-Identifier: MIT */
#include "common/store/app_store.h"

#include "common/store/pool.h"
#include "common/store/queue_store.h" /* QUEUE_MUST_BE_NEW */
#include "common/store/rows.h"

#define APP_ROW_COLS(app)                                                                          \
    DB_COLS(COL_TEXT((app)->tenant), COL_TEXT((app)->id), COL_TEXT((app)->app_version),            \
            COL_BOOL(&(app)->enabled), COL_HEAP(&(app)->definition), COL_U32(&(app)->version),     \
            COL_I64(&(app)->created_us), COL_I64(&(app)->updated_us))

struct key {
    const char *tenant;
    const char *id;
    const char *app_version;
};
#define KEY_ARGS(key) db_text((key)->tenant), db_text((key)->id), db_text((key)->app_version)

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

static enum err_code no_such_app(const struct key *key, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "there is no application %s, version %s", key->id,
                   key->app_version);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct list {
    const char *tenant;
    struct rows rows;
};

static void clear_apps(struct rows *rows)
{
    struct app *apps = rows->items;
    for (size_t i = 0; i < rows->count; i++)
        app_done(&apps[i]);
    rows_clear(rows);
}

static enum err_code read_list(struct txn *txn, void *ctx, struct err *err)
{
    struct list *list = ctx;
    struct app row = {0};
    bool more = true;
    clear_apps(&list->rows);
    enum err_code rc =
        db_select(txn->db, DB_APP_LIST, DB_ARGS(db_text(list->tenant)), APP_ROW_COLS(&row), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc || !more)
            break;
        rc = rows_add(&list->rows, &row, err);
        if (rc == ERR_OK)
            row.definition = NULL;
    }
    db_end(txn->db);
    app_done(&row);
    return rc;
}

enum err_code app_store_list(struct store *store, const char *tenant, struct app_list *ret_list,
                             struct err *err)
{
    struct list list = {.tenant = tenant, .rows = ROWS_OF(struct app)};
    enum err_code rc = store_once(store, read_list, &list, err);
    if (rc == ERR_OK) {
        ret_list->count = list.rows.count;
        ret_list->items = rows_take(&list.rows);
    }
    clear_apps(&list.rows);
    rows_done(&list.rows);
    return rc;
}

struct one {
    struct key key;
    struct app app;
    bool found;
};

static enum err_code read_one(struct txn *txn, void *ctx, struct err *err)
{
    struct one *one = ctx;
    return db_one(txn->db, DB_APP_GET, DB_ARGS(KEY_ARGS(&one->key)), APP_ROW_COLS(&one->app),
                  &one->found, err);
}

enum err_code app_store_get(struct store *store, const char *tenant, const char *id,
                            const char *app_version, struct app *ret_app, struct err *err)
{
    struct one one = {.key = {tenant, id, app_version}};
    enum err_code rc = store_once(store, read_one, &one, err);
    if (rc == ERR_OK && one.found) {
        *ret_app = one.app;
        return ERR_OK;
    }
    app_done(&one.app);
    return rc ? rc : no_such_app(&one.key, err);
}

/* ---- changes -------------------------------------------------------------------------------- */

struct change {
    struct key key;
    const struct app *app; /* NULL: delete */
    uint32_t expect;
    uint32_t version; /* of the row that this, or an earlier try, wrote */
    bool made;
    bool tried;
};

static enum err_code lock_old(struct txn *txn, const struct key *key, struct one *ret_old,
                              struct err *err)
{
    return db_one(txn->db, DB_APP_LOCK, DB_ARGS(KEY_ARGS(key)), APP_ROW_COLS(&ret_old->app),
                  &ret_old->found, err);
}

static enum err_code check_expected(const struct change *change, const struct one *old,
                                    struct err *err)
{
    const struct key *key = &change->key;
    if (change->expect == 0)
        return ERR_OK;
    if (change->expect == QUEUE_MUST_BE_NEW)
        return old->found
                   ? err_set(err, ERR_PRECONDITION, "application %s, version %s exists already",
                             key->id, key->app_version)
                   : ERR_OK;
    if (!old->found)
        return err_set(err, ERR_PRECONDITION, "application %s, version %s does not exist", key->id,
                       key->app_version);
    if (old->app.version != change->expect)
        return err_set(err, ERR_PRECONDITION,
                       "application %s, version %s is at revision %u, not %u: read it again before "
                       "you change it",
                       key->id, key->app_version, old->app.version, change->expect);
    return ERR_OK;
}

static enum err_code write_app(struct txn *txn, struct change *change, bool is_new, struct err *err)
{
    struct err failed = {0};
    enum err_code rc = db_exec(txn->db, is_new ? DB_APP_INSERT : DB_APP_UPDATE,
                               DB_ARGS(db_u64(change->app->enabled),
                                       db_text(change->app->definition), KEY_ARGS(&change->key)),
                               NULL, &failed);
    if (rc == ERR_DUPLICATE) /* somebody else made it since we looked */
        txn->again = true;
    if (rc)
        *err = failed;
    return rc;
}

static enum err_code put_over(struct txn *txn, struct change *change, const struct one *old,
                              struct err *err)
{
    /* Our own earlier try was committed after all. */
    if (txn->commit_unknown && old->found && old->app.version == change->version &&
        old->app.enabled == change->app->enabled &&
        strcmp(old->app.definition, change->app->definition) == 0)
        return ERR_OK;
    enum err_code rc = check_expected(change, old, err);
    if (rc == ERR_OK)
        rc = write_app(txn, change, !old->found, err);
    if (rc)
        return rc;
    change->made = !old->found;
    change->version = old->found ? old->app.version + 1 : 1;
    return ERR_OK;
}

static enum err_code put(struct txn *txn, void *ctx, struct err *err)
{
    struct change *change = ctx;
    struct one old = {0};
    enum err_code rc = lock_old(txn, &change->key, &old, err);
    if (rc == ERR_OK)
        rc = put_over(txn, change, &old, err);
    app_done(&old.app);
    return rc;
}

enum err_code app_store_put(struct store *store, const struct app *app, uint32_t expect_version,
                            uint32_t *ret_version, bool *ret_made, struct err *err)
{
    struct change change = {
        .key = {app->tenant, app->id, app->app_version}, .app = app, .expect = expect_version};
    enum err_code rc = store_txn(store, put, &change, err);
    if (rc)
        return rc;
    *ret_version = change.version;
    *ret_made = change.made;
    return ERR_OK;
}

static enum err_code delete_app(struct txn *txn, void *ctx, struct err *err)
{
    struct change *change = ctx;
    struct one old = {0};
    bool again = change->tried && txn->commit_unknown;
    change->tried = true;
    enum err_code rc = lock_old(txn, &change->key, &old, err);
    if (rc == ERR_OK && !old.found && !again)
        rc = no_such_app(&change->key, err);
    if (rc == ERR_OK && old.found)
        rc = check_expected(change, &old, err);
    if (rc == ERR_OK && old.found)
        rc = db_exec(txn->db, DB_APP_DELETE, DB_ARGS(KEY_ARGS(&change->key)), NULL, err);
    app_done(&old.app);
    return rc;
}

enum err_code app_store_delete(struct store *store, const char *tenant, const char *id,
                               const char *app_version, uint32_t expect_version, struct err *err)
{
    struct change change = {.key = {tenant, id, app_version}, .expect = expect_version};
    return store_txn(store, delete_app, &change, err);
}

struct enabling {
    struct key key;
    bool enabled;
};

static enum err_code enable(struct txn *txn, void *ctx, struct err *err)
{
    const struct enabling *enabling = ctx;
    uint64_t rows = 0;
    enum err_code rc = db_exec(
        txn->db, DB_APP_ENABLE,
        DB_ARGS(db_u64(enabling->enabled), db_u64(enabling->enabled), KEY_ARGS(&enabling->key)),
        &rows, err);
    return rc || rows > 0 ? rc : no_such_app(&enabling->key, err);
}

enum err_code app_store_enable(struct store *store, const char *tenant, const char *id,
                               const char *app_version, bool enabled, struct err *err)
{
    struct enabling enabling = {{tenant, id, app_version}, enabled};
    return store_once(store, enable, &enabling, err);
}
