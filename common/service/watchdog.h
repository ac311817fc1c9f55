/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_WATCHDOG_H
#define COMMON_SERVICE_WATCHDOG_H

/* watchdog: proves to systemd (WatchdogSec=) that the process works. The loops that everything
 * depends on say each time round by when they will come round again; as long as all keep their word
 * the thread that takes signals says so to systemd. A loop that hangs, a lock that nobody gives
 * back or a stopped process ends that, and systemd starts the program anew. Without WatchdogSec=
 * nobody looks.
 * Threads: locked. Memory: a loop is the caller's, and lives until watchdog_leave(). */

#include "common/base/base.h"

struct watchdog_loop {
    const char *name; /* for the log; set by the caller, the rest is zero at first */
    struct watchdog_loop *next;
    int64_t due_ms;
    bool known, told;
};

/* It will be back within so long. The first call makes it known. */
void watchdog_turn(struct watchdog_loop *loop, int64_t within_ms);
/* It waits for something, however long that takes. */
void watchdog_rest(struct watchdog_loop *loop);
void watchdog_leave(struct watchdog_loop *loop); /* it ends */

/* For daemon.c: how often systemd wants to hear (0: never), and whether all loops are in time. */
int64_t watchdog_interval_ms(void);
bool watchdog_look(void);

#endif
