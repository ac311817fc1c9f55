/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_PROCESS_STORE_H
#define COMMON_STORE_PROCESS_STORE_H

/* process_store: which programs of the site run, and of which version they are. Workers are in
 * worker_store. Threads: locked. */

#include "common/base/uuid.h"
#include "common/store/store.h"

struct process_row {
    struct uuid id; /* of this run of the program; not filled by the list */
    char service[33];
    char host[256];
    uint32_t pid;
    char version[33];
    uint32_t schema;  /* the newest that it knows */
    int64_t age_us;   /* since it was last heard of */
    int64_t clock_ms; /* its clock was so far ahead of the database's then; not written */
};

/* It runs; rows that nobody has refreshed for a day go. */
MUST_USE enum err_code process_store_seen(struct store *store, const struct process_row *row,
                                          struct err *err);
MUST_USE enum err_code process_store_gone(struct store *store, const struct uuid *id,
                                          struct err *err);
/* Those heard of within the time; free() the rows. */
MUST_USE enum err_code process_store_list(struct store *store, int64_t within_ms,
                                          struct process_row **ret_rows, size_t *ret_count,
                                          struct err *err);

#endif
