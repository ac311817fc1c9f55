/* SPDX-License-Identifier: MIT */
#include "common/store/job_own.h"

#include "common/base/fault.h"
#include "common/store/job_own_txn.h"
#include "common/store/job_row.h"

#include <assert.h>
#include <inttypes.h>

/* ---- claim ---------------------------------------------------------------------------------- */

/* Nothing matched: a rival, a stale message, a job that ended; or our own earlier try. */
static enum err_code claim_lost(struct txn *txn, const struct own_claim *ctx, struct err *err)
{
    bool ours = false;
    enum err_code rc = history_has(txn, &ctx->claim->id, ctx->seq, &ours, err);
    if (rc || ours)
        return rc;
    char text[UUID_TEXT_SIZE];
    return err_set(err, ERR_CONFLICT, "job %s epoch %u cannot be claimed: it is no longer as read",
                   uuid_text(&ctx->claim->id, text), ctx->claim->epoch);
}

enum err_code own_claim_txn(struct txn *txn, struct own_claim *ctx, struct err *err)
{
    const struct job_claim *claim = ctx->claim;
    const char *last = job_state_text(claim->moves[claim->move_count - 1].to);
    bool runs = moves_find(JOB_RUNNING, claim->moves, claim->move_count) != NULL;
    uint64_t rows = 0;
    enum err_code rc =
        db_exec(txn->db, DB_JOB_CLAIM,
                DB_ARGS(db_uuid(&claim->worker), db_u64(claim->charge_loss), db_text(last),
                        db_u64(runs), db_uuid(&claim->id), db_u64(claim->epoch),
                        db_text(job_state_text(claim->from)), db_uuid(claim->from_worker),
                        db_uuid(claim->from_worker), db_u64(claim->from_fence)),
                &rows, err);
    if (rc)
        return rc;
    if (rows == 0)
        return claim_lost(txn, ctx, err);
    ctx->fence = db_insert_id(txn->db);
    struct history history = {
        .job = &claim->id, .worker = &claim->worker, .fence = ctx->fence, .from = claim->from};
    return history_write(txn->db, &history, claim->moves, claim->move_count, &ctx->seq, err);
}

struct own_claim own_claim_of(const struct job_claim *what)
{
    assert(moves_are_legal(what->from, what->moves, what->move_count));
    assert(what->moves[0].to == what->from);
    assert(job_state_is_active(what->moves[what->move_count - 1].to));
    return (struct own_claim){.claim = what};
}

static enum err_code claim(struct txn *txn, void *ctx, struct err *err)
{
    return own_claim_txn(txn, ctx, err);
}

enum err_code job_store_claim(struct store *store, const struct job_claim *what,
                              uint64_t *ret_fence, struct err *err)
{
    struct own_claim ctx = own_claim_of(what);
    enum err_code rc = store_txn(store, claim, &ctx, err);
    if (rc)
        return rc;
    FAULT("job.claim.after_commit");
    *ret_fence = ctx.fence;
    return ERR_OK;
}

/* ---- move ----------------------------------------------------------------------------------- */

bool own_gives_up(enum job_state state)
{
    return !job_state_is_active(state);
}

/* What of the moves the row shows already: those of an earlier call whose commit was unknown. Only
 * the holder changes the row, so a state under his fence that is one of the moves is that move; an
 * ownership that is given up shows in its event, which is written once per fence. */
struct made {
    size_t count;
    bool found;
    bool has_owner;
    uint64_t fence;
    char status[STATE_TEXT_SIZE];
};

static enum err_code read_made(struct txn *txn, const struct own_move *move, struct made *ret_made,
                               struct err *err)
{
    const struct job_hold *hold = move->hold;
    struct made made = {0};
    struct uuid owner;
    uint64_t seq = 0;
    bool given_up = false;
    enum err_code rc = db_one(
        txn->db, DB_JOB_OWNER, DB_ARGS(db_uuid(&hold->id)),
        DB_COLS(COL_UUID_OR(&owner, &made.has_owner), COL_U64(&made.fence), COL_TEXT(made.status)),
        &made.found, err);
    bool held = made.has_owner && uuid_eq(&owner, &hold->worker) && made.fence == hold->fence;
    for (size_t i = 0; rc == ERR_OK && held && i < move->moves.count; i++) {
        if (strcmp(made.status, job_state_text(move->moves.items[i].to)) == 0)
            made.count = i + 1;
    }
    if (rc == ERR_OK && !held && own_gives_up(move->to))
        rc = db_one(txn->db, DB_EVENT_OF_HOLD,
                    DB_ARGS(db_uuid(&hold->id), db_u64(hold->fence), db_uuid(&hold->worker),
                            db_text(job_state_text(move->to))),
                    DB_COLS(COL_U64(&seq)), &given_up, err);
    if (given_up)
        made.count = move->moves.count;
    if (rc == ERR_OK)
        *ret_made = made;
    return rc;
}

static enum err_code move_lost(struct txn *txn, const struct own_move *move,
                               const struct made *made, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    store_count_fenced(txn->store);
    return err_set(err, ERR_FENCED,
                   "job %s: fence %" PRIu64 " no longer holds it in state %s; it is %s, fence "
                   "%" PRIu64 "%s",
                   uuid_text(&move->hold->id, text), move->hold->fence, job_state_text(move->from),
                   made->found ? made->status : "gone", made->fence,
                   made->has_owner ? "" : ", without an owner");
}

static struct db_arg u64_if(bool there, uint64_t value)
{
    return there ? db_u64(value) : db_null();
}

static enum err_code update_with_outcome(struct db *db, const struct own_move *move, bool runs,
                                         uint64_t *ret_rows, struct err *err)
{
    const struct job_outcome *out = move->outcome;
    const struct job_hold *hold = move->hold;
    char kept[KEPT_CONDITIONS_SIZE];
    char reason[JOB_REASON_SIZE];
    bool ran = out->run_fence != 0;
    return db_exec(
        db, DB_JOB_MOVE_OUTCOME,
        DB_ARGS(db_text(job_state_text(move->to)), db_u64(own_gives_up(move->to)),
                db_u64(job_state_ends(move->to)), db_u64(out->timed ? out->since_end_us : 0),
                u64_if(out->timed, out->run_us), db_u64(runs),
                db_text(kept_conditions(out->condition, kept, sizeof(kept))),
                db_text_or_null(job_condition_text(out->condition)),
                db_u64(ran || out->has_exit_code),
                out->has_exit_code ? db_i64(out->exit_code) : db_null(),
                db_u64(ran || out->term_signal != 0),
                out->term_signal ? db_i64(out->term_signal) : db_null(),
                db_text(text_fit(out->reason, reason, sizeof(reason))), db_u64(out->attempt),
                u64_if(ran, out->out.total_bytes), u64_if(ran, out->out.kept_bytes),
                u64_if(ran, out->errs.total_bytes), u64_if(ran, out->errs.kept_bytes),
                u64_if(ran, out->run_fence), db_uuid(&hold->id), db_uuid(&hold->worker),
                db_u64(hold->fence), db_text(job_state_text(move->from))),
        ret_rows, err);
}

static enum err_code update(struct db *db, const struct own_move *move, uint64_t *ret_rows,
                            struct err *err)
{
    const struct job_hold *hold = move->hold;
    const struct job_move *runs = moves_find(JOB_RUNNING, move->moves.items, move->moves.count);
    if (move->outcome)
        return update_with_outcome(db, move, runs != NULL, ret_rows, err);
    return db_exec(db, DB_JOB_MOVE,
                   DB_ARGS(db_text(job_state_text(move->to)), db_u64(own_gives_up(move->to)),
                           db_u64(runs != NULL), db_u64(runs ? runs->ago_us : 0),
                           db_u64(job_state_ends(move->to)), db_uuid(&hold->id),
                           db_uuid(&hold->worker), db_u64(hold->fence),
                           db_text(job_state_text(move->from))),
                   ret_rows, err);
}

/* The update and its events; *ret_rows is 0 if the row is not held in the state `from`. */
static enum err_code write_moves(struct txn *txn, struct own_move *move, uint64_t *ret_rows,
                                 struct err *err)
{
    enum err_code rc = update(txn->db, move, ret_rows, err);
    if (rc || *ret_rows == 0)
        return rc;
    struct history history = {
        .job = &move->hold->id,
        .worker = &move->hold->worker,
        .fence = move->hold->fence,
        .from = move->from,
        .condition = move->outcome ? move->outcome->condition : JOB_COND_NONE,
    };
    return history_write(txn->db, &history, move->moves.items, move->moves.count, &move->seq, err);
}

enum err_code own_move_txn(struct txn *txn, struct own_move *move, struct err *err)
{
    struct made made = {0};
    uint64_t rows = 0;
    enum err_code rc = write_moves(txn, move, &rows, err);
    if (rc || rows > 0)
        return rc;
    rc = read_made(txn, move, &made, err);
    if (rc || made.count == move->moves.count)
        return rc;
    if (made.count > 0) { /* the rest is still to be made */
        struct own_move rest = *move;
        rest.from = move->moves.items[made.count - 1].to;
        rest.moves.items += made.count;
        rest.moves.count -= made.count;
        rc = write_moves(txn, &rest, &rows, err);
    }
    if (rc || rows > 0)
        return rc;
    return move_lost(txn, move, &made, err);
}

struct own_move own_move_of(const struct job_hold *hold, enum job_state from,
                            struct job_moves moves, const struct job_outcome *outcome)
{
    assert(moves_are_legal(from, moves.items, moves.count));
    return (struct own_move){.hold = hold,
                             .from = from,
                             .to = moves.items[moves.count - 1].to,
                             .moves = moves,
                             .outcome = outcome};
}

static enum err_code make_moves(struct txn *txn, void *ctx, struct err *err)
{
    return own_move_txn(txn, ctx, err);
}

enum err_code job_store_move(struct store *store, const struct job_hold *hold, enum job_state from,
                             struct job_moves moves, const struct job_outcome *outcome,
                             struct err *err)
{
    struct own_move ctx = own_move_of(hold, from, moves, outcome);
    enum err_code rc = store_txn(store, make_moves, &ctx, err);
    if (rc == ERR_OK)
        FAULT("job.move.after_commit");
    return rc;
}
