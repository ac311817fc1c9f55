/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_PROBE_H
#define WEBAPP_PROBE_H

/* probe: asks the database what /readyz and /metrics tell, on threads and a connection of its own,
 * when somebody wants to know. Whoever asks waits a moment at most: with a database that hangs
 * he hears just that. Threads: locked. Memory: probe_close() frees. */

#include "common/base/buf.h"
#include "common/config/config.h"
#include "common/store/store.h"

struct probe;

/* store must outlive the probe. */
MUST_USE enum err_code probe_open(const struct config *cfg, struct store *store,
                                  struct probe **ret_probe, struct err *err);
void probe_close(struct probe *probe); /* NULL is allowed */
/* Whether the database answers now, and has our schema. */
MUST_USE enum err_code probe_database(struct probe *probe, struct err *err);
/* Asks for the counts below, unless they are young; they stay as they are if no answer comes. It
 * waits for them only where they are found quickly, or where there are none yet. */
void probe_count(struct probe *probe);
int64_t probe_outbox_rows(struct probe *probe); /* -1: not known */
/* So long ago was what sluice-webhook has not looked through while somebody subscribes, or so long
 * something has waited to be sent while none runs. 0: there is nothing; -1: not known. */
int64_t probe_hook_lag_s(struct probe *probe);
int64_t
probe_unserved_queues(struct probe *probe); /* with PENDING jobs and no taker; -1: not known */
/* sluice_jobs and sluice_oldest_age_seconds; nothing while they are not known. */
void probe_write_jobs(struct probe *probe, struct buf *text);

#endif
