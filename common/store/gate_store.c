/* SPDX-License-Identifier: MIT */
#include "common/store/gate_store.h"

#include "common/base/fault.h"
#include "common/store/block_txn.h"
#include "common/store/job_row.h"
#include "common/store/quota_count.h"

#include <assert.h>

/* ---- the look ------------------------------------------------------------------------------- */

struct look {
    const struct uuid *id;
    struct job_gate gate;
    bool found;
};

static enum err_code look(struct txn *txn, void *ctx, struct err *err)
{
    struct look *look = ctx;
    uint32_t *limits = look->gate.limits;
    bool has_app = false;
    bool app_on = false;
    bool has_system = false;
    bool system_on = false;
    enum err_code rc = db_one(txn->db, DB_JOB_GATE, DB_ARGS(db_uuid(look->id)),
                              DB_COLS(COL_BOOL(&has_app), COL_BOOL(&app_on), COL_BOOL(&has_system),
                                      COL_BOOL(&system_on), COL_U32(&limits[QUOTA_TENANT]),
                                      COL_U32(&limits[QUOTA_OWNER]), COL_U32(&limits[QUOTA_SYSTEM]),
                                      COL_U32(&limits[QUOTA_SYSTEM_OWNER])),
                              &look->found, err);
    look->gate.app_off = has_app && !app_on;
    look->gate.system_off = has_system && !system_on;
    return rc;
}

enum err_code job_store_gate(struct store *store, const struct uuid *id, struct job_gate *ret_gate,
                             struct err *err)
{
    struct look ctx = {.id = id};
    enum err_code rc = store_once(store, look, &ctx, err);
    if (rc == ERR_OK && !ctx.found)
        rc = no_such_job(id, err);
    if (rc == ERR_OK)
        *ret_gate = ctx.gate;
    return rc;
}

bool job_gate_has_limits(const struct job_gate *gate)
{
    for (size_t i = 0; i < QUOTA_SCOPE_COUNT; i++) {
        if (gate->limits[i])
            return true;
    }
    return false;
}

/* ---- admission ------------------------------------------------------------------------------ */

struct admit {
    const struct job_admission *what;
    struct job_block why;
    struct block block;
    bool is_over;
};

/* The narrowest limit first: it is the one that the owner can do something about. */
static bool find_over(const struct quota_limits *limits, const struct quota_counts *others,
                      struct quota_over *ret_over)
{
    for (int i = QUOTA_SCOPE_COUNT - 1; i >= 0; i--) {
        if (limits->items[i] == 0 || others->items[i] < limits->items[i])
            continue;
        *ret_over = (struct quota_over){
            .scope = (enum quota_scope)i, .limit = limits->items[i], .active = others->items[i]};
        return true;
    }
    return false;
}

static enum err_code judge(struct txn *txn, struct admit *ctx, struct err *err)
{
    const struct job_admission *what = ctx->what;
    struct quota_limits limits;
    struct quota_counts others;
    struct quota_over over;
    enum err_code rc = quota_read_limits(txn, &what->whose, true, &limits, err);
    if (rc == ERR_OK)
        rc = quota_count(txn, &what->whose, &what->hold->id, &others, err);
    if (rc)
        return rc;
    ctx->is_over = find_over(&limits, &others, &over);
    if (ctx->is_over)
        what->block(what->arg, &over, &ctx->why);
    return ERR_OK;
}

static enum err_code admit(struct txn *txn, void *ctx_, struct err *err)
{
    struct admit *ctx = ctx_;
    /* It may be blocked already: then another judgement would come too late. */
    bool judged = txn->commit_unknown && ctx->is_over;
    enum err_code rc = judged ? ERR_OK : judge(txn, ctx, err);
    if (rc || !ctx->is_over)
        return rc;
    return block_txn(txn, &ctx->block, err);
}

enum err_code job_store_admit(struct store *store, const struct job_admission *what,
                              bool *ret_admitted, struct uuid *ret_recovery, struct err *err)
{
    struct admit ctx = {.what = what};
    ctx.block = (struct block){
        .hold = what->hold, .id = &what->hold->id, .from = what->from, .why = &ctx.why};
    assert(job_state_is_active(what->from) && what->from != JOB_PENDING);
    enum err_code rc = store_txn(store, admit, &ctx, err);
    if (rc)
        return rc;
    if (ctx.is_over) {
        FAULT("job.block.after_commit");
        *ret_recovery = ctx.block.recovery;
    }
    *ret_admitted = !ctx.is_over;
    return ERR_OK;
}

/* ---- who waits for what has changed ---------------------------------------------------------- */

struct causes {
    const struct hasten *what;
    struct uuid *ids;
    size_t count;
};

static enum err_code hasten(struct txn *txn, void *ctx, struct err *err)
{
    struct causes *causes = ctx;
    const char *const *params = causes->what->params;
    struct uuid id;
    bool more = true;
    causes->count = 0;
    enum err_code rc = db_select(
        txn->db, DB_CAUSES_LIKE,
        DB_ARGS(db_text(causes->what->tenant), db_text(causes->what->tester), db_text(params[0]),
                db_text(params[1]), db_text(params[2]), db_text(params[3])),
        DB_COLS(COL_UUID(&id)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more && causes->count < HASTENED_MAX)
            causes->ids[causes->count++] = id;
    }
    db_end(txn->db);
    for (size_t i = 0; i < causes->count && rc == ERR_OK; i++)
        rc = db_exec(txn->db, DB_CAUSE_HASTEN, DB_ARGS(db_uuid(&causes->ids[i])), NULL, err);
    return rc;
}

enum err_code job_store_hasten(struct store *store, const struct hasten *what,
                               struct uuid ret_ids[HASTENED_MAX], size_t *ret_count,
                               struct err *err)
{
    _Static_assert(HASTEN_PARAMS == 4, "the statement takes four");
    struct causes causes = {.what = what, .ids = ret_ids};
    enum err_code rc = store_once(store, hasten, &causes, err);
    if (rc == ERR_OK)
        *ret_count = causes.count;
    return rc;
}
