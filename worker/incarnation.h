/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INCARNATION_H
#define WORKER_INCARNATION_H

/* incarnation: one life of a worker under one id, from its row in the fleet to its end.
 * Threads: main. */

#include "worker/worker.h"

/* Everything up to receiving deliveries, in the order of docs/ownership.md, section 3. What was
 * started is ended by incarnation_end, also after an error. */
MUST_USE enum err_code incarnation_start(struct worker *w, struct err *err);
/* Lets running jobs end, for up to worker.drain_ms; leaves the rest to the runner. */
void incarnation_drain(struct worker *w);
/* Kills what runs, writes nothing more: somebody else may own these jobs. */
void incarnation_drop(struct worker *w);
void incarnation_end(struct worker *w);

#endif
