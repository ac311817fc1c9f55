/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_TENANT_STORE_H
#define COMMON_STORE_TENANT_STORE_H

/* tenant_store: which tenants there are (tenant_store_ensure makes them). Threads: locked. */

#include "common/model/job.h"
#include "common/store/store.h"

struct tenant_name {
    char text[TENANT_SIZE];
};

/* Recovery serves so many tenants whether they have work or not: the first by name. A site of few
 * tenants is thus served wholly. */
#define TENANTS_ALWAYS_SERVED 16

/* All, in order; freed with free(). */
MUST_USE enum err_code tenant_store_list(struct store *store, struct tenant_name **ret_names,
                                         size_t *ret_count, struct err *err);
/* Those that recovery must serve now, in no order: the first TENANTS_ALWAYS_SERVED, and those with
 * jobs that wait for a cause. It costs the same however many others there are. */
MUST_USE enum err_code tenant_store_list_waiting(struct store *store,
                                                 struct tenant_name **ret_names, size_t *ret_count,
                                                 struct err *err);
/* Those with a job that has not ended, in no order; costs a few reads of an index per tenant. */
MUST_USE enum err_code tenant_store_list_busy(struct store *store, struct tenant_name **ret_names,
                                              size_t *ret_count, struct err *err);

#endif
