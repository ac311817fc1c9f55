/* SPDX-License-Identifier: MIT */
#ifndef READERS_WEBHOOK_STATS_H
#define READERS_WEBHOOK_STATS_H

/* stats: the metrics of sluice-webhook. Threads: any. */

#include "common/service/metrics.h"
#include "common/store/hook_send.h"

extern struct metric stat_attempts; /* by enum hook_outcome */
extern struct metric stat_took;
extern struct metric stat_made;
extern struct metric stat_leading;
extern struct metric stat_behind;

void stats_add(struct store *store);
void stats_attempt(const struct hook_result *result); /* counts and logs it */

#endif
