/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_RECONCILE_STORE_H
#define COMMON_STORE_RECONCILE_STORE_H

/* reconcile_store: what should never be, and is looked for all the same: by indexed reads that
 * normally find nothing. Repairs are guarded by what was read, and by the leader's number.
 * Threads: locked. */

#include "common/store/recovery_store.h"

enum stray_kind {
    STRAY_BLOCKED, /* a BLOCKED job without a blocked row: back to its queue */
    STRAY_ROW,     /* a blocked row whose job is not BLOCKED: deleted */
    STRAY_OWNED,   /* an active job whose owner is not live, and was not for long: a new message */
    STRAY_KIND_COUNT
};

struct stray {
    enum stray_kind kind;
    struct uuid job;
    uint32_t epoch;
    enum job_state resume; /* STRAY_BLOCKED: what it was before; STRAY_OWNED: what it is */
};
struct stray_list {
    struct stray *items; /* free() */
    size_t count;
};
struct stray_search {
    const char *tenant;
    uint32_t limit;      /* of each kind */
    int64_t owner_ms;    /* so long the owner must have been silent */
    int64_t requeued_ms; /* and so long ago the last new message, if there was one */
};
MUST_USE enum err_code reconcile_store_find(struct store *store, const struct stray_search *search,
                                            struct stray_list *ret_list, struct err *err);
/* *ret_done: false if it was no stray any more. A new message is left to the relay. */
MUST_USE enum err_code reconcile_store_repair(struct store *store, const struct recovery_lead *lead,
                                              const struct stray *stray, bool *ret_done,
                                              struct err *err);

#endif
