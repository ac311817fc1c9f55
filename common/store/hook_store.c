/* SPDX-License-Identifier: MIT */
#include "common/store/hook_store.h"

#include "common/store/pool.h"
#include "common/store/queue_store.h" /* QUEUE_MUST_BE_NEW */
#include "common/store/rows.h"

static enum err_code no_such_hook(const char *name, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "there is no subscription %s", name);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct hook_row {
    struct subscription item;
    char states[HOOK_STATES_SIZE];
};

#define HOOK_ROW_COLS(row)                                                                         \
    DB_COLS(COL_UUID(&(row)->item.id), COL_TEXT((row)->item.tenant), COL_UUID(&(row)->item.job),   \
            COL_TEXT((row)->item.name), COL_TEXT((row)->item.owner), COL_TEXT((row)->item.url),    \
            COL_TEXT((row)->states), COL_BOOL(&(row)->item.enabled),                               \
            COL_TEXT((row)->item.description), COL_TEXT((row)->item.secret_of),                    \
            COL_BOOL(&(row)->item.has_secret), COL_U32(&(row)->item.version),                      \
            COL_I64(&(row)->item.created_us), COL_I64(&(row)->item.updated_us))

struct list {
    const char *tenant;
    struct rows rows;
};

static enum err_code read_list(struct txn *txn, void *ctx, struct err *err)
{
    struct list *list = ctx;
    struct hook_row row;
    bool more = true;
    rows_clear(&list->rows);
    enum err_code rc =
        db_select(txn->db, DB_HOOK_LIST, DB_ARGS(db_text(list->tenant)), HOOK_ROW_COLS(&row), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        row.item.states = rc == ERR_OK && more ? hook_states_parse(row.states) : 0;
        if (rc == ERR_OK && more)
            rc = rows_add(&list->rows, &row.item, err);
    }
    db_end(txn->db);
    return rc;
}

enum err_code hook_store_list(struct store *store, const char *tenant,
                              struct subscription **ret_items, size_t *ret_count, struct err *err)
{
    struct list list = {.tenant = tenant, .rows = ROWS_OF(struct subscription)};
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
    const char *name;
    struct hook_row row;
    bool found;
};

static enum err_code read_one(struct txn *txn, void *ctx, struct err *err)
{
    struct one *one = ctx;
    enum err_code rc = db_one(txn->db, one->stmt, DB_ARGS(db_text(one->tenant), db_text(one->name)),
                              HOOK_ROW_COLS(&one->row), &one->found, err);
    if (rc == ERR_OK && one->found)
        one->row.item.states = hook_states_parse(one->row.states);
    return rc;
}

enum err_code hook_store_get(struct store *store, const char *tenant, const char *name,
                             struct subscription *ret_hook, struct err *err)
{
    struct one one = {.stmt = DB_HOOK_GET, .tenant = tenant, .name = name};
    enum err_code rc = store_once(store, read_one, &one, err);
    if (rc)
        return rc;
    if (!one.found)
        return no_such_hook(name, err);
    *ret_hook = one.row.item;
    return ERR_OK;
}

/* ---- changes -------------------------------------------------------------------------------- */

struct change {
    const char *tenant;
    const char *name;
    const struct subscription *what; /* NULL: delete */
    const uint8_t *seed;
    uint32_t expect;
    bool made;
    bool tried;
};

static enum err_code check_expected(const struct change *change, const struct one *old,
                                    struct err *err)
{
    if (change->expect == 0)
        return ERR_OK;
    if (change->expect == QUEUE_MUST_BE_NEW)
        return old->found
                   ? err_set(err, ERR_PRECONDITION, "subscription %s exists already", change->name)
                   : ERR_OK;
    if (!old->found)
        return err_set(err, ERR_PRECONDITION, "subscription %s does not exist", change->name);
    if (old->row.item.version != change->expect)
        return err_set(err, ERR_PRECONDITION,
                       "subscription %s is at version %u, not %u: read it again before you change "
                       "it",
                       change->name, old->row.item.version, change->expect);
    return ERR_OK;
}

static enum err_code check_count(struct txn *txn, const char *tenant, struct err *err)
{
    uint64_t count = 0;
    bool found = false;
    enum err_code rc = db_one(txn->db, DB_HOOK_COUNT, DB_ARGS(db_text(tenant)),
                              DB_COLS(COL_U64(&count)), &found, err);
    if (rc == ERR_OK && count >= HOOK_PER_TENANT_MAX)
        rc = err_set(err, ERR_STATE, "a tenant has at most %d subscriptions", HOOK_PER_TENANT_MAX);
    return rc;
}

static enum err_code insert(struct txn *txn, const struct change *change, struct err *err)
{
    const struct subscription *what = change->what;
    const struct uuid nil = {{0}};
    char states[HOOK_STATES_SIZE];
    struct err failed = {0};
    enum err_code rc = check_count(txn, change->tenant, err);
    if (rc)
        return rc;
    rc =
        db_exec(txn->db, DB_HOOK_INSERT,
                DB_ARGS(db_uuid(&what->id), db_text(change->tenant), db_uuid(&nil),
                        db_text(change->name), db_text(what->owner), db_text(what->url),
                        db_text(hook_states_text(what->states, states)), db_text(what->description),
                        db_null(), db_bytes(change->seed, HOOK_SEED_SIZE), db_uuid(&what->id)),
                NULL, &failed);
    if (rc == ERR_DUPLICATE) /* somebody else made it since we looked */
        txn->again = true;
    if (rc)
        *err = failed;
    return rc;
}

static enum err_code update(struct txn *txn, const struct change *change, struct err *err)
{
    const struct subscription *what = change->what;
    char states[HOOK_STATES_SIZE];
    return db_exec(txn->db, DB_HOOK_UPDATE,
                   DB_ARGS(db_text(what->url), db_text(hook_states_text(what->states, states)),
                           db_text(what->description), db_text(change->tenant),
                           db_text(change->name)),
                   NULL, err);
}

static enum err_code put(struct txn *txn, void *ctx, struct err *err)
{
    struct change *change = ctx;
    struct one old = {.stmt = DB_HOOK_LOCK, .tenant = change->tenant, .name = change->name};
    enum err_code rc = read_one(txn, &old, err);
    if (rc)
        return rc;
    /* Our own earlier try was committed after all: its id is ours alone. */
    if (txn->commit_unknown && old.found && uuid_eq(&old.row.item.id, &change->what->id))
        return ERR_OK;
    rc = check_expected(change, &old, err);
    if (rc)
        return rc;
    change->made = !old.found;
    return old.found ? update(txn, change, err) : insert(txn, change, err);
}

enum err_code hook_store_put(struct store *store, const struct subscription *what,
                             uint32_t expect_version, const uint8_t *seed, bool *ret_made,
                             struct err *err)
{
    struct change change = {.tenant = what->tenant,
                            .name = what->name,
                            .what = what,
                            .seed = seed,
                            .expect = expect_version};
    enum err_code rc = store_txn(store, put, &change, err);
    if (rc == ERR_OK)
        *ret_made = change.made;
    return rc;
}

static enum err_code delete_hook(struct txn *txn, void *ctx, struct err *err)
{
    struct change *change = ctx;
    struct one old = {.stmt = DB_HOOK_LOCK, .tenant = change->tenant, .name = change->name};
    bool again = change->tried && txn->commit_unknown;
    change->tried = true;
    enum err_code rc = read_one(txn, &old, err);
    if (rc)
        return rc;
    if (!old.found)
        return again ? ERR_OK : no_such_hook(change->name, err);
    rc = check_expected(change, &old, err);
    if (rc)
        return rc;
    return db_exec(txn->db, DB_HOOK_DELETE, DB_ARGS(db_text(change->tenant), db_text(change->name)),
                   NULL, err);
}

enum err_code hook_store_delete(struct store *store, const char *tenant, const char *name,
                                uint32_t expect_version, struct err *err)
{
    struct change change = {.tenant = tenant, .name = name, .expect = expect_version};
    return store_txn(store, delete_hook, &change, err);
}

/* ---- enabling and disabling -------------------------------------------------------------------
 */

#define DROP_ROWS 500 /* in one transaction */

struct switching {
    const char *tenant;
    const char *name;
    bool enabled;
    bool more; /* answer: there is more to drop first */
};

/* What is due goes last: nothing else leads to what is held. */
static enum err_code drop_some(struct txn *txn, const struct uuid *hook, bool *ret_more,
                               struct err *err)
{
    static const char *const states[] = {"held", "due"};
    enum err_code rc = ERR_OK;
    *ret_more = false;
    for (size_t i = 0; i < ARRAY_LEN(states) && rc == ERR_OK && !*ret_more; i++) {
        uint64_t rows = 0;
        rc = db_exec(txn->db, DB_HOOK_DROP,
                     DB_ARGS(db_text(states[i]), db_uuid(hook), db_u64(DROP_ROWS)), &rows, err);
        *ret_more = rows == DROP_ROWS;
    }
    return rc;
}

/* Under the lock of the sender, so that it makes nothing of the events from before meanwhile: what
 * waited is gone when the subscription is enabled again. */
static enum err_code switch_hook(struct txn *txn, void *ctx, struct err *err)
{
    struct switching *to = ctx;
    struct one old = {.stmt = DB_HOOK_LOCK, .tenant = to->tenant, .name = to->name};
    const struct db_arg enabled = db_u64(to->enabled);
    uint64_t seq = 0;
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_SENDER_HOLD, DB_NO_ARGS, DB_COLS(COL_U64(&seq)), &found, err);
    if (rc == ERR_OK)
        rc = read_one(txn, &old, err);
    if (rc == ERR_OK && !old.found)
        rc = no_such_hook(to->name, err);
    to->more = false;
    if (rc == ERR_OK && !(to->enabled && old.row.item.enabled))
        rc = drop_some(txn, &old.row.item.id, &to->more, err);
    if (rc || (to->enabled && to->more))
        return rc;
    return db_exec(txn->db, DB_HOOK_ENABLE,
                   DB_ARGS(enabled, enabled, enabled, db_text(to->tenant), db_text(to->name)), NULL,
                   err);
}

enum err_code hook_store_enable(struct store *store, const char *tenant, const char *name,
                                bool enabled, struct err *err)
{
    struct switching to = {.tenant = tenant, .name = name, .enabled = enabled, .more = true};
    enum err_code rc = ERR_OK;
    while (rc == ERR_OK && to.more)
        rc = store_txn(store, switch_hook, &to, err);
    return rc;
}

/* ---- a new secret ---------------------------------------------------------------------------- */

struct rotating {
    const char *tenant;
    const char *name;
    const uint8_t *seed;
    uint32_t keep_s;
};

static enum err_code rotate(struct txn *txn, void *ctx, struct err *err)
{
    const struct rotating *to = ctx;
    const struct db_arg seed = db_bytes(to->seed, HOOK_SEED_SIZE);
    uint64_t rows = 0;
    enum err_code rc = db_exec(
        txn->db, DB_HOOK_ROTATE,
        DB_ARGS(seed, db_u64(to->keep_s), seed, seed, db_text(to->tenant), db_text(to->name)),
        &rows, err);
    return rc || rows > 0 ? rc : no_such_hook(to->name, err);
}

enum err_code hook_store_rotate(struct store *store, const char *tenant, const char *name,
                                const uint8_t *seed, uint32_t keep_s, struct err *err)
{
    struct rotating to = {.tenant = tenant, .name = name, .seed = seed, .keep_s = keep_s};
    return store_txn(store, rotate, &to, err);
}
