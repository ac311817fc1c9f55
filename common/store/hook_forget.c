/* SPDX-License-Identifier: MIT */
#include "common/store/hook_lead.h"

#define FORGET_ROWS 100
#define LOOK_ROWS 500 /* more than the subscriptions of one job */

struct forgetting {
    const struct hook_lead *lead;
    uint32_t hours;
    uint64_t seq;      /* the history was looked through up to there */
    struct uuid from;  /* behind this job */
    struct uuid after; /* the last one that was looked at, nil: all were */
    struct uuid deliveries[FORGET_ROWS];
    size_t delivery_count;
    struct hook_row {
        struct uuid id;
        struct uuid job;
        bool is_old;
    } hooks[LOOK_ROWS];
    size_t hook_count;
};

static enum err_code read_old(struct txn *txn, struct forgetting *old, struct err *err)
{
    struct uuid id;
    bool more = true;
    old->delivery_count = 0;
    enum err_code rc =
        db_select(txn->db, DB_DELIVERY_OLD, DB_ARGS(db_u64(old->hours), db_u64(FORGET_ROWS)),
                  DB_COLS(COL_UUID(&id)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more && old->delivery_count < FORGET_ROWS)
            old->deliveries[old->delivery_count++] = id;
    }
    db_end(txn->db);
    return rc;
}

/* As many as were asked for: the last job may have more, and is looked at with the next ones. */
static void cut_last_job(struct forgetting *old)
{
    const struct uuid last = old->hooks[old->hook_count - 1].job;
    while (old->hook_count > 1 && uuid_eq(&old->hooks[old->hook_count - 1].job, &last))
        old->hook_count--;
    old->after = old->hooks[old->hook_count - 1].job;
}

static enum err_code read_old_hooks(struct txn *txn, struct forgetting *old, struct err *err)
{
    struct hook_row row;
    bool more = true;
    old->hook_count = 0;
    enum err_code rc = db_select(
        txn->db, DB_HOOK_OLD,
        DB_ARGS(db_u64(old->hours), db_u64(old->seq), db_uuid(&old->from), db_u64(LOOK_ROWS)),
        DB_COLS(COL_UUID(&row.id), COL_UUID(&row.job), COL_BOOL(&row.is_old)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more && old->hook_count < LOOK_ROWS)
            old->hooks[old->hook_count++] = row;
    }
    db_end(txn->db);
    old->after = (struct uuid){{0}};
    if (old->hook_count == LOOK_ROWS)
        cut_last_job(old);
    return rc;
}

static enum err_code forget(struct txn *txn, void *ctx, struct err *err)
{
    struct forgetting *old = ctx;
    enum err_code rc = hook_lead_lock(txn, old->lead, &old->seq, err);
    if (rc == ERR_OK)
        rc = read_old(txn, old, err);
    if (rc == ERR_OK)
        rc = read_old_hooks(txn, old, err);
    for (size_t i = 0; i < old->delivery_count && rc == ERR_OK; i++) {
        const struct db_args id = DB_ARGS(db_uuid(&old->deliveries[i]));
        rc = db_exec(txn->db, DB_ATTEMPTS_DELETE, id, NULL, err);
        if (rc == ERR_OK)
            rc = db_exec(txn->db, DB_DELIVERY_DELETE, id, NULL, err);
    }
    for (size_t i = 0; i < old->hook_count && rc == ERR_OK; i++) {
        if (old->hooks[i].is_old)
            rc =
                db_exec(txn->db, DB_HOOK_DELETE_ID, DB_ARGS(db_uuid(&old->hooks[i].id)), NULL, err);
    }
    return rc;
}

enum err_code hook_forget(struct store *store, const struct hook_lead *lead, uint32_t hours,
                          struct uuid *after, bool *ret_more, struct err *err)
{
    struct forgetting *old = calloc(1, sizeof(*old));
    if (!old)
        return err_set(err, ERR_NOMEM, "out of memory");
    *old = (struct forgetting){.lead = lead, .hours = hours, .from = *after};
    enum err_code rc = store_txn(store, forget, old, err);
    if (rc == ERR_OK) {
        *after = old->after;
        *ret_more = old->delivery_count == FORGET_ROWS || !uuid_is_nil(after);
    }
    free(old);
    return rc;
}

struct waiting {
    uint64_t count;
    int64_t age_us;
};

static enum err_code count_waiting(struct txn *txn, void *ctx, struct err *err)
{
    struct waiting *waiting = ctx;
    bool found = false;
    return db_one(txn->db, DB_DELIVERY_WAITING, DB_ARGS(db_u64(HOOK_COUNT_MAX)),
                  DB_COLS(COL_U64(&waiting->count), COL_I64(&waiting->age_us)), &found, err);
}

enum err_code hook_waiting(struct store *store, uint64_t *ret_count, int64_t *ret_age_us,
                           struct err *err)
{
    struct waiting waiting = {0};
    enum err_code rc = store_once(store, count_waiting, &waiting, err);
    if (rc)
        return rc;
    *ret_count = waiting.count;
    *ret_age_us = waiting.age_us;
    return ERR_OK;
}

static enum err_code look_for_any(struct txn *txn, void *ctx, struct err *err)
{
    bool found = false;
    return db_one(txn->db, DB_HOOK_ANY, DB_NO_ARGS, DB_COLS(COL_BOOL((bool *)ctx)), &found, err);
}

enum err_code hook_any(struct store *store, bool *ret_any, struct err *err)
{
    return store_once(store, look_for_any, ret_any, err);
}

static enum err_code find_failing(struct txn *txn, void *ctx, struct err *err)
{
    struct hook_failing *failing = ctx;
    return db_one(txn->db, DB_DELIVERY_FAILING, DB_ARGS(db_u64(failing->attempts)),
                  DB_COLS(COL_TEXT(failing->tenant), COL_TEXT(failing->name),
                          COL_U32(&failing->attempts), COL_TEXT(failing->error)),
                  &failing->found, err);
}

enum err_code hook_failing(struct store *store, uint32_t attempts, struct hook_failing *ret_failing,
                           struct err *err)
{
    struct hook_failing failing = {.attempts = attempts};
    enum err_code rc = store_once(store, find_failing, &failing, err);
    if (rc == ERR_OK)
        *ret_failing = failing;
    return rc;
}
