/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_STATS_H
#define READERS_RECOVERY_STATS_H

/* stats: what sluice-recovery counts. Threads: any. */

#include "common/service/metrics.h"
#include "common/store/reconcile_store.h"

extern struct metric stat_tests;    /* by enum test_result */
extern struct metric stat_released; /* jobs */
extern struct metric stat_given_up; /* jobs */
extern struct metric stat_leading;  /* tenants that we lead */
extern struct metric stat_takeovers;
extern struct metric stat_fenced;

void stats_add(void);
void stats_repaired(enum stray_kind kind);
void stats_lost(uint64_t jobs);        /* that got a new message for a lost one */
void stats_relayed(uint64_t messages); /* so far */
/* Blocked jobs of the site, by condition. */
void stats_blocked(const uint64_t counts[JOB_CONDITION_COUNT]);

#endif
