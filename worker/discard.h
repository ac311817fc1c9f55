/* SPDX-License-Identifier: MIT */
#ifndef WORKER_DISCARD_H
#define WORKER_DISCARD_H

/* discard: ends the runs that the runner held and nobody goes on with, and removes what they left,
 * on a thread of its own: a process that hangs in the kernel may take its time to die, and the
 * worker's other jobs do not wait for it.
 * Threads: owner for discard_start, discard_add and discard_stop.
 * Memory: discard_stop() frees; what is not gone by then is found by the next incarnation. */

#include "common/base/err.h"
#include "worker/runner_link.h"

struct discard;

/* link and work_fd outlive it. most: how many runs may be added. */
MUST_USE enum err_code discard_start(struct runner_link *link, int work_fd, size_t most,
                                     struct discard **ret_discard, struct err *err);
void discard_add(struct discard *discard, const struct runner_job *run);
/* true: all that were added are gone; false: deadline_ms has passed. */
bool discard_wait(struct discard *discard, int64_t deadline_ms);
void discard_stop(struct discard *discard); /* NULL is allowed */

#endif
