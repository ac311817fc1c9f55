/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SWEEP_H
#define WORKER_SWEEP_H

/* sweep: run directories that nobody knows any more, left by a worker that died before it asked the
 * runner to start a run, or after it had the runner forget one.
 * Threads: main, while no slot works. */

#include "worker/worker.h"

/* Removes them. found: what the runner lists; those stay. What cannot be removed is logged. */
void sweep_run_dirs(struct worker *w, const struct runner_job *found, size_t count);

#endif
