/* SPDX-License-Identifier: MIT */
#ifndef COMMON_AUTH_KEY_STORE_H
#define COMMON_AUTH_KEY_STORE_H

/* key_store: the keys of all tenants in memory, as their folders were at the last look. For this
 * folder only.
 * Threads: locked (a tenant's keys are immutable and counted).
 * Memory:  key_store_find() lends; tenant_keys_free() gives back. */

#include "common/auth/auth.h"
#include "common/auth/auth_key.h"

#include <stdatomic.h>

#define TENANT_KEYS_MAX 64

struct tenant_keys {
    char tenant[AUTH_TENANT_SIZE];
    atomic_uint refs;
    atomic_bool unreadable;     /* the folder, at the last look; logged once */
    atomic_uint_fast64_t stamp; /* differs for each loading, of any tenant, and when a key goes */
    uint64_t signature; /* of the folder: names, sizes and times of the files; the scan's alone */
    size_t count;
    struct auth_key keys[TENANT_KEYS_MAX];
    uint64_t files[TENANT_KEYS_MAX];   /* of a key: signature of its file */
    atomic_bool gone[TENANT_KEYS_MAX]; /* its file went, or changed, while the folder could not be
                                          read as a whole */
};

struct key_set {
    struct tenant_keys **tenants; /* sorted by name */
    size_t count;
    size_t refused; /* folders that could not be read, or were too many */
};

struct key_store; /* opaque: the body is in key_store.c */

MUST_USE enum err_code key_store_open(const struct auth_config *cfg, struct key_store **ret_store,
                                      struct err *err);
void key_store_close(struct key_store *store);
/* Looks at the folders again if the last look is older than age_ms (more, when looking takes long).
 * Waits for a look that another thread has begun only if wait is true. */
void key_store_refresh(struct key_store *store, unsigned age_ms, bool wait);
/* NULL if there is no such tenant. */
struct tenant_keys *key_store_find(struct key_store *store, struct sv tenant);
size_t key_store_count(struct key_store *store);
/* What of the folders could not be read at the last look. */
struct auth_trouble key_store_trouble(struct key_store *store);
MUST_USE bool key_store_name(struct key_store *store, size_t index, char *ret_name);

void tenant_keys_free(struct tenant_keys *tenant); /* gives one reference back */

/* Reads all folders; tenants whose folder did not change are shared with old. What cannot be read
 * brings no new keys, and of those that are known keeps the ones whose files are seen to be there
 * as they were. In key_scan.c. */
MUST_USE enum err_code key_scan(const struct auth_config *cfg, const struct key_set *old,
                                struct key_set *ret_set, struct err *err);
/* Forgets the keys of all tenants whose files are not seen to be as they were. */
void key_scan_drop(const struct auth_config *cfg, const struct key_set *set);
struct tenant_keys *key_set_find(const struct key_set *set, struct sv tenant); /* lends */
void key_set_done(struct key_set *set);

DEFINE_AUTO(struct tenant_keys *, tenant_keys_free)

#endif
