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
/* The live rows of former incarnations, if the runner holds any run; free(*ret_ids). */
MUST_USE enum err_code adopt_formers(struct worker *w, struct uuid **ret_ids, size_t *ret_count,
                                     struct err *err);
/* Before the first ping: kills what runs for a job that others may take, that is, whose owner is
 * none of the former incarnations that the heart keeps. */
MUST_USE enum err_code adopt_end_strangers(struct worker *w, struct err *err);
/* After the first ping: claims what it can, gives each claimed run to a slot, discards the rest. */
MUST_USE enum err_code adopt_all(struct worker *w, struct err *err);
/* Marks the former incarnations replaced: others may take what they still own. */
MUST_USE enum err_code adopt_replace(struct worker *w, struct err *err);
/* Drives an adopted run; frees it. For slots_setup.work. */
void adopt_drive(struct worker *w, struct slot *slot, void *adopted);

#endif
