/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_BLOCK_TXN_H
#define COMMON_STORE_BLOCK_TXN_H

/* block_txn: a job is blocked inside a transaction of the caller. For common/store only.
 * Threads: owner. */

#include "common/store/block_store.h"
#include "common/store/pool.h"

struct block {
    const struct job_hold *hold; /* NULL: nobody may own the job */
    const struct uuid *id;
    uint32_t epoch;      /* without a hold */
    enum job_state from; /* without a hold: as found */
    const struct job_block *why;
    struct uuid recovery;
    uint64_t seq; /* of the event that an earlier try wrote */
};

/* A txn_fn: the transaction of job_store_block and job_store_block_unowned. */
MUST_USE enum err_code block_txn(struct txn *txn, void *block, struct err *err);

#endif
