/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_KEEPER_H
#define READERS_RECOVERY_KEEPER_H

/* keeper: a thread that removes what is older than retention.* says, one pass per
 * retention.interval_s. Of all recovery processes of a site one does so at a time.
 * Threads: owner. Memory: keeper_stop() ends the thread, between two batches. */

#include "common/config/config.h"
#include "common/store/store.h"

struct keeper;

void keeper_metrics_add(void);
MUST_USE enum err_code keeper_start(struct store *store, const struct config *cfg,
                                    struct keeper **ret_keeper, struct err *err);
void keeper_stop(struct keeper *keeper); /* NULL is allowed */

#endif
