/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_WRITER_H
#define COMMON_STORE_JOB_WRITER_H

/* job_writer: the looks, claims and moves of many slots, with as few round trips and commits as
 * they allow: what comes while a transaction is on its way shares the next one; what comes alone is
 * written at once. Each one is judged by itself, by its own guard; one that is refused is told so
 * and changes nothing for the others.
 * Threads: locked. Errors: those of the job_store call of the same name. */

#include "common/store/gate_store.h"
#include "common/store/job_store.h"

struct job_writer;

MUST_USE enum err_code job_writer_open(struct store *store, struct job_writer **ret_writer,
                                       struct err *err);
void job_writer_free(struct job_writer *writer); /* no call may be under way; NULL is allowed */
DEFINE_AUTO(struct job_writer *, job_writer_free)

/* job_store_get() of a job of any tenant, and job_store_gate(). */
MUST_USE enum err_code job_writer_look(struct job_writer *writer, const struct uuid *id,
                                       struct job **ret_job, struct job_gate *ret_gate,
                                       struct err *err);
/* job_store_claim(); from_fence is that of the row also if nobody owns it. */
MUST_USE enum err_code job_writer_claim(struct job_writer *writer, const struct job_claim *claim,
                                        uint64_t *ret_fence, struct err *err);
/* job_store_move() */
MUST_USE enum err_code job_writer_move(struct job_writer *writer, const struct job_hold *hold,
                                       enum job_state from, struct job_moves moves,
                                       const struct job_outcome *outcome, struct err *err);

#endif
