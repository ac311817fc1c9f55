/* SPDX-License-Identifier: MIT */
#include "common/store/quota_count.h"

static const char *const scope_texts[] = {
    [QUOTA_TENANT] = "tenant",
    [QUOTA_OWNER] = "owner",
    [QUOTA_SYSTEM] = "system",
    [QUOTA_SYSTEM_OWNER] = "system_owner",
};

const char *quota_scope_text(enum quota_scope scope)
{
    return scope_texts[scope];
}

bool quota_scope_parse(struct sv text, enum quota_scope *ret_scope)
{
    for (size_t i = 0; i < ARRAY_LEN(scope_texts); i++) {
        if (sv_is(text, scope_texts[i])) {
            *ret_scope = (enum quota_scope)i;
            return true;
        }
    }
    return false;
}

static enum err_code read_limit(struct txn *txn, const struct quota_key *whose, const char *owner,
                                bool lock, uint32_t *ret_limit, struct err *err)
{
    bool found = false;
    if (!owner || !*owner)
        return ERR_OK;
    return db_one(txn->db, lock ? DB_QUOTA_LIMIT_LOCK : DB_QUOTA_LIMIT,
                  DB_ARGS(db_text(whose->tenant), db_text(owner)), DB_COLS(COL_U32(ret_limit)),
                  &found, err);
}

/* Always in this order: system, tenant, owner. So nobody waits for somebody who waits for him. */
enum err_code quota_read_limits(struct txn *txn, const struct quota_key *whose, bool lock,
                                struct quota_limits *ret_limits, struct err *err)
{
    struct quota_limits limits = {0};
    bool found = false;
    enum err_code rc = ERR_OK;
    if (whose->system_id && *whose->system_id)
        rc = db_one(txn->db, lock ? DB_SYSTEM_LIMITS_LOCK : DB_SYSTEM_LIMITS,
                    DB_ARGS(db_text(whose->tenant), db_text(whose->system_id)),
                    DB_COLS(COL_U32(&limits.items[QUOTA_SYSTEM]),
                            COL_U32(&limits.items[QUOTA_SYSTEM_OWNER])),
                    &found, err);
    if (rc == ERR_OK)
        rc = read_limit(txn, whose, QUOTA_TENANT_OWNER, lock, &limits.items[QUOTA_TENANT], err);
    if (rc == ERR_OK)
        rc = read_limit(txn, whose, whose->owner, lock, &limits.items[QUOTA_OWNER], err);
    if (rc == ERR_OK)
        *ret_limits = limits;
    return rc;
}

enum err_code quota_count(struct txn *txn, const struct quota_key *whose, const struct uuid *but,
                          struct quota_counts *ret_counts, struct err *err)
{
    struct quota_counts counts = {0};
    bool found = false;
    enum err_code rc = db_one(
        txn->db, DB_ACTIVE_COUNTS,
        DB_ARGS(db_text(whose->owner), db_text(whose->system_id), db_text(whose->system_id),
                db_text(whose->owner), db_text(whose->tenant), db_uuid(but)),
        DB_COLS(COL_U32(&counts.items[QUOTA_TENANT]), COL_U32(&counts.items[QUOTA_OWNER]),
                COL_U32(&counts.items[QUOTA_SYSTEM]), COL_U32(&counts.items[QUOTA_SYSTEM_OWNER])),
        &found, err);
    if (rc == ERR_OK)
        *ret_counts = counts;
    return rc;
}

struct use {
    const struct quota_key *key;
    struct quota_limits limits;
    struct quota_counts counts;
};

static enum err_code read_use(struct txn *txn, void *ctx, struct err *err)
{
    struct use *use = ctx;
    enum err_code rc = quota_read_limits(txn, use->key, false, &use->limits, err);
    return rc ? rc : quota_count(txn, use->key, NULL, &use->counts, err);
}

enum err_code quota_store_use(struct store *store, const struct quota_key *key,
                              struct quota_use *ret_use, struct err *err)
{
    struct use use = {.key = key};
    enum err_code rc = store_once(store, read_use, &use, err);
    if (rc)
        return rc;
    uint32_t limit = use.limits.items[key->scope];
    uint32_t active = use.counts.items[key->scope];
    uint32_t room = limit > active ? limit - active : 0;
    *ret_use = (struct quota_use){.limit = limit ? limit : QUOTA_NO_LIMIT,
                                  .active = active,
                                  .room = limit ? room : QUOTA_NO_LIMIT};
    return ERR_OK;
}
