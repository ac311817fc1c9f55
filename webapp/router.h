/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_ROUTER_H
#define WEBAPP_ROUTER_H

/* router: which queue a job goes to. Holds the queues of each tenant with their compiled filters as
 * an immutable snapshot; a thread looks at the version of the queues twice a second and reads them
 * again when it has risen, so a changed filter counts in every web process without a restart.
 * Threads: locked; a snapshot is immutable. Memory: snapshots are counted: routing_put() each. */

#include "common/auth/auth.h"
#include "common/filter/filter.h"
#include "common/model/job_request.h"
#include "common/model/limits.h"
#include "common/store/queue_store.h"

struct router;

struct routing_queue {
    struct job_queue queue;
    struct filter *filter; /* NULL: no filter, or one that does not compile */
    bool is_default;
};

struct routing; /* the queues of one tenant, in the order in which they are tried */

MUST_USE enum err_code router_open(struct store *store, struct router **ret_router,
                                   struct err *err);
void router_free(struct router *router); /* NULL is allowed */
/* Makes the tenant (and its default queue) when it is seen for the first time. Store errors. */
MUST_USE enum err_code router_get(struct router *router, const char *tenant,
                                  struct routing **ret_routing, struct err *err);
/* Queues of this tenant were written by us: they count at once. */
void router_changed(struct router *router, const char *tenant);
/* Whether a worker takes jobs from the queue, as of a moment ago; true if not known. It may ask the
 * database. */
bool router_serves(struct router *router, const char *tenant, const char *queue);
void routing_put(struct routing *routing); /* NULL is allowed */
DEFINE_AUTO(struct routing *, routing_put)

size_t routing_count(const struct routing *routing);
const struct routing_queue *routing_at(const struct routing *routing, size_t index);

/* What filters see of a request. */
struct routing_row {
    struct filter_row row;
    struct filter_value values[FILTER_QUEUE_ATTR_COUNT];
    struct sv tags[LIMIT_TAG_COUNT];
};
/* Borrows from request and owner; wall_us is the time of the submission. */
void routing_row_init(struct routing_row *ret_row, const struct job_request *request,
                      const char *tenant, const char *owner, int64_t wall_us);
/* The first enabled queue whose filter is TRUE, else the default queue; NULL if that is disabled.
 */
const struct routing_queue *routing_choose(const struct routing *routing,
                                           const struct filter_row *row);

#endif
