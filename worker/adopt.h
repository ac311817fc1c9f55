/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ADOPT_H
#define WORKER_ADOPT_H

/* adopt: the runs that a new incarnation finds in its runner. Each is claimed (guarded by the old
 * owner and fence) and goes on, or is killed (docs/ownership.md, section 3).
 * Threads: main, before deliveries are received. */

#include "worker/worker.h"

/* Is a run of this fence, found in our runner, to be gone on with? former: the job's owner is a
 * former incarnation of this worker. */
bool adopt_judge(const struct job *job, const struct runner_job *found, bool former);
/* Claims what it can, gives each claimed run to a slot, kills and forgets the rest. */
MUST_USE enum err_code adopt_all(struct worker *w, const struct runner_job *found, size_t count,
                                 struct err *err);
/* Drives an adopted run; frees it. For slots_setup.work. */
void adopt_drive(struct worker *w, struct slot *slot, void *adopted);

#endif
