/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_BATCH_H
#define COMMON_STORE_JOB_BATCH_H

/* job_batch: claims and ends of many jobs with few statements, inside a transaction of the caller.
 * For common/store only. Threads: owner. */

#include "common/store/group.h"
#include "common/store/job_own_txn.h"

struct job_take;

struct job_write { /* one job's claim or move, and what came of it */
    struct group_item item;
    struct job_take *take; /* what to look at before, or NULL */
    bool is_claim;
    union {
        struct own_claim claim;
        struct own_move move;
    };
    bool together; /* written with others, in job_batch_together() */
    enum err_code rc;
    struct err err;
};

struct job_batch {
    struct job_write *items[GROUP_MAX];
    size_t count;
    bool apart;    /* each by itself: one of them was not as it was read */
    bool mismatch; /* answer: that is so; nothing may be committed */
};

/* Writes those that change in the same way, each guarded by its id, epoch, fence and state, and
 * marks them `together`. Which one was not as read is not told: batch->mismatch is set with an
 * error, and the caller rolls back and writes each apart. */
MUST_USE enum err_code job_batch_together(struct txn *txn, struct job_batch *batch,
                                          struct err *err);

#endif
