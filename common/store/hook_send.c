/* SPDX-License-Identifier: MIT */
#include "common/store/hook_send.h"

#include "common/base/fault.h"
#include "common/store/hook_lead.h"
#include "common/store/reading.h"

#define DROP_ROWS 500
#define LATE_ROWS 100

/* ---- sending --------------------------------------------------------------------------------- */

struct lanes {
    const struct uuid *after;
    struct hook_lane *items;
    size_t count;
};

static enum err_code read_lanes(struct txn *txn, void *ctx, struct err *err)
{
    struct lanes *lanes = ctx;
    struct hook_lane lane;
    bool more = true;
    lanes->count = 0;
    enum err_code rc = db_select(txn->db, DB_DELIVERY_LANES,
                                 DB_ARGS(db_uuid(lanes->after), db_u64(HOOK_LANES_MAX)),
                                 DB_COLS(COL_UUID(&lane.id), COL_TEXT(lane.tenant)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more && lanes->count < HOOK_LANES_MAX)
            lanes->items[lanes->count++] = lane;
    }
    db_end(txn->db);
    return rc;
}

enum err_code hook_lanes(struct store *store, const struct uuid *after,
                         struct hook_lane ret_lanes[HOOK_LANES_MAX], size_t *ret_count,
                         struct err *err)
{
    struct lanes lanes = {.after = after, .items = ret_lanes};
    enum err_code rc = store_once(store, read_lanes, &lanes, err);
    if (rc == ERR_OK)
        *ret_count = lanes.count;
    return rc;
}

static void free_bodies(struct rows *rows)
{
    struct hook_delivery *items = rows->items;
    for (size_t i = 0; i < rows->count; i++)
        free(items[i].body);
    rows_clear(rows);
}

#define SEED_COL(array, has) ((struct db_col){DB_COL_BYTES, (array), sizeof(array), (has)})

enum err_code hook_due(struct store *store, const struct uuid *lane, uint32_t limit,
                       struct hook_delivery **ret_items, size_t *ret_count, struct err *err)
{
    struct hook_delivery row = {.body = NULL};
    struct rows rows = ROWS_OF(struct hook_delivery);
    struct reading reading = {
        .stmt = DB_DELIVERY_DUE,
        .args = DB_ARGS(db_uuid(lane), db_u64(limit)),
        .cols =
            DB_COLS(COL_UUID(&row.id), COL_UUID(&row.subscription), COL_TEXT(row.tenant),
                    COL_UUID(&row.job), COL_TEXT(row.event), COL_U32(&row.attempts),
                    COL_I64(&row.age_us), COL_HEAP(&row.body), COL_BOOL(&row.is_wanted),
                    COL_TEXT(row.url), COL_BOOL(&row.lacks_secret),
                    SEED_COL(row.seed, &row.has_seed), SEED_COL(row.old_seed, &row.has_old_seed)),
        .row = &row,
        .clear = free_bodies,
        .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    FAULT("webhook.due_read");
    free(row.body);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_items = rows_take(&rows);
    for (size_t i = 0; i < *ret_count; i++)
        (*ret_items)[i].lane = *lane;
    return ERR_OK;
}

/* ---- what came of it ---------------------------------------------------------------------------
 */

struct recording {
    const struct hook_lead *lead;
    const struct hook_result *results;
    size_t count;
};

/* The next event of the job is due, unless another one is on its way (sent again by hand). */
static enum err_code free_next(struct txn *txn, const struct hook_delivery *of, struct err *err)
{
    const struct db_args chain = DB_ARGS(db_uuid(&of->subscription), db_uuid(&of->job));
    bool due = false;
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_DELIVERY_CHAIN_DUE, chain, DB_COLS(COL_BOOL(&due)), &found, err);
    return rc || due ? rc : db_exec(txn->db, DB_DELIVERY_NEXT, chain, NULL, err);
}

static enum err_code keep_attempt(struct txn *txn, const struct hook_result *result,
                                  struct err *err)
{
    const struct hook_delivery *of = result->of;
    uint32_t attempt = of->attempts + 1;
    enum err_code rc = db_exec(
        txn->db, DB_ATTEMPT_INSERT,
        DB_ARGS(db_uuid(&of->id), db_u64(attempt), db_i64((int64_t)result->took_ms * 1000),
                db_u64(result->took_ms), db_u64(result->http_status), db_text(result->error)),
        NULL, err);
    if (rc || attempt <= HOOK_ATTEMPTS_MAX)
        return rc;
    return db_exec(txn->db, DB_ATTEMPT_FORGET,
                   DB_ARGS(db_uuid(&of->id), db_u64(attempt - HOOK_ATTEMPTS_MAX)), NULL, err);
}

static enum err_code record_one(struct txn *txn, const struct hook_result *result, struct err *err)
{
    static const char *const states[] = {
        [HOOK_DELIVERED] = "delivered", [HOOK_AGAIN] = "due", [HOOK_DEAD] = "dead"};
    const struct hook_delivery *of = result->of;
    bool ends = result->outcome != HOOK_AGAIN;
    uint64_t rows = 0;
    enum err_code rc =
        db_exec(txn->db, DB_DELIVERY_RECORD,
                DB_ARGS(db_text(states[result->outcome]), db_u64(result->http_status),
                        db_text(result->error), db_i64(ends ? 0 : result->again_ms * 1000),
                        db_u64(ends), db_uuid(&of->id), db_u64(of->attempts)),
                &rows, err);
    if (rc || rows == 0) /* dropped meanwhile, or an earlier try was committed after all */
        return rc;
    rc = keep_attempt(txn, result, err);
    return rc || !ends ? rc : free_next(txn, of, err);
}

static enum err_code record(struct txn *txn, void *ctx, struct err *err)
{
    const struct recording *recording = ctx;
    uint64_t seq = 0;
    enum err_code rc = hook_lead_lock(txn, recording->lead, &seq, err);
    for (size_t i = 0; i < recording->count && rc == ERR_OK; i++)
        rc = record_one(txn, &recording->results[i], err);
    return rc;
}

enum err_code hook_record(struct store *store, const struct hook_lead *lead,
                          const struct hook_result *results, size_t count, struct err *err)
{
    struct recording recording = {lead, results, count};
    FAULT("webhook.sent");
    enum err_code rc = store_txn(store, record, &recording, err);
    if (rc == ERR_OK)
        FAULT("webhook.recorded");
    return rc;
}

struct giving_up {
    const struct hook_lead *lead;
    uint32_t after_s;
    struct hook_delivery late[LATE_ROWS]; /* id, subscription and job */
    size_t count;
};

static enum err_code read_late(struct txn *txn, struct giving_up *giving_up, struct err *err)
{
    struct hook_delivery row = {.body = NULL};
    bool more = true;
    giving_up->count = 0;
    enum err_code rc =
        db_select(txn->db, DB_DELIVERY_LATE, DB_ARGS(db_u64(giving_up->after_s), db_u64(LATE_ROWS)),
                  DB_COLS(COL_UUID(&row.id), COL_UUID(&row.subscription), COL_UUID(&row.job)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more && giving_up->count < LATE_ROWS)
            giving_up->late[giving_up->count++] = row;
    }
    db_end(txn->db);
    return rc;
}

static enum err_code give_up(struct txn *txn, void *ctx, struct err *err)
{
    struct giving_up *giving_up = ctx;
    uint64_t seq = 0;
    enum err_code rc = hook_lead_lock(txn, giving_up->lead, &seq, err);
    if (rc == ERR_OK)
        rc = read_late(txn, giving_up, err);
    for (size_t i = 0; i < giving_up->count && rc == ERR_OK; i++) {
        const struct hook_delivery *late = &giving_up->late[i];
        rc = db_exec(txn->db, DB_DELIVERY_GIVE_UP, DB_ARGS(db_uuid(&late->id)), NULL, err);
        if (rc == ERR_OK)
            rc = free_next(txn, late, err);
    }
    return rc;
}

enum err_code hook_give_up(struct store *store, const struct hook_lead *lead, uint32_t after_s,
                           size_t *ret_rows, struct err *err)
{
    struct giving_up *giving_up = calloc(1, sizeof(*giving_up));
    if (!giving_up)
        return err_set(err, ERR_NOMEM, "out of memory");
    giving_up->lead = lead;
    giving_up->after_s = after_s;
    enum err_code rc = store_txn(store, give_up, giving_up, err);
    if (rc == ERR_OK)
        *ret_rows = giving_up->count;
    free(giving_up);
    return rc;
}

struct dropping {
    const struct hook_lead *lead;
    const struct uuid *subscription;
};

/* What is due goes last: nothing else leads to what is held. */
static enum err_code drop(struct txn *txn, void *ctx, struct err *err)
{
    const struct dropping *dropping = ctx;
    uint64_t seq = 0;
    uint64_t held = 0;
    const struct db_arg hook = db_uuid(dropping->subscription);
    enum err_code rc = hook_lead_lock(txn, dropping->lead, &seq, err);
    if (rc == ERR_OK)
        rc = db_exec(txn->db, DB_DELIVERY_DROP, DB_ARGS(hook, db_text("held"), db_u64(DROP_ROWS)),
                     &held, err);
    if (rc || held == DROP_ROWS)
        return rc;
    return db_exec(txn->db, DB_DELIVERY_DROP, DB_ARGS(hook, db_text("due"), db_u64(DROP_ROWS)),
                   NULL, err);
}

enum err_code hook_drop(struct store *store, const struct hook_lead *lead,
                        const struct uuid *subscription, struct err *err)
{
    struct dropping dropping = {lead, subscription};
    return store_txn(store, drop, &dropping, err);
}
