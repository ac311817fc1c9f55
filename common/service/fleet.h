/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_FLEET_H
#define COMMON_SERVICE_FLEET_H

/* fleet: the watch over the workers, a thread in every worker and recovery process, so that no
 * single process is needed. Once per beat interval it reads the beats of all live workers, asks the
 * broker for the queues of those whose beat stands still, and declares dead whom fleet_judge finds
 * so. The declaration is guarded by the beat that was seen, and final. It asks on a connection of
 * its own that never publishes: one that does is not read by a broker short of memory or disk, and
 * nobody could be declared dead for as long as that lasts.
 * Threads: owner for start and stop. */

#include "common/bus/publisher.h"
#include "common/store/worker_store.h"

#include <stdatomic.h>

struct fleet;

struct fleet_config {
    struct store *store;
    const struct bus_config *bus;    /* copied */
    struct bus_publisher *publisher; /* for the messages of a dead worker's jobs */
    unsigned beat_ms;
    unsigned lease_ms;          /* a worker whose row has a larger one is waited for so long */
    atomic_bool *leases_differ; /* answer: the live workers and this process have several */
};

MUST_USE enum err_code fleet_start(const struct fleet_config *cfg, struct fleet **ret_fleet,
                                   struct err *err);
void fleet_stop(struct fleet *fleet); /* NULL is allowed */
DEFINE_AUTO(struct fleet *, fleet_stop)

#endif
