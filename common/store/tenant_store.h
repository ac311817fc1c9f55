/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_TENANT_STORE_H
#define COMMON_STORE_TENANT_STORE_H

/* tenant_store: which tenants there are (tenant_store_ensure makes them). Threads: locked. */

#include "common/model/job.h"
#include "common/store/store.h"

struct tenant_name {
    char text[TENANT_SIZE];
};

/* All, in order; freed with free(). */
MUST_USE enum err_code tenant_store_list(struct store *store, struct tenant_name **ret_names,
                                         size_t *ret_count, struct err *err);

#endif
