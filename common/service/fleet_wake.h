/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_FLEET_WAKE_H
#define COMMON_SERVICE_FLEET_WAKE_H

/* fleet_wake: what the watcher that has declared a worker dead does for its jobs, so that they do
 * not wait until their deferred messages come round: those with a cancel request end, the others
 * get a fresh message, unless the broker takes none now: then those that are there stay good.
 * Threads: owner. Errors: none; what is not done here is repaired by sluice-recovery. */

#include "common/service/fleet.h"

void fleet_wake(const struct fleet_config *cfg, const struct uuid *dead);

#endif
