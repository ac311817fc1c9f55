/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_SYSTEM_STORE_H
#define COMMON_STORE_SYSTEM_STORE_H

/* system_store: the systems that jobs name as where they run. Threads: locked. */

#include "common/model/job.h"
#include "common/store/store.h"

#define SYSTEM_KIND_SIZE 17
#define SYSTEM_DESCRIPTION_SIZE 401

struct job_system {
    char tenant[TENANT_SIZE];
    char id[SYSTEM_ID_SIZE];
    char kind[SYSTEM_KIND_SIZE]; /* "local": the hosts of the workers themselves */
    bool enabled;
    uint32_t max_active;           /* jobs at once; 0: no limit, the same for the next */
    uint32_t max_active_per_owner; /* jobs of one owner at once */
    char description[SYSTEM_DESCRIPTION_SIZE];
    uint32_t version; /* for If-Match */
    int64_t created_us;
    int64_t updated_us;
};

/* In the order of their ids; freed with free(). */
MUST_USE enum err_code system_store_list(struct store *store, const char *tenant,
                                         const struct name_page *page,
                                         struct job_system **ret_items, size_t *ret_count,
                                         struct err *err);
MUST_USE enum err_code system_store_get(struct store *store, const char *tenant, const char *id,
                                        struct job_system *ret_system, struct err *err);
/* Writes kind, limits and description; a new one is enabled. expect_version as in
 * queue_store_put. */
MUST_USE enum err_code system_store_put(struct store *store, const struct job_system *what,
                                        uint32_t expect_version, uint32_t *ret_version,
                                        bool *ret_made, struct err *err);
/* Jobs that name it are blocked when their turn comes. */
MUST_USE enum err_code system_store_delete(struct store *store, const char *tenant, const char *id,
                                           uint32_t expect_version, struct err *err);
MUST_USE enum err_code system_store_enable(struct store *store, const char *tenant, const char *id,
                                           bool enabled, struct err *err);

#endif
