/* SPDX-License-Identifier: MIT */
#include "common/store/quota_store.h"

#include "common/store/pool.h"
#include "common/store/queue_store.h" /* QUEUE_MUST_BE_NEW */
#include "common/store/quota_count.h"
#include "common/store/rows.h"
#include "common/store/system_store.h"

#define QUOTA_ROW_COLS(row)                                                                        \
    DB_COLS(COL_TEXT((row)->tenant), COL_TEXT((row)->owner), COL_U32(&(row)->max_active),          \
            COL_U32(&(row)->version), COL_I64(&(row)->created_us), COL_I64(&(row)->updated_us))

static const char *whose(const char *owner)
{
    return strcmp(owner, QUOTA_TENANT_OWNER) == 0 ? "the tenant" : owner;
}

static enum err_code no_such_quota(const char *owner, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "there is no quota for %s", whose(owner));
}

/* ---- reading -------------------------------------------------------------------------------- */

struct list {
    const char *tenant;
    struct rows rows;
};

static enum err_code read_list(struct txn *txn, void *ctx, struct err *err)
{
    struct list *list = ctx;
    struct quota row;
    bool more = true;
    rows_clear(&list->rows);
    enum err_code rc = db_select(txn->db, DB_QUOTA_LIST, DB_ARGS(db_text(list->tenant)),
                                 QUOTA_ROW_COLS(&row), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = rows_add(&list->rows, &row, err);
    }
    db_end(txn->db);
    return rc;
}

enum err_code quota_store_list(struct store *store, const char *tenant, struct quota **ret_items,
                               size_t *ret_count, struct err *err)
{
    struct list list = {.tenant = tenant, .rows = ROWS_OF(struct quota)};
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
    const char *owner;
    struct quota row;
    bool found;
};

static enum err_code read_one(struct txn *txn, void *ctx, struct err *err)
{
    struct one *one = ctx;
    return db_one(txn->db, one->stmt, DB_ARGS(db_text(one->tenant), db_text(one->owner)),
                  QUOTA_ROW_COLS(&one->row), &one->found, err);
}

enum err_code quota_store_get(struct store *store, const char *tenant, const char *owner,
                              struct quota *ret_quota, struct err *err)
{
    struct one one = {.stmt = DB_QUOTA_GET, .tenant = tenant, .owner = owner};
    enum err_code rc = store_once(store, read_one, &one, err);
    if (rc)
        return rc;
    if (!one.found)
        return no_such_quota(owner, err);
    *ret_quota = one.row;
    return ERR_OK;
}

/* ---- changes -------------------------------------------------------------------------------- */

struct change {
    const char *tenant;
    const char *owner;
    uint32_t max_active; /* 0: delete */
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
        return old->found ? err_set(err, ERR_PRECONDITION, "there is a quota for %s already",
                                    whose(change->owner))
                          : ERR_OK;
    if (!old->found)
        return err_set(err, ERR_PRECONDITION, "there is no quota for %s", whose(change->owner));
    if (old->row.version != change->expect)
        return err_set(err, ERR_PRECONDITION,
                       "the quota for %s is at version %u, not %u: read it again before you "
                       "change it",
                       whose(change->owner), old->row.version, change->expect);
    return ERR_OK;
}

static enum err_code write_quota(struct txn *txn, const struct change *change, bool is_new,
                                 struct err *err)
{
    struct err failed = {0};
    enum err_code rc = db_exec(
        txn->db, is_new ? DB_QUOTA_INSERT : DB_QUOTA_UPDATE,
        DB_ARGS(db_u64(change->max_active), db_text(change->tenant), db_text(change->owner)), NULL,
        &failed);
    if (rc == ERR_DUPLICATE) /* somebody else made it since we looked */
        txn->again = true;
    if (rc)
        *err = failed;
    return rc;
}

static enum err_code put(struct txn *txn, void *ctx, struct err *err)
{
    struct change *change = ctx;
    struct one old = {.stmt = DB_QUOTA_LOCK, .tenant = change->tenant, .owner = change->owner};
    enum err_code rc = read_one(txn, &old, err);
    if (rc)
        return rc;
    /* Our own earlier try was committed after all. */
    if (txn->commit_unknown && old.found && old.row.version == change->version &&
        old.row.max_active == change->max_active)
        return ERR_OK;
    rc = check_expected(change, &old, err);
    if (rc == ERR_OK)
        rc = write_quota(txn, change, !old.found, err);
    if (rc)
        return rc;
    change->made = !old.found;
    change->version = old.found ? old.row.version + 1 : 1;
    return ERR_OK;
}

enum err_code quota_store_put(struct store *store, const struct quota *quota,
                              uint32_t expect_version, uint32_t *ret_version, bool *ret_made,
                              struct err *err)
{
    struct change change = {.tenant = quota->tenant,
                            .owner = quota->owner,
                            .max_active = quota->max_active,
                            .expect = expect_version};
    enum err_code rc = store_txn(store, put, &change, err);
    if (rc)
        return rc;
    *ret_version = change.version;
    *ret_made = change.made;
    return ERR_OK;
}

static enum err_code delete_quota(struct txn *txn, void *ctx, struct err *err)
{
    struct change *change = ctx;
    struct one old = {.stmt = DB_QUOTA_LOCK, .tenant = change->tenant, .owner = change->owner};
    bool again = change->tried && txn->commit_unknown;
    change->tried = true;
    enum err_code rc = read_one(txn, &old, err);
    if (rc)
        return rc;
    if (!old.found)
        return again ? ERR_OK : no_such_quota(change->owner, err);
    rc = check_expected(change, &old, err);
    if (rc)
        return rc;
    return db_exec(txn->db, DB_QUOTA_DELETE,
                   DB_ARGS(db_text(change->tenant), db_text(change->owner)), NULL, err);
}

enum err_code quota_store_delete(struct store *store, const char *tenant, const char *owner,
                                 uint32_t expect_version, struct err *err)
{
    struct change change = {.tenant = tenant, .owner = owner, .expect = expect_version};
    return store_txn(store, delete_quota, &change, err);
}
