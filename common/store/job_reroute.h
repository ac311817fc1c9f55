/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_REROUTE_H
#define COMMON_STORE_JOB_REROUTE_H

/* job_reroute: a job that waits in one queue is put on another one. It is a move as that of a
 * fresh message (docs/ownership.md): epoch + 1 and an outbox row in the transaction that changes
 * the queue, so that the message in the former queue is stale. Threads: locked. */

#include "common/model/job.h"
#include "common/store/store.h"

struct job_reroute {
    const char *tenant;
    struct uuid id;
    uint32_t epoch;   /* as it was read */
    const char *from; /* queues */
    const char *to;
    const char *actor;
};
struct job_rerouted {
    uint64_t outbox_id;
    uint32_t epoch;
};
/* ERR_CONFLICT: it does not wait there any more (claimed, cancelled, blocked, moved), or the other
 * queue is gone or disabled. */
MUST_USE enum err_code job_store_reroute(struct store *store, const struct job_reroute *what,
                                         struct job_rerouted *ret, struct err *err);

#endif
