/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_SERVED_H
#define WEBAPP_SERVED_H

/* served: the queues that some worker takes jobs from, as of a moment ago: for warnings, nothing is
 * decided by it. That a queue has none is looked up again, since a worker may just have come.
 * Threads: locked. Memory: served_free() */

#include "common/store/store.h"

struct served;

MUST_USE enum err_code served_new(struct served **ret_served, struct err *err);
void served_free(struct served *served); /* NULL is allowed */
/* Reads them. What cannot be read is forgotten: nothing is warned of then. */
void served_look(struct served *served, struct store *store);
/* true also if it is not known. */
bool served_has(struct served *served, struct store *store, const char *tenant, const char *queue);

#endif
