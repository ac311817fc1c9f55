/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_INSERT_H
#define COMMON_STORE_JOB_INSERT_H

/* job_insert: the rows of new jobs, many with each statement. Threads: owner (of the connection).
 * For job_submit.c. */

#include "common/store/job_store.h"
#include "common/store/pool.h"

struct job_entry { /* one new job on its way into the tables */
    const struct job_new *job;
    struct job_submitted *done; /* written when its rows are */
    struct err fault;           /* of this one alone; others go on without it */
    bool settled;               /* replayed or refused: it gets no rows */
};

/* Rows of jobs, job_events, outbox and subscriptions. ERR_DUPLICATE: an id is there already. After
 * a failure the transaction must be rolled back: rows behind the one that failed may be in it. */
MUST_USE enum err_code job_insert_rows(struct db *db, struct job_entry *const *entries,
                                       size_t count, struct err *err);
/* Rows of idempotency_keys, unless the key is used; *ret_new: so many were not used before. */
MUST_USE enum err_code job_insert_keys(struct db *db, struct job_entry *const *entries,
                                       size_t count, uint64_t *ret_new, struct err *err);

#endif
