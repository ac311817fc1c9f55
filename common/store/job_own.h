/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_OWN_H
#define COMMON_STORE_JOB_OWN_H

/* job_own: the part of job_store that is an owner's: every write of his is guarded by his fence
 * (docs/ownership.md). Threads: locked. */

#include "common/model/job.h"
#include "common/store/store.h"

/* One step of a job's history. Several steps in one call are one transaction. */
struct job_move {
    enum job_state to;
    const char *kind; /* of the event: "claimed", "status", "lost", "blocked", ...; NULL: status */
    const char *detail; /* NULL for none */
    uint64_t ago_us;    /* RUNNING: the process was started so long ago */
};
#define JOB_MOVES_MAX 12
struct job_moves {
    const struct job_move *items;
    size_t count;
};

/* What a run left; written with the move that records it. NULL pointers and zeros leave columns,
 * but with a run_fence exit code, signal and streams are all those of that run. Texts that are too
 * long are cut, bytes that are not UTF-8 replaced. */
struct job_outcome {
    enum job_condition condition; /* merged with job_condition_keep */
    bool has_exit_code;
    int exit_code;
    int term_signal;
    const char *reason; /* NULL: none */
    uint64_t run_fence; /* 0: no run */
    bool attempt;       /* charge one attempt: the job itself ended this run */
    /* timed: the process ended since_end_us ago and ran for run_us, which the times of the job tell
     * then. Otherwise it ends now, and began with the first move to RUNNING. */
    bool timed;
    uint64_t since_end_us;
    uint64_t run_us;
    struct job_stream out;
    struct job_stream errs;
};

struct job_claim {
    struct uuid id;
    uint32_t epoch;
    struct uuid worker;
    /* NULL: the job has no owner. Otherwise a takeover from this owner with this fence. */
    const struct uuid *from_worker;
    uint64_t from_fence;
    const char *tenant;  /* the job's, if the caller knows it: spares job_writer a look */
    bool charge_loss;    /* losses + 1 */
    enum job_state from; /* the state that was read */
    /* First the claim itself (to == from), then further moves; the last state is an active one. */
    const struct job_move *moves;
    size_t move_count;
};
/* owner = worker, fence + 1. ERR_CONFLICT: the row is no longer as expected, or the job has ended;
 * read it again. An unknown commit is settled by the event that was written with it. */
MUST_USE enum err_code job_store_claim(struct store *store, const struct job_claim *claim,
                                       uint64_t *ret_fence, struct err *err);

struct job_hold { /* an ownership, as its holder knows it */
    struct uuid id;
    struct uuid worker;
    uint64_t fence;
    const char *tenant; /* the job's, if he knows it, and its epoch: spares job_writer a look */
    uint32_t epoch;
};
/* Moves of the holder. The last move decides: a terminal state, BLOCKED or PAUSED gives up the
 * ownership (owner NULL) and, if terminal, sets ended_at. With a cancel request pending a move
 * that is not to CANCELLED or another terminal state is still allowed: the holder acts on it.
 * ERR_FENCED: the row has another owner, fence or state: the holder has lost it. Repeating a call
 * whose commit was unknown, also with further moves after its own, makes those that are not there
 * yet. outcome may be NULL. */
MUST_USE enum err_code job_store_move(struct store *store, const struct job_hold *hold,
                                      enum job_state from, struct job_moves moves,
                                      const struct job_outcome *outcome, struct err *err);
struct job_handed_back {
    uint64_t outbox_id;
    uint32_t epoch;
};
/* Gives a job back untouched (drain): owner NULL, epoch + 1, state as it is, outbox row. */
MUST_USE enum err_code job_store_hand_back(struct store *store, const struct job_hold *hold,
                                           enum job_state from, const char *detail,
                                           struct job_handed_back *ret, struct err *err);

/* A fresh message for a job whose owner is not live any more: epoch + 1, outbox row; the owner
 * stays, so that whoever takes it over sees from whom. ERR_FENCED: it is not his any more. */
MUST_USE enum err_code job_store_send_again(struct store *store, const struct job_hold *hold,
                                            enum job_state from, const char *detail,
                                            struct job_handed_back *ret, struct err *err);

struct job_hold_row {
    struct uuid id;
    uint64_t fence;
    enum job_state status;
};
/* Jobs of a worker with a cancel request; freed with free(). Indexed, normally empty. */
MUST_USE enum err_code job_store_cancel_requests(struct store *store, const struct uuid *worker,
                                                 struct job_hold_row **ret_rows, size_t *ret_count,
                                                 struct err *err);
/* All jobs that have this owner and have not ended; freed with free(). */
MUST_USE enum err_code job_store_owned(struct store *store, const struct uuid *worker,
                                       struct job_hold_row **ret_rows, size_t *ret_count,
                                       struct err *err);

#endif
