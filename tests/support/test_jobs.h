/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_TEST_JOBS_H
#define TESTS_SUPPORT_TEST_JOBS_H

/* test_jobs: jobs to test with. Every failure ends the test program. Threads: any. */

#include "common/store/job_store.h"

/* A plain job of tenant acme, owner ann, queue default, with an id of its own. */
struct job_new test_job_new(void);
struct uuid test_submit(struct store *store);
struct job *test_job(struct store *store, const struct uuid *id); /* job_free() it */
enum job_state test_state(struct store *store, const struct uuid *id);
/* A claim of a PENDING job without an owner, up to the state `to`, which it has answered ERR_OK. */
struct job_hold test_claim(struct store *store, const struct uuid *id, enum job_state to);
/* The legal moves from `from` (excluded) to `to`; answers how many. */
size_t test_moves(enum job_state from, enum job_state to, struct job_move *ret_moves);

#endif
