/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUN_BLOCK_H
#define WORKER_RUN_BLOCK_H

/* run_block: a job that cannot go on now is given to recovery: it becomes BLOCKED, with what it
 * waits for, and its slot takes the next one. Threads: the slot's. */

#include "worker/fetch.h"
#include "worker/run.h"

/* Before the claim: what the job needs. The claim then goes no further than the gate. */
MUST_USE enum err_code run_look(struct run *run, struct err *err);
bool run_is_gated(const struct run *run); /* there is something to ask */
/* After the claim: DONE, or BLOCKED by its application, its system or a quota. */
enum phase_result run_gate(struct run *run);
/* After a while: application and system only, since its place in the quotas is its own. */
enum phase_result run_gate_again(struct run *run);
/* An input's server is away, or refuses us. */
enum phase_result run_block_input(struct run *run, const struct fetch_cause *cause,
                                  const struct err *why);
/* A job with limits has ended: who waits for its place is looked at now, not when its turn comes.
 */
void run_tell_room(struct run *run);
/* What is left to do for a job that is BLOCKED. */
void run_blocked(struct run *run);

#endif
