/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_QUOTA_COUNT_H
#define COMMON_STORE_QUOTA_COUNT_H

/* quota_count: limits and what is used of them, read inside a transaction. For common/store only.
 * Threads: owner. */

#include "common/store/pool.h"
#include "common/store/quota_store.h"

struct quota_limits {
    uint32_t items[QUOTA_SCOPE_COUNT]; /* 0: none */
};
struct quota_counts {
    uint32_t items[QUOTA_SCOPE_COUNT];
};

/* lock: their rows stay locked until the transaction ends, so that whoever counts against the same
 * limit waits. owner and system_id may be NULL or "". */
MUST_USE enum err_code quota_read_limits(struct txn *txn, const struct quota_key *whose, bool lock,
                                         struct quota_limits *ret_limits, struct err *err);
/* Active jobs, but for this one (NULL: all). */
MUST_USE enum err_code quota_count(struct txn *txn, const struct quota_key *whose,
                                   const struct uuid *but, struct quota_counts *ret_counts,
                                   struct err *err);

#endif
