/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_PLACES_H
#define WORKER_RUNNER_PLACES_H

/* places: what all jobs of a runner may reach outside their own folders, as open descriptors: the
 * rows of place.def and the folders that the site names, without what is denied.
 * Threads: owner. Memory: places_free closes them. */

#include "common/base/err.h"

#include <jansson.h>

struct places;

/* wanted has the lists read, write and deny; handled are the accesses of the rule sets. */
MUST_USE enum err_code places_open(const json_t *wanted, uint64_t handled,
                                   struct places **ret_places, struct err *err);
void places_free(struct places *places);
/* A folder that was opened entry by entry has got or lost an entry. */
bool places_changed(const struct places *places);
bool places_allow(const struct places *places, int ruleset); /* false: errno says why */
/* The accesses to a folder that jobs write to. */
uint64_t places_work(uint64_t handled);

#endif
