/* SPDX-License-Identifier: MIT */
#include "common/store/job_batch.h"

#include "common/store/job_row.h"

#include <assert.h>

#define ARGS_MAX DB_PARAMS_MAX
#define EVENTS_AT_ONCE 24
#define STEPS_MAX 12 /* in one round trip */

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

/* ---- one round trip ------------------------------------------------------------------------- */

struct event { /* a move of one of the jobs */
    struct job_write *of;
    size_t move;
    enum job_state from;
};

struct step { /* a statement, with what its arguments lead into */
    struct args args;
    size_t wanted;              /* jobs that it changes; 0: it writes the events */
    const struct event *events; /* their first one */
    size_t event_count;
    char details[EVENTS_AT_ONCE][DETAIL_SIZE];
    char kept[KEPT_CONDITIONS_SIZE];
    char reason[JOB_REASON_SIZE];
};

struct trip {
    struct db_call calls[STEPS_MAX];
    struct step *steps[STEPS_MAX]; /* owned */
    size_t count;
};

static void trip_done(struct trip *trip)
{
    while (trip->count > 0)
        free(trip->steps[--trip->count]);
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

static enum err_code take_answer(const struct txn *txn, const struct db_call *call,
                                 const struct step *step, struct job_batch *batch, struct err *err)
{
    for (size_t i = 0; i < step->event_count; i++)
        set_seq(&step->events[i], call->insert_id + i * db_auto_step(txn->db));
    if (step->wanted == 0 || call->rows == step->wanted)
        return ERR_OK;
    batch->mismatch = true;
    return err_set(err, ERR_CONFLICT, "of %zu jobs %llu are as they were read", step->wanted,
                   (unsigned long long)call->rows);
}

/* The events travel with the changes that they tell of: if one of these finds a job that is not as
 * it was read, all of it is rolled back. */
static enum err_code go(struct txn *txn, struct trip *trip, struct job_batch *batch,
                        struct err *err)
{
    for (size_t i = 0; i < trip->count; i++)
        trip->calls[i].args =
            (struct db_args){trip->steps[i]->args.items, trip->steps[i]->args.count};
    enum err_code rc = trip->count ? db_exec_all(txn->db, trip->calls, trip->count, err) : ERR_OK;
    for (size_t i = 0; i < trip->count && rc == ERR_OK; i++)
        rc = take_answer(txn, &trip->calls[i], trip->steps[i], batch, err);
    trip_done(trip);
    return rc;
}

/* A further step; goes first if there is no room. */
static enum err_code add_step(struct txn *txn, struct trip *trip, struct job_batch *batch,
                              struct step **ret_step, struct err *err)
{
    enum err_code rc = trip->count == STEPS_MAX ? go(txn, trip, batch, err) : ERR_OK;
    if (rc)
        return rc;
    struct step *step = malloc(sizeof(*step));
    if (!step)
        return err_set(err, ERR_NOMEM, "no memory for a statement");
    step->args.count = step->wanted = step->event_count = 0;
    step->events = NULL;
    trip->calls[trip->count] = (struct db_call){.id = DB_JOBS_CLAIM_1};
    trip->steps[trip->count++] = step;
    *ret_step = step;
    return ERR_OK;
}

/* Of the step that was added last. */
static void set_stmt(struct trip *trip, enum db_stmt_id stmt)
{
    trip->calls[trip->count - 1].id = stmt;
}

/* ---- claims --------------------------------------------------------------------------------- */

static enum job_state last_of(const struct job_claim *claim)
{
    return claim->moves[claim->move_count - 1].to;
}

static bool claim_runs(const struct job_claim *claim)
{
    return moves_find(JOB_RUNNING, claim->moves, claim->move_count) != NULL;
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
           claim_runs(one) == claim_runs(other);
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

static enum db_stmt_id claim_together(const struct together *group, struct step *step)
{
    assert(group->items[0]);
    const struct job_claim *first = group->items[0]->claim.claim;
    struct args *args = &step->args;
    add(args, db_uuid(&first->worker));
    add(args, db_u64(first->charge_loss));
    add(args, db_text(job_state_text(last_of(first))));
    add(args, db_u64(claim_runs(first)));
    add(args, db_uuid(first->from_worker));
    add_rows(args, group);
    for (size_t i = 0; i < group->count; i++)
        group->items[i]->claim.fence = group->items[i]->claim.claim->from_fence + 1;
    return group->room == 1   ? DB_JOBS_CLAIM_1
           : group->room == 4 ? DB_JOBS_CLAIM_4
                              : DB_JOBS_CLAIM_16;
}

/* ---- ends ----------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The end of the run that this ownership began; others are too rare to be worth it. */
static bool is_plain_end(const struct own_move *move)
{
    const struct job_outcome *out = move->outcome;
    return move->hold->tenant && out && out->run_fence == move->hold->fence && out->timed &&
           job_state_ends(move->to);
}

static bool ends_alike(const struct job_write *a, const struct job_write *b)
{
    const struct own_move *one = &a->move;
    const struct own_move *other = &b->move;
    const struct job_outcome *x = one->outcome;
    const struct job_outcome *y = other->outcome;
    return uuid_eq(&one->hold->worker, &other->hold->worker) && one->to == other->to &&
           x->condition == y->condition && x->has_exit_code == y->has_exit_code &&
           x->exit_code == y->exit_code && x->term_signal == y->term_signal &&
           x->attempt == y->attempt && same_text(x->reason, y->reason);
}

/* What each job has a value of its own for. */
enum value {
    VALUE_SINCE_END,
    VALUE_RUN,
    VALUE_OUT_TOTAL,
    VALUE_OUT_KEPT,
    VALUE_ERR_TOTAL,
    VALUE_ERR_KEPT,
};

static uint64_t value_of(const struct job_outcome *out, enum value which)
{
    const uint64_t values[] = {
        [VALUE_SINCE_END] = out->since_end_us,     [VALUE_RUN] = out->run_us,
        [VALUE_OUT_TOTAL] = out->out.total_bytes,  [VALUE_OUT_KEPT] = out->out.kept_bytes,
        [VALUE_ERR_TOTAL] = out->errs.total_bytes, [VALUE_ERR_KEPT] = out->errs.kept_bytes,
    };
    return values[which];
}

/* One CASE: a value for each job. */
static void add_each(struct args *args, const struct together *group, enum value which)
{
    for (size_t i = 0; i < group->room; i++) {
        const struct own_move *move = i < group->count ? &group->items[i]->move : NULL;
        add(args, db_uuid(move ? &move->hold->id : NULL));
        add(args, db_u64(move ? value_of(move->outcome, which) : 0));
    }
}

static enum db_stmt_id end_together(const struct together *group, struct step *step)
{
    assert(group->items[0]);
    const struct own_move *first = &group->items[0]->move;
    const struct job_outcome *out = first->outcome;
    struct args *args = &step->args;
    add(args, db_text(job_state_text(first->to)));
    add(args, db_u64(own_gives_up(first->to)));
    add_each(args, group, VALUE_SINCE_END);
    add_each(args, group, VALUE_RUN);
    add(args, db_text(kept_conditions(out->condition, step->kept, sizeof(step->kept))));
    add(args, db_text_or_null(job_condition_text(out->condition)));
    add(args, out->has_exit_code ? db_i64(out->exit_code) : db_null());
    add(args, out->term_signal ? db_i64(out->term_signal) : db_null());
    add(args, db_text(text_fit(out->reason, step->reason, sizeof(step->reason))));
    add(args, db_u64(out->attempt));
    for (enum value which = VALUE_OUT_TOTAL; which <= VALUE_ERR_KEPT; which++)
        add_each(args, group, which);
    add(args, db_uuid(&first->hold->worker));
    add_rows(args, group);
    return group->room == 1 ? DB_JOBS_END_1 : group->room == 4 ? DB_JOBS_END_4 : DB_JOBS_END_16;
}

/* ---- history -------------------------------------------------------------------------------- */

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

static enum err_code write_events(struct txn *txn, struct trip *trip, struct job_batch *batch,
                                  const struct event *events, size_t count, struct err *err)
{
    for (size_t done = 0; done < count;) {
        struct step *step = NULL;
        size_t size = 0;
        enum err_code rc = add_step(txn, trip, batch, &step, err);
        if (rc)
            return rc;
        assert(step);
        while (event_sizes[size].rows > count - done)
            size++;
        set_stmt(trip, event_sizes[size].stmt);
        step->events = &events[done];
        step->event_count = event_sizes[size].rows;
        for (size_t i = 0; i < step->event_count; i++)
            add_event(&step->args, &events[done + i], step->details[i]);
        done += step->event_count;
    }
    return ERR_OK;
}

static size_t list_events(const struct job_batch *batch, struct event *ret_events)
{
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct job_write *write = batch->items[i];
        if (!write->together)
            continue;
        const struct job_moves moves = moves_of(write);
        enum job_state from = write->is_claim ? write->claim.claim->from : write->move.from;
        for (size_t k = 0; k < moves.count; k++) {
            ret_events[count++] = (struct event){write, k, from};
            from = moves.items[k].to;
        }
    }
    return count;
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

/* Those that change as the one at `at` does, in one statement. */
static enum err_code change_together(struct txn *txn, struct trip *trip, struct job_batch *batch,
                                     size_t at, struct err *err)
{
    struct together group = {.count = 0};
    struct step *step = NULL;
    for (size_t k = at; k < batch->count; k++) {
        if (batch->items[k]->together || !alike(batch->items[at], batch->items[k]))
            continue;
        batch->items[k]->together = true;
        group.items[group.count++] = batch->items[k];
    }
    group.room = room_for(group.count);
    enum err_code rc = add_step(txn, trip, batch, &step, err);
    if (rc)
        return rc;
    assert(step);
    step->wanted = group.count;
    set_stmt(trip, batch->items[at]->is_claim ? claim_together(&group, step)
                                              : end_together(&group, step));
    return ERR_OK;
}

enum err_code job_batch_together(struct txn *txn, struct job_batch *batch, struct err *err)
{
    struct event events[GROUP_MAX * JOB_MOVES_MAX];
    struct trip trip = {.count = 0};
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < batch->count; i++)
        batch->items[i]->together = false;
    for (size_t i = 0; i < batch->count && rc == ERR_OK; i++) {
        if (!batch->items[i]->together && can_be_together(batch->items[i]))
            rc = change_together(txn, &trip, batch, i, err);
    }
    if (rc == ERR_OK)
        rc = write_events(txn, &trip, batch, events, list_events(batch, events), err);
    if (rc == ERR_OK)
        rc = go(txn, &trip, batch, err);
    trip_done(&trip);
    return rc;
}
