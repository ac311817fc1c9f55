/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_QUEUE_STORE_H
#define COMMON_STORE_QUEUE_STORE_H

/* queue_store: tenants and their queues. */

#include "common/model/job.h"
#include "common/store/store.h"

#define QUEUE_FILTER_MAX 4096
#define QUEUES_PER_TENANT_MAX 1000
#define QUEUE_DEFAULT "default"

struct job_queue {
    char tenant[TENANT_SIZE];
    char name[QUEUE_NAME_SIZE];
    int32_t priority;     /* higher is tried first; unique within the tenant */
    char *filter;         /* NULL: never chosen by a filter (the default queue) */
    char queue_type[16];  /* quorum, classic */
    bool enabled;         /* a disabled queue is not chosen */
    uint32_t max_seconds; /* 0: no limit of its own */
    char description[401];
    uint32_t version; /* for If-Match; rises by one with each change */
    int64_t created_us;
    int64_t updated_us;
};

struct job_queue_list {
    struct job_queue *items; /* by priority, highest first */
    size_t count;
};

/* Makes the tenant and its default queue if they are not there. */
MUST_USE enum err_code tenant_store_ensure(struct store *store, const char *tenant,
                                           struct err *err);
/* The number that rises with every change of any queue. */
MUST_USE enum err_code queue_store_version(struct store *store, uint64_t *ret_version,
                                           struct err *err);
MUST_USE enum err_code queue_store_list(struct store *store, const char *tenant,
                                        struct job_queue_list *ret_list, struct err *err);
void job_queue_list_done(struct job_queue_list *list);
MUST_USE enum err_code queue_store_get(struct store *store, const char *tenant, const char *name,
                                       struct job_queue *ret_queue, struct err *err);
void job_queue_done(struct job_queue *queue);
/* expect_version: a version or EXPECT_...; ERR_PRECONDITION. ERR_CONFLICT: the priority is taken
 * (err.text names the queue that has it). ret_version is that of the stored row; *ret_made tells a
 * new one. */
MUST_USE enum err_code queue_store_put(struct store *store, const struct job_queue *queue,
                                       uint32_t expect_version, uint32_t *ret_version,
                                       bool *ret_made, struct err *err);
/* ERR_IN_USE while jobs that have not ended are on it, or for the default queue. */
MUST_USE enum err_code queue_store_delete(struct store *store, const char *tenant, const char *name,
                                          uint32_t expect_version, struct err *err);

#endif
