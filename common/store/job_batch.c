/* SPDX-License-Identifier: MIT */
#include "common/store/job_batch.h"

#include "common/store/job_row.h"

#include <assert.h>

#define ARGS_MAX DB_PARAMS_MAX
#define EVENTS_AT_ONCE 24
#define EVENT_PARAMS 10

struct args {
    struct db_arg items[ARGS_MAX];
    size_t count;
};

static void add(struct args *args, struct db_arg arg)
{
    args->items[args->count++] = arg;
}

/* The jobs of one statement, and how many rows it has room for. */
struct together {
    struct job_write *items[GROUP_MAX];
    size_t count;
    size_t room;
};

static size_t room_for(size_t count)
{
    return count <= 1 ? 1 : count <= 4 ? 4 : 16;
}

static enum err_code exec(struct txn *txn, enum db_stmt_id stmt, const struct args *args,
                          const struct together *group, struct job_batch *batch, struct err *err)
{
    uint64_t rows = 0;
    enum err_code rc =
        db_exec(txn->db, stmt, (struct db_args){args->items, args->count}, &rows, err);
    if (rc == ERR_OK && rows != group->count) {
        batch->mismatch = true;
        rc = err_set(err, ERR_CONFLICT, "of %zu jobs %llu are as they were read", group->count,
                     (unsigned long long)rows);
    }
    return rc;
}

/* ---- claims --------------------------------------------------------------------------------- */

static enum job_state last_of(const struct job_claim *claim)
{
    return claim->moves[claim->move_count - 1].to;
}

static bool same_owner(const struct uuid *a, const struct uuid *b)
{
    return a == b || (a && b && uuid_eq(a, b));
}

static bool claims_alike(const struct job_write *a, const struct job_write *b)
{
    const struct job_claim *one = a->claim.claim;
    const struct job_claim *other = b->claim.claim;
    return uuid_eq(&one->worker, &other->worker) &&
           same_owner(one->from_worker, other->from_worker) &&
           one->charge_loss == other->charge_loss && last_of(one) == last_of(other) &&
           moves_reach(JOB_RUNNING, one->moves, one->move_count) ==
               moves_reach(JOB_RUNNING, other->moves, other->move_count);
}

static void add_rows(struct args *args, const struct together *group)
{
    for (size_t i = 0; i < group->room; i++) {
        const struct job_write *write = i < group->count ? group->items[i] : NULL;
        const struct job_claim *claim = write && write->is_claim ? write->claim.claim : NULL;
        const struct job_hold *hold = write && !write->is_claim ? write->move.hold : NULL;
        add(args, db_uuid(claim ? &claim->id : hold ? &hold->id : NULL));
        add(args, db_u64(claim ? claim->epoch : hold ? hold->epoch : 0));
        add(args, db_u64(claim ? claim->from_fence : hold ? hold->fence : 0));
        add(args, db_text(claim  ? job_state_text(claim->from)
                          : hold ? job_state_text(write->move.from)
                                 : NULL));
    }
}

static enum err_code claim_together(struct txn *txn, const struct together *group,
                                    struct job_batch *batch, struct err *err)
{
    assert(group->items[0]);
    const struct job_claim *first = group->items[0]->claim.claim;
    struct args args = {.count = 0};
    enum db_stmt_id stmt = group->room == 1   ? DB_JOBS_CLAIM_1
                           : group->room == 4 ? DB_JOBS_CLAIM_4
                                              : DB_JOBS_CLAIM_16;
    add(&args, db_uuid(&first->worker));
    add(&args, db_u64(first->charge_loss));
    add(&args, db_text(job_state_text(last_of(first))));
    add(&args, db_u64(moves_reach(JOB_RUNNING, first->moves, first->move_count)));
    add(&args, db_uuid(first->from_worker));
    add_rows(&args, group);
    for (size_t i = 0; i < group->count; i++)
        group->items[i]->claim.fence = group->items[i]->claim.claim->from_fence + 1;
    return exec(txn, stmt, &args, group, batch, err);
}

/* ---- ends ----------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* With an outcome of the run that this ownership began; others are too rare to be worth it. */
static bool is_plain_end(const struct own_move *move)
{
    const struct job_outcome *out = move->outcome;
    return move->hold->tenant && out && out->run_fence == move->hold->fence && !out->started_us;
}

static bool ends_alike(const struct job_write *a, const struct job_write *b)
{
    const struct own_move *one = &a->move;
    const struct own_move *other = &b->move;
    const struct job_outcome *x = one->outcome;
    const struct job_outcome *y = other->outcome;
    return uuid_eq(&one->hold->worker, &other->hold->worker) && one->to == other->to &&
           moves_reach(JOB_RUNNING, one->moves.items, one->moves.count) ==
               moves_reach(JOB_RUNNING, other->moves.items, other->moves.count) &&
           x->condition == y->condition && x->has_exit_code == y->has_exit_code &&
           x->exit_code == y->exit_code && x->term_signal == y->term_signal &&
           x->attempt == y->attempt && same_text(x->reason, y->reason);
}

static uint64_t stream_value(const struct job_outcome *out, int which)
{
    const struct job_stream *stream = which < 2 ? &out->out : &out->errs;
    return which % 2 ? stream->kept_bytes : stream->total_bytes;
}

static void add_streams(struct args *args, const struct together *group)
{
    for (int which = 0; which < 4; which++) {
        for (size_t i = 0; i < group->room; i++) {
            const struct own_move *move = i < group->count ? &group->items[i]->move : NULL;
            add(args, db_uuid(move ? &move->hold->id : NULL));
            add(args, db_u64(move ? stream_value(move->outcome, which) : 0));
        }
    }
}

static enum err_code end_together(struct txn *txn, const struct together *group,
                                  struct job_batch *batch, struct err *err)
{
    assert(group->items[0]);
    const struct own_move *first = &group->items[0]->move;
    const struct job_outcome *out = first->outcome;
    char kept[KEPT_CONDITIONS_SIZE];
    char reason[JOB_REASON_SIZE];
    struct args args = {.count = 0};
    enum db_stmt_id stmt = group->room == 1   ? DB_JOBS_END_1
                           : group->room == 4 ? DB_JOBS_END_4
                                              : DB_JOBS_END_16;
    add(&args, db_text(job_state_text(first->to)));
    add(&args, db_u64(own_gives_up(first->to)));
    add(&args, db_u64(moves_reach(JOB_RUNNING, first->moves.items, first->moves.count)));
    add(&args, db_u64(job_state_ends(first->to)));
    add(&args, db_text(kept_conditions(out->condition, kept, sizeof(kept))));
    add(&args, db_text_or_null(job_condition_text(out->condition)));
    add(&args, out->has_exit_code ? db_i64(out->exit_code) : db_null());
    add(&args, out->term_signal ? db_i64(out->term_signal) : db_null());
    add(&args, db_text(text_fit(out->reason, reason, sizeof(reason))));
    add(&args, db_u64(out->attempt));
    add_streams(&args, group);
    add(&args, db_uuid(&first->hold->worker));
    add_rows(&args, group);
    return exec(txn, stmt, &args, group, batch, err);
}

/* ---- history -------------------------------------------------------------------------------- */

struct event { /* a move of one of the jobs */
    struct job_write *of;
    size_t move;
    enum job_state from;
};

static const struct {
    size_t rows;
    enum db_stmt_id stmt;
} event_sizes[] = {{24, DB_MOVES_24}, {16, DB_MOVES_16}, {10, DB_MOVES_10}, {8, DB_MOVES_8},
                   {6, DB_MOVES_6},   {5, DB_MOVES_5},   {4, DB_MOVES_4},   {3, DB_MOVES_3},
                   {2, DB_MOVES_2},   {1, DB_MOVES_1}};

static struct job_moves moves_of(const struct job_write *write)
{
    const struct job_claim *claim = write->is_claim ? write->claim.claim : NULL;
    return claim ? (struct job_moves){claim->moves, claim->move_count} : write->move.moves;
}

static const char *condition_of_move(const struct event *event)
{
    const struct own_move *move = &event->of->move;
    bool last = !event->of->is_claim && event->move + 1 == move->moves.count;
    return last ? job_condition_text(move->outcome->condition) : NULL;
}

static void add_event(struct args *args, const struct event *event, char *detail)
{
    const struct job_write *write = event->of;
    const struct job_claim *claim = write->is_claim ? write->claim.claim : NULL;
    const struct job_hold *hold = claim ? NULL : write->move.hold;
    const struct job_move *move = &moves_of(write).items[event->move];
    add(args, db_uuid(claim ? &claim->id : &hold->id));
    add(args, db_text(claim ? claim->tenant : hold->tenant));
    add(args, db_text(move->kind ? move->kind : "status"));
    add(args, db_text(job_state_text(event->from)));
    add(args, db_text(job_state_text(move->to)));
    add(args, db_text_or_null(condition_of_move(event)));
    add(args, db_u64(claim ? claim->epoch : hold->epoch));
    add(args, db_u64(claim ? write->claim.fence : hold->fence));
    add(args, db_uuid(claim ? &claim->worker : &hold->worker));
    add(args, db_text(text_fit(move->detail, detail, DETAIL_SIZE)));
}

static void set_seq(const struct event *event, uint64_t seq)
{
    if (event->move > 0)
        return;
    if (event->of->is_claim)
        event->of->claim.seq = seq;
    else
        event->of->move.seq = seq;
}

static enum err_code write_events(struct txn *txn, const struct event *events, size_t count,
                                  struct err *err)
{
    char details[EVENTS_AT_ONCE][DETAIL_SIZE];
    for (size_t done = 0; done < count;) {
        struct args args = {.count = 0};
        size_t size = 0;
        while (event_sizes[size].rows > count - done)
            size++;
        for (size_t i = 0; i < event_sizes[size].rows; i++)
            add_event(&args, &events[done + i], details[i]);
        enum err_code rc = db_exec(txn->db, event_sizes[size].stmt,
                                   (struct db_args){args.items, args.count}, NULL, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < event_sizes[size].rows; i++)
            set_seq(&events[done + i], db_insert_id(txn->db) + i * db_auto_step(txn->db));
        done += event_sizes[size].rows;
    }
    return ERR_OK;
}

static enum err_code write_history(struct txn *txn, const struct job_batch *batch, struct err *err)
{
    struct event events[GROUP_MAX * JOB_MOVES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct job_write *write = batch->items[i];
        if (!write->together)
            continue;
        const struct job_moves moves = moves_of(write);
        enum job_state from = write->is_claim ? write->claim.claim->from : write->move.from;
        for (size_t k = 0; k < moves.count; k++) {
            events[count++] = (struct event){write, k, from};
            from = moves.items[k].to;
        }
    }
    return write_events(txn, events, count, err);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static bool can_be_together(const struct job_write *write)
{
    return write->is_claim ? write->claim.claim->tenant != NULL : is_plain_end(&write->move);
}

static bool alike(const struct job_write *a, const struct job_write *b)
{
    if (a->is_claim != b->is_claim || !can_be_together(b))
        return false;
    return a->is_claim ? claims_alike(a, b) : ends_alike(a, b);
}

enum err_code job_batch_together(struct txn *txn, struct job_batch *batch, struct err *err)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < batch->count; i++)
        batch->items[i]->together = false;
    for (size_t i = 0; i < batch->count && rc == ERR_OK; i++) {
        struct together group = {.count = 0};
        if (batch->items[i]->together || !can_be_together(batch->items[i]))
            continue;
        for (size_t k = i; k < batch->count; k++) {
            if (batch->items[k]->together || !alike(batch->items[i], batch->items[k]))
                continue;
            batch->items[k]->together = true;
            group.items[group.count++] = batch->items[k];
        }
        group.room = room_for(group.count);
        rc = batch->items[i]->is_claim ? claim_together(txn, &group, batch, err)
                                       : end_together(txn, &group, batch, err);
    }
    return rc ? rc : write_history(txn, batch, err);
}
