/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_OWN_TXN_H
#define COMMON_STORE_JOB_OWN_TXN_H

/* job_own_txn: a claim and a move inside a transaction of the caller, each judged by itself: one
 * that is refused has written nothing and harms no other. For common/store only.
 * Threads: owner. */

#include "common/store/job_own.h"
#include "common/store/pool.h"

struct own_claim {
    const struct job_claim *claim;
    uint64_t fence; /* the new one */
    uint64_t seq;   /* of the event that an earlier try wrote; 0: none */
};

struct own_move {
    const struct job_hold *hold;
    enum job_state from;
    enum job_state to; /* of the last move */
    struct job_moves moves;
    const struct job_outcome *outcome; /* NULL: none */
    uint64_t seq;
};

/* Asserts that the moves are legal. */
struct own_claim own_claim_of(const struct job_claim *claim);
struct own_move own_move_of(const struct job_hold *hold, enum job_state from,
                            struct job_moves moves, const struct job_outcome *outcome);
bool own_gives_up(enum job_state state);

/* ERR_CONFLICT. */
MUST_USE enum err_code own_claim_txn(struct txn *txn, struct own_claim *claim, struct err *err);
/* ERR_FENCED. */
MUST_USE enum err_code own_move_txn(struct txn *txn, struct own_move *move, struct err *err);

#endif
