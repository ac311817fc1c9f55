/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_QUOTA_STORE_H
#define COMMON_STORE_QUOTA_STORE_H

/* quota_store: how many jobs of a tenant, or of one of its users, may be active at once, and how
 * many are. A job is active while a worker owns it, from its first phase on; that is counted from
 * the rows of jobs and stored nowhere. Threads: locked. */

#include "common/model/job.h"
#include "common/store/store.h"

#define QUOTA_TENANT_OWNER "*" /* the quota of the whole tenant */

struct quota {
    char tenant[TENANT_SIZE];
    char owner[USER_SIZE]; /* or QUOTA_TENANT_OWNER */
    uint32_t max_active;   /* at least 1 */
    uint32_t version;      /* for If-Match */
    int64_t created_us;
    int64_t updated_us;
};

/* In the order of the owners; freed with free(). */
MUST_USE enum err_code quota_store_list(struct store *store, const char *tenant,
                                        const struct name_page *page, struct quota **ret_items,
                                        size_t *ret_count, struct err *err);
MUST_USE enum err_code quota_store_get(struct store *store, const char *tenant, const char *owner,
                                       struct quota *ret_quota, struct err *err);
/* expect_version as in queue_store_put. */
MUST_USE enum err_code quota_store_put(struct store *store, const struct quota *quota,
                                       uint32_t expect_version, uint32_t *ret_version,
                                       bool *ret_made, struct err *err);
MUST_USE enum err_code quota_store_delete(struct store *store, const char *tenant,
                                          const char *owner, uint32_t expect_version,
                                          struct err *err);

/* ---- what is used ------------------------------------------------------------------------- */

enum quota_scope { /* what a limit is a limit of */
                   QUOTA_TENANT,
                   QUOTA_OWNER,
                   QUOTA_SYSTEM,
                   QUOTA_SYSTEM_OWNER, /* the jobs of one owner on one of the systems */
                   QUOTA_SCOPE_COUNT
};
const char *quota_scope_text(enum quota_scope scope); /* "tenant", "owner", "system", ... */
MUST_USE bool quota_scope_parse(struct sv text, enum quota_scope *ret_scope);

struct quota_key {
    const char *tenant;
    enum quota_scope scope;
    const char *owner;     /* of the scopes with an owner; else NULL is allowed */
    const char *system_id; /* the same */
};
#define QUOTA_NO_LIMIT UINT32_MAX
struct quota_use {
    uint32_t limit;  /* QUOTA_NO_LIMIT: there is none (any more) */
    uint32_t active; /* jobs */
    uint32_t room;   /* jobs that may come on top; QUOTA_NO_LIMIT without a limit */
};
MUST_USE enum err_code quota_store_use(struct store *store, const struct quota_key *key,
                                       struct quota_use *ret_use, struct err *err);

#endif
