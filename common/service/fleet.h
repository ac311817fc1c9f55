/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_FLEET_H
#define COMMON_SERVICE_FLEET_H

/* fleet: the watch over the workers, a thread in every worker and recovery process, so that no
 * single process is needed. Once per beat interval it reads the beats of all live workers, asks the
 * broker for the queues of those whose beat stands still, and declares dead whom fleet_judge finds
 * so. The declaration is guarded by the beat that was seen, and final.
 * Threads: owner for start and stop. */

#include "common/bus/publisher.h"
#include "common/store/worker_store.h"

struct fleet;

struct fleet_config {
    struct store *store;
    struct bus_publisher *publisher;
    unsigned beat_ms;
    unsigned lease_ms;
};

MUST_USE enum err_code fleet_start(const struct fleet_config *cfg, struct fleet **ret_fleet,
                                   struct err *err);
void fleet_stop(struct fleet *fleet); /* NULL is allowed */
DEFINE_AUTO(struct fleet *, fleet_stop)

#endif
