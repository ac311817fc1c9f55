/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_AUDIT_STORE_H
#define COMMON_STORE_AUDIT_STORE_H

/* audit_store: the invariants of docs/ownership.md, as far as the rows tell, read in one consistent
 * snapshot: what one transaction changes together is seen together, so those checks need no grace.
 * Only what others repair in time (a job whose owner is gone) has one, by the database's clock.
 * Reads whole tables. Threads: locked. */

#include "common/store/store.h"

#define AUDIT_CHECK_MAX 100 /* breaches that are told of one check */

struct audit_breach {
    const char *invariant; /* "I1" to "I8" */
    const char *rule;      /* a sentence */
    char subject[64];      /* an id without dashes, or what is meant */
    char detail[400];
};

/* *ret_items (may be NULL if there are none) is the caller's to free. */
MUST_USE enum err_code audit_store_run(struct store *store, int64_t lease_ms,
                                       struct audit_breach **ret_items, size_t *ret_count,
                                       struct err *err);

#endif
