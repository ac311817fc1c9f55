/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_RETENTION_IMPL_H
#define COMMON_STORE_RETENTION_IMPL_H

/* retention_impl: what the retention*.c files share. Threads: owner. */

#include "common/store/retention.h"

/* After a batch that began at began_ms: pauses for its share, and keeps the lead. */
MUST_USE enum err_code retention_rest(struct retention_pass *pass, int64_t began_ms,
                                      struct err *err);
/* Leaves the mark of this site (created_us: since when its database has retention) in the archive;
 * false, and logged: there is one of another site too, or there is no telling. */
MUST_USE bool retention_archive_is_ours(const struct retention_pass *pass, int64_t created_us);
/* Walks through the archive: counts, and removes what has no job and would be older than limit_us
 * (0: removes nothing). */
MUST_USE enum err_code retention_sweep(struct retention_pass *pass, int64_t limit_us,
                                       struct err *err);

#endif
