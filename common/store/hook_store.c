/* SPDX-License-Identifier: MIT */
#include "common/store/hook_store.h"

#include "common/store/named.h"

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

static enum err_code read_states(void *row, struct err *err)
{
    struct hook_row *hook = row;
    (void)err;
    hook->item.states = hook_states_parse(hook->states);
    return ERR_OK;
}

static const struct named_kind hooks = {.noun = "subscription",
                                        .version = "version",
                                        .get = DB_HOOK_GET,
                                        .lock = DB_HOOK_LOCK,
                                        .same = DB_HOOK_SAME,
                                        .insert = DB_HOOK_INSERT,
                                        .update = DB_HOOK_UPDATE,
                                        .remove = DB_HOOK_DELETE};

static struct named hook_of(const char *tenant, const char *name)
{
    return (struct named){
        .kind = &hooks, .name = name, .key = {db_text(tenant), db_text(name)}, .key_count = 2};
}

enum err_code hook_store_list(struct store *store, const char *tenant,
                              struct subscription **ret_items, size_t *ret_count, struct err *err)
{
    struct hook_row row;
    struct rows rows = ROWS_OF(struct subscription);
    struct reading reading = {.stmt = DB_HOOK_LIST,
                              .args = DB_ARGS(db_text(tenant)),
                              .cols = HOOK_ROW_COLS(&row),
                              .row = &row,
                              .complete = read_states,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_items = rows_take(&rows);
    return ERR_OK;
}

enum err_code hook_store_get(struct store *store, const char *tenant, const char *name,
                             struct subscription *ret_hook, struct err *err)
{
    const struct named of = hook_of(tenant, name);
    struct hook_row row;
    enum err_code rc = named_get(store, &of, HOOK_ROW_COLS(&row), err);
    if (rc == ERR_OK)
        rc = read_states(&row, err);
    if (rc == ERR_OK)
        *ret_hook = row.item;
    return rc;
}

/* ---- changes -------------------------------------------------------------------------------- */

struct change {
    struct named_change named;
    struct db_args update;
    const struct subscription *what;
    const uint8_t *seed;
};

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
    enum err_code rc = check_count(txn, what->tenant, err);
    if (rc)
        return rc;
    return named_write(txn, DB_HOOK_INSERT,
                       DB_ARGS(db_uuid(&what->id), db_text(what->tenant), db_uuid(&nil),
                               db_text(what->name), db_text(what->owner), db_text(what->url),
                               db_text(hook_states_text(what->states, states)),
                               db_text(what->description), db_null(),
                               db_bytes(change->seed, HOOK_SEED_SIZE), db_uuid(&what->id)),
                       err);
}

static enum err_code put(struct txn *txn, void *ctx, struct err *err)
{
    struct change *change = ctx;
    enum err_code rc = named_look(txn, &change->named, err);
    if (rc || change->named.done)
        return rc;
    return change->named.made ? insert(txn, change, err)
                              : named_write(txn, DB_HOOK_UPDATE, change->update, err);
}

enum err_code hook_store_put(struct store *store, const struct subscription *what,
                             uint32_t expect_version, const uint8_t *seed, bool *ret_made,
                             struct err *err)
{
    char states[HOOK_STATES_SIZE];
    const struct db_arg values[] = {
        db_text(what->url),         db_text(hook_states_text(what->states, states)),
        db_text(what->description), db_text(what->tenant),
        db_text(what->name),        db_uuid(&what->id)};
    struct change change = {.named = {.of = hook_of(what->tenant, what->name),
                                      .expect = expect_version,
                                      .values = {values, ARRAY_LEN(values)}},
                            .update = {values, ARRAY_LEN(values) - 1}, /* an id stays */
                            .what = what,
                            .seed = seed};
    enum err_code rc = store_txn(store, put, &change, err);
    if (rc == ERR_OK)
        *ret_made = change.named.made;
    return rc;
}

enum err_code hook_store_delete(struct store *store, const char *tenant, const char *name,
                                uint32_t expect_version, struct err *err)
{
    struct named_change change = {.of = hook_of(tenant, name), .expect = expect_version};
    return named_delete(store, &change, err);
}

/* ---- enabling and disabling ------------------------------------------------------------------ */

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
    const struct named of = hook_of(to->tenant, to->name);
    const struct db_arg enabled = db_u64(to->enabled);
    struct uuid id = {{0}};
    bool was_enabled = false;
    uint64_t seq = 0;
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_SENDER_HOLD, DB_NO_ARGS, DB_COLS(COL_U64(&seq)), &found, err);
    if (rc == ERR_OK)
        rc = db_one(txn->db, DB_HOOK_SWITCH_LOCK, named_key(&of),
                    DB_COLS(COL_UUID(&id), COL_BOOL(&was_enabled)), &found, err);
    if (rc == ERR_OK && !found)
        rc = named_missing(&of, err);
    to->more = false;
    if (rc == ERR_OK && !(to->enabled && was_enabled))
        rc = drop_some(txn, &id, &to->more, err);
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

enum err_code hook_store_rotate(struct store *store, const char *tenant, const char *name,
                                const uint8_t *seed, uint32_t keep_s, struct err *err)
{
    const struct named of = hook_of(tenant, name);
    const struct db_arg to = db_bytes(seed, HOOK_SEED_SIZE);
    return named_exec(store, &of, DB_HOOK_ROTATE,
                      DB_ARGS(to, db_u64(keep_s), to, to, db_text(tenant), db_text(name)), err);
}
