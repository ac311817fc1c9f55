/* SPDX-License-Identifier: MIT */
#include "common/store/system_store.h"

#include "common/store/pool.h"
#include "common/store/queue_store.h" /* QUEUE_MUST_BE_NEW */
#include "common/store/rows.h"

#define SYSTEM_ROW_COLS(row)                                                                       \
    DB_COLS(COL_TEXT((row)->tenant), COL_TEXT((row)->id), COL_TEXT((row)->kind),                   \
            COL_BOOL(&(row)->enabled), COL_U32(&(row)->max_active),                                \
            COL_U32(&(row)->max_active_per_owner), COL_TEXT((row)->description),                   \
            COL_U32(&(row)->version), COL_I64(&(row)->created_us), COL_I64(&(row)->updated_us))

static enum err_code no_such_system(const char *id, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "there is no system %s", id);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct list {
    const char *tenant;
    struct rows rows;
};

static enum err_code read_list(struct txn *txn, void *ctx, struct err *err)
{
    struct list *list = ctx;
    struct job_system row;
    bool more = true;
    rows_clear(&list->rows);
    enum err_code rc = db_select(txn->db, DB_SYSTEM_LIST, DB_ARGS(db_text(list->tenant)),
                                 SYSTEM_ROW_COLS(&row), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = rows_add(&list->rows, &row, err);
    }
    db_end(txn->db);
    return rc;
}

enum err_code system_store_list(struct store *store, const char *tenant,
                                struct job_system **ret_items, size_t *ret_count, struct err *err)
{
    struct list list = {.tenant = tenant, .rows = ROWS_OF(struct job_system)};
    enum err_code rc = store_once(store, read_list, &list, err);
    if (rc == ERR_OK) {
        *ret_count = list.rows.count;
        *ret_items = rows_take(&list.rows);
    }
    rows_done(&list.rows);
    return rc;
}

struct one {
    enum db_stmt_id stmt; /* GET or LOCK */
    const char *tenant;
    const char *id;
    struct job_system row;
    bool found;
};

static enum err_code read_one(struct txn *txn, void *ctx, struct err *err)
{
    struct one *one = ctx;
    return db_one(txn->db, one->stmt, DB_ARGS(db_text(one->tenant), db_text(one->id)),
                  SYSTEM_ROW_COLS(&one->row), &one->found, err);
}

enum err_code system_store_get(struct store *store, const char *tenant, const char *id,
                               struct job_system *ret_system, struct err *err)
{
    struct one one = {.stmt = DB_SYSTEM_GET, .tenant = tenant, .id = id};
    enum err_code rc = store_once(store, read_one, &one, err);
    if (rc)
        return rc;
    if (!one.found)
        return no_such_system(id, err);
    *ret_system = one.row;
    return ERR_OK;
}

/* ---- changes -------------------------------------------------------------------------------- */

struct change {
    const char *tenant;
    const char *id;
    const struct job_system *what; /* NULL: delete */
    uint32_t expect;
    uint32_t version; /* of the row that this, or an earlier try, wrote */
    bool made;
    bool tried;
};

static enum err_code check_expected(const struct change *change, const struct one *old,
                                    struct err *err)
{
    if (change->expect == 0)
        return ERR_OK;
    if (change->expect == QUEUE_MUST_BE_NEW)
        return old->found ? err_set(err, ERR_PRECONDITION, "system %s exists already", change->id)
                          : ERR_OK;
    if (!old->found)
        return err_set(err, ERR_PRECONDITION, "system %s does not exist", change->id);
    if (old->row.version != change->expect)
        return err_set(err, ERR_PRECONDITION,
                       "system %s is at version %u, not %u: read it again before you change it",
                       change->id, old->row.version, change->expect);
    return ERR_OK;
}

static bool same_system(const struct job_system *a, const struct job_system *b)
{
    return strcmp(a->kind, b->kind) == 0 && a->max_active == b->max_active &&
           a->max_active_per_owner == b->max_active_per_owner &&
           strcmp(a->description, b->description) == 0;
}

static enum err_code write_system(struct txn *txn, const struct change *change, bool is_new,
                                  struct err *err)
{
    const struct job_system *what = change->what;
    struct err failed = {0};
    enum err_code rc = db_exec(
        txn->db, is_new ? DB_SYSTEM_INSERT : DB_SYSTEM_UPDATE,
        DB_ARGS(db_text(what->kind), db_u64(what->max_active), db_u64(what->max_active_per_owner),
                db_text(what->description), db_text(change->tenant), db_text(change->id)),
        NULL, &failed);
    if (rc == ERR_DUPLICATE) /* somebody else made it since we looked */
        txn->again = true;
    if (rc)
        *err = failed;
    return rc;
}

static enum err_code put(struct txn *txn, void *ctx, struct err *err)
{
    struct change *change = ctx;
    struct one old = {.stmt = DB_SYSTEM_LOCK, .tenant = change->tenant, .id = change->id};
    enum err_code rc = read_one(txn, &old, err);
    if (rc)
        return rc;
    /* Our own earlier try was committed after all. */
    if (txn->commit_unknown && old.found && old.row.version == change->version &&
        same_system(&old.row, change->what))
        return ERR_OK;
    rc = check_expected(change, &old, err);
    if (rc == ERR_OK)
        rc = write_system(txn, change, !old.found, err);
    if (rc)
        return rc;
    change->made = !old.found;
    change->version = old.found ? old.row.version + 1 : 1;
    return ERR_OK;
}

enum err_code system_store_put(struct store *store, const struct job_system *what,
                               uint32_t expect_version, uint32_t *ret_version, bool *ret_made,
                               struct err *err)
{
    struct change change = {
        .tenant = what->tenant, .id = what->id, .what = what, .expect = expect_version};
    enum err_code rc = store_txn(store, put, &change, err);
    if (rc)
        return rc;
    *ret_version = change.version;
    *ret_made = change.made;
    return ERR_OK;
}

static enum err_code delete_system(struct txn *txn, void *ctx, struct err *err)
{
    struct change *change = ctx;
    struct one old = {.stmt = DB_SYSTEM_LOCK, .tenant = change->tenant, .id = change->id};
    bool again = change->tried && txn->commit_unknown;
    change->tried = true;
    enum err_code rc = read_one(txn, &old, err);
    if (rc)
        return rc;
    if (!old.found)
        return again ? ERR_OK : no_such_system(change->id, err);
    rc = check_expected(change, &old, err);
    if (rc)
        return rc;
    return db_exec(txn->db, DB_SYSTEM_DELETE, DB_ARGS(db_text(change->tenant), db_text(change->id)),
                   NULL, err);
}

enum err_code system_store_delete(struct store *store, const char *tenant, const char *id,
                                  uint32_t expect_version, struct err *err)
{
    struct change change = {.tenant = tenant, .id = id, .expect = expect_version};
    return store_txn(store, delete_system, &change, err);
}

struct enabling {
    const char *tenant;
    const char *id;
    bool enabled;
};

static enum err_code enable(struct txn *txn, void *ctx, struct err *err)
{
    const struct enabling *enabling = ctx;
    uint64_t rows = 0;
    enum err_code rc = db_exec(txn->db, DB_SYSTEM_ENABLE,
                               DB_ARGS(db_u64(enabling->enabled), db_u64(enabling->enabled),
                                       db_text(enabling->tenant), db_text(enabling->id)),
                               &rows, err);
    return rc || rows > 0 ? rc : no_such_system(enabling->id, err);
}

enum err_code system_store_enable(struct store *store, const char *tenant, const char *id,
                                  bool enabled, struct err *err)
{
    struct enabling enabling = {tenant, id, enabled};
    return store_once(store, enable, &enabling, err);
}
