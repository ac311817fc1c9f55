/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_NEW_H
#define COMMON_STORE_JOB_NEW_H

/* job_new: the submission of jobs, a part of job_store. Threads: locked. Memory: what goes in is
 * borrowed for the call. */

#include "common/model/job.h"
#include "common/store/store.h"

struct job_new_hook { /* a subscription that comes with a job */
    const char *url;
    unsigned states;    /* hook_states_text() */
    const char *secret; /* the subscription whose secret signs; NULL for none */
    struct uuid lane;   /* deliveries to one host share one */
};

struct job_new {
    struct uuid id; /* made by the caller, so that a retry after an unknown commit finds it */
    const char *tenant;
    const char *owner;
    const char *name;
    const char *app_id; /* NULL or "" for none; the same for app_version and system_id */
    const char *app_version;
    const char *system_id;
    const char *queue;
    uint32_t node_count;
    uint32_t cores_per_node;
    uint32_t memory_mb;
    uint32_t max_seconds;
    struct sv request;           /* JSON */
    const char *tags;            /* JSON array */
    const char *idempotency_key; /* NULL for none */
    uint8_t body_hash[32];       /* SHA-256 of the request; used with a key only */
    const struct job_new_hook *hooks;
    size_t hook_count;
    const char *detail; /* for the first event, e.g. "resubmitted from ..."; may be NULL */
};

struct job_submitted {
    struct uuid id; /* of an earlier job if replayed */
    bool replayed;  /* the key was used before for the same body: nothing was written */
    uint64_t outbox_id;
    int64_t created_us; /* 0 if replayed */
};

/* One transaction: job row (PENDING, epoch 1), event, outbox row, idempotency key, subscriptions.
 * ERR_IDEMPOTENCY: the key was used for another body. An unknown commit is settled by looking for
 * the id. */
MUST_USE enum err_code job_store_submit(struct store *store, const struct job_new *job,
                                        struct job_submitted *ret, struct err *err);
/* All that were not stored under their keys before, or none; ret holds count items.
 * ERR_IDEMPOTENCY: the key of one was used for another body. */
MUST_USE enum err_code job_store_submit_many(struct store *store, const struct job_new *jobs,
                                             size_t count, struct job_submitted *ret,
                                             struct err *err);

struct job_item { /* one of a group: what shall be stored, and what became of it */
    struct job_new job;
    struct job_submitted done; /* if err says ERR_OK */
    struct err err;
};
/* Each for itself, in one transaction as long as none stands in the way of the others. */
void job_store_submit_group(struct store *store, struct job_item *const *items, size_t count);

/* Removes at most limit keys that are older than this; the oldest first. */
MUST_USE enum err_code job_store_forget_keys(struct store *store, uint32_t hours, uint32_t limit,
                                             uint64_t *ret_rows, struct err *err);

#endif
