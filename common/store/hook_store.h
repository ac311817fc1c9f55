/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_HOOK_STORE_H
#define COMMON_STORE_HOOK_STORE_H

/* hook_store: subscriptions to what happens to jobs, and the log of what was delivered, as people
 * see them. What the sender does is in hook_send.h. Threads: locked. */

#include "common/model/hook.h"
#include "common/model/job.h"
#include "common/store/store.h"

#define HOOK_SEED_SIZE 32
#define HOOK_DESCRIPTION_SIZE 401
#define HOOK_ATTEMPTS_MAX 10 /* of one delivery that are kept */
#define HOOK_PAGE_MAX 1000

struct subscription {
    struct uuid id;
    char tenant[TENANT_SIZE];
    struct uuid job;           /* nil: of the whole tenant */
    char name[HOOK_NAME_SIZE]; /* "" if it came with a job */
    char owner[USER_SIZE];     /* who made it */
    char url[HOOK_URL_SIZE];
    unsigned states; /* as hook_states_text() */
    bool enabled;
    char description[HOOK_DESCRIPTION_SIZE];
    char secret_of[HOOK_NAME_SIZE]; /* the subscription whose secret signs; "" for none */
    bool has_secret;
    uint32_t version; /* for If-Match */
    int64_t created_us;
    int64_t updated_us;
};

/* Those of the tenant by name; freed with free(). */
MUST_USE enum err_code hook_store_list(struct store *store, const char *tenant,
                                       struct subscription **ret_items, size_t *ret_count,
                                       struct err *err);
MUST_USE enum err_code hook_store_get(struct store *store, const char *tenant, const char *name,
                                      struct subscription *ret_hook, struct err *err);
/* Writes url, states and description; a new one is enabled, has this seed and is told of what
 * happens from now on. expect_version as in queue_store_put. ERR_STATE: there are
 * HOOK_PER_TENANT_MAX. */
MUST_USE enum err_code hook_store_put(struct store *store, const struct subscription *what,
                                      uint32_t expect_version, const uint8_t *seed, bool *ret_made,
                                      struct err *err);
/* What was not delivered is dropped. */
MUST_USE enum err_code hook_store_delete(struct store *store, const char *tenant, const char *name,
                                         uint32_t expect_version, struct err *err);
/* What waits for it is dropped, at the latest before it is enabled again. */
MUST_USE enum err_code hook_store_enable(struct store *store, const char *tenant, const char *name,
                                         bool enabled, struct err *err);
/* A new seed; the old one signs as well for keep_s seconds. */
MUST_USE enum err_code hook_store_rotate(struct store *store, const char *tenant, const char *name,
                                         const uint8_t *seed, uint32_t keep_s, struct err *err);

/* ---- the log --------------------------------------------------------------------------------- */

struct delivery_view {
    struct uuid id;
    struct uuid subscription;
    struct uuid job;
    uint64_t seq; /* of the event */
    char event[25];
    char state[17];
    uint32_t attempts;
    uint32_t http_status; /* of the last attempt; 0: no answer came */
    char error[JOB_REASON_SIZE];
    int64_t created_us;
    int64_t next_us;
    int64_t ended_us; /* 0: not yet */
    char name[HOOK_NAME_SIZE];
    char url[HOOK_URL_SIZE];
    bool has_subscription; /* it is still there */
};
struct delivery_attempt {
    uint32_t attempt;
    int64_t at_us;
    uint32_t took_ms;
    uint32_t http_status;
    char error[JOB_REASON_SIZE];
};
struct delivery_query {
    const char *tenant;
    const struct uuid *job; /* NULL: any; the same for the next two */
    const char *state;
    const char *name;         /* of the subscription */
    const struct uuid *after; /* keyset, newest first; NULL for the first page */
    uint32_t limit;           /* 1..HOOK_PAGE_MAX */
    /* A search by state or name leaves rows out: stretch by stretch of so many rows (0: all at
     * once), for no longer than look_ms and the stretch that was begun. */
    uint32_t stretch;
    uint32_t look_ms;
};
struct delivery_list {
    struct delivery_view *items; /* free() */
    size_t count;
    bool more;        /* there are, or there may be */
    struct uuid last; /* with more: the next page begins behind it */
};
MUST_USE enum err_code hook_log_list(struct store *store, const struct delivery_query *query,
                                     struct delivery_list *ret_list, struct err *err);
struct delivery_detail {
    struct delivery_view view;
    char *body;                                          /* free() */
    struct delivery_attempt attempts[HOOK_ATTEMPTS_MAX]; /* newest first */
    size_t attempt_count;
};
MUST_USE enum err_code hook_log_get(struct store *store, const char *tenant, const struct uuid *id,
                                    struct delivery_detail *ret_detail, struct err *err);
/* Sends it again, now and beside the order. ERR_STATE: it is on its way, or its subscription is
 * gone or disabled. */
MUST_USE enum err_code hook_log_again(struct store *store, const char *tenant,
                                      const struct uuid *id, struct err *err);

#endif
