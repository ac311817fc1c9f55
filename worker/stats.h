/* SPDX-License-Identifier: MIT */
#ifndef WORKER_STATS_H
#define WORKER_STATS_H

/* stats: the worker's metrics. Threads: any, after stats_add(). */

#include "common/service/metrics.h"
#include "worker/slots.h"

/* In the order of the label's values. */
enum stat_outcome { STAT_FINISHED, STAT_FAILED, STAT_CANCELLED };
enum stat_delivery {
    STAT_UNPARSABLE,
    STAT_UNKNOWN,
    STAT_ENDED,
    STAT_HELD,
    STAT_CLAIMED,
    STAT_ADOPTED,
    STAT_DEFERRED,
    STAT_TAKEN_OVER,
    STAT_GIVEN_BACK,
};

extern struct metric stat_outcomes;
extern struct metric stat_deliveries;
extern struct metric stat_stale;
extern struct metric stat_redeliveries;
extern struct metric stat_fenced;
extern struct metric stat_losses;
extern struct metric stat_blocks;
extern struct metric stat_adopted_runs;
extern struct metric stat_beats;
extern struct metric stat_slots;
extern struct metric stat_busy;
extern struct metric stat_finishing;
extern struct metric stat_waiting;
extern struct metric stat_claim;
extern struct metric stat_queue_wait;
extern struct metric stat_run;
extern struct metric stat_commit;

void stats_add(void);
/* For slots_setup.counted. */
void stats_count_slots(void *arg, const struct slots_counts *counts);

#endif
