/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ANNOUNCER_H
#define WORKER_ANNOUNCER_H

/* announcer: tells whoever waits for jobs that they ended, by messages to sluice.events; best
 * effort. A lone end is told at once. Ends that come thick and fast share a message: there are at
 * most 1000 / ANNOUNCE_PACE_MS of them per second, since each costs the broker and every web
 * process as much as a part of a job.
 * Threads: locked. */

#include "common/base/uuid.h"
#include "common/bus/publisher.h"
#include "common/model/job_state.h"

#define ANNOUNCE_PACE_MS 20

struct announcer;

/* pub and tenant are borrowed. */
MUST_USE enum err_code announcer_open(struct bus_publisher *pub, const char *tenant,
                                      struct announcer **ret_announcer, struct err *err);
/* Tells what is still to be told. NULL is allowed. */
void announcer_close(struct announcer *announcer);
void announcer_tell(struct announcer *announcer, const struct uuid *job, enum job_state state);

#endif
