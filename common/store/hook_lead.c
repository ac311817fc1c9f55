/* SPDX-License-Identifier: MIT */
#include "common/store/hook_lead.h"

static enum err_code look(struct txn *txn, void *ctx, struct err *err)
{
    struct hook_sender *sender = ctx;
    bool found = false;
    return db_one(txn->db, DB_SENDER_GET, DB_NO_ARGS,
                  DB_COLS(COL_U64(&sender->fencing), COL_BOOL(&sender->has_holder),
                          COL_U64(&sender->beat), COL_U64(&sender->seq)),
                  &found, err);
}

enum err_code hook_sender_look(struct store *store, struct hook_sender *ret_sender, struct err *err)
{
    struct hook_sender sender = {0};
    enum err_code rc = store_once(store, look, &sender, err);
    if (rc == ERR_OK)
        *ret_sender = sender;
    return rc;
}

struct taking {
    const struct hook_sender *seen;
    const struct uuid *holder;
};

static enum err_code take(struct txn *txn, void *ctx, struct err *err)
{
    const struct taking *taking = ctx;
    uint64_t rows = 0;
    enum err_code rc = db_exec(
        txn->db, DB_SENDER_TAKE,
        DB_ARGS(db_uuid(taking->holder), db_u64(taking->seen->fencing), db_u64(taking->seen->beat)),
        &rows, err);
    return rc || rows > 0 ? rc : err_set(err, ERR_CONFLICT, "another process sends webhooks now");
}

enum err_code hook_lead_take(struct store *store, const struct hook_sender *seen,
                             struct hook_lead *lead, struct err *err)
{
    struct taking taking = {seen, &lead->holder};
    enum err_code rc = store_txn(store, take, &taking, err);
    if (rc == ERR_OK)
        lead->fencing = seen->fencing + 1;
    return rc;
}

static enum err_code fenced(struct txn *txn, const struct hook_lead *lead, struct err *err)
{
    store_count_fenced(txn->store);
    return err_set(err, ERR_FENCED,
                   "another process sends webhooks now; fencing number %llu is old",
                   (unsigned long long)lead->fencing);
}

static enum err_code lead_exec(struct txn *txn, const struct hook_lead *lead, enum db_stmt_id stmt,
                               struct err *err)
{
    uint64_t rows = 0;
    enum err_code rc =
        db_exec(txn->db, stmt, DB_ARGS(db_u64(lead->fencing), db_uuid(&lead->holder)), &rows, err);
    return rc || rows > 0 ? rc : fenced(txn, lead, err);
}

static enum err_code beat(struct txn *txn, void *ctx, struct err *err)
{
    return lead_exec(txn, ctx, DB_SENDER_BEAT, err);
}

static enum err_code leave(struct txn *txn, void *ctx, struct err *err)
{
    return lead_exec(txn, ctx, DB_SENDER_LEAVE, err);
}

enum err_code hook_lead_beat(struct store *store, const struct hook_lead *lead, struct err *err)
{
    struct hook_lead copy = *lead;
    return store_once(store, beat, &copy, err);
}

enum err_code hook_lead_leave(struct store *store, const struct hook_lead *lead, struct err *err)
{
    struct hook_lead copy = *lead;
    return store_once(store, leave, &copy, err);
}

enum err_code hook_lead_lock(struct txn *txn, const struct hook_lead *lead, uint64_t *ret_seq,
                             struct err *err)
{
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_SENDER_LOCK, DB_ARGS(db_u64(lead->fencing), db_uuid(&lead->holder)),
               DB_COLS(COL_U64(ret_seq)), &found, err);
    return rc || found ? rc : fenced(txn, lead, err);
}
