/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_SWEEPER_H
#define WEBAPP_SWEEPER_H

/* sweeper: a thread that removes idempotency keys whose time is over, once a minute, and counts the
 * events of jobs by minute for the overview, every five seconds.
 * Threads: owner. Memory: sweeper_free() ends the thread. */

#include "common/store/store.h"

struct sweeper;

MUST_USE enum err_code sweeper_open(struct store *store, uint32_t key_hours,
                                    struct sweeper **ret_sweeper, struct err *err);
void sweeper_free(struct sweeper *sweeper); /* NULL is allowed */

#endif
