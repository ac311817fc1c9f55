/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_PRESENCE_H
#define COMMON_SERVICE_PRESENCE_H

/* presence: a thread that says in the database that this process runs, and of which version it is,
 * so that an upgrade can be followed. Failures are not told: a database that is away is told by
 * others. Threads: owner. Memory: presence_stop() ends the thread and takes the row away. */

#include "common/store/store.h"

#define PRESENCE_EVERY_MS 10000
#define PRESENCE_MS 35000 /* whoever was not heard of for so long does not run */

struct presence;

MUST_USE enum err_code presence_start(struct store *store, const char *service,
                                      struct presence **ret_presence, struct err *err);
void presence_stop(struct presence *presence); /* NULL is allowed */

#endif
