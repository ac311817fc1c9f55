/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_WRITER_H
#define COMMON_STORE_JOB_WRITER_H

/* job_writer: the looks, claims and moves of many slots, with as few round trips and commits as
 * they allow: what comes while a transaction is on its way shares the next one; what comes alone is
 * written at once. Each one is judged by itself, by its own guard; one that is refused is told so
 * and changes nothing for the others. A look that leads to a claim waits once for both.
 * Threads: locked. Errors: those of the job_store call of the same name. */

#include "common/store/gate_store.h"
#include "common/store/job_store.h"

struct job_writer;

MUST_USE enum err_code job_writer_open(struct store *store, struct job_writer **ret_writer,
                                       struct err *err);
void job_writer_free(struct job_writer *writer); /* no call may be under way; NULL is allowed */
DEFINE_AUTO(struct job_writer *, job_writer_free)

/* Sees the row of a job of any tenant, as job_store_get() and job_store_gate() read it; *take_job
 * is NULL if there is none. Answers the claim that it leads to (job_writer_claim), which stays
 * valid until job_writer_take() returns, or NULL. Called once, on any thread; it must not wait. */
typedef const struct job_claim *job_judge_fn(void *arg, struct job **take_job,
                                             const struct job_gate *gate);
/* Looks, judges, and claims if that is the verdict: *ret_fence is 0 if it was not. An error of the
 * look comes before judge is called, one of the claim after it. */
MUST_USE enum err_code job_writer_take(struct job_writer *writer, const struct uuid *id,
                                       job_judge_fn *judge, void *arg, uint64_t *ret_fence,
                                       struct err *err);
/* job_store_claim(); from_fence is that of the row also if nobody owns it. */
MUST_USE enum err_code job_writer_claim(struct job_writer *writer, const struct job_claim *claim,
                                        uint64_t *ret_fence, struct err *err);
/* job_store_move() */
MUST_USE enum err_code job_writer_move(struct job_writer *writer, const struct job_hold *hold,
                                       enum job_state from, struct job_moves moves,
                                       const struct job_outcome *outcome, struct err *err);

#endif
