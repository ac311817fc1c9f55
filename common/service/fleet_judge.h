/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_FLEET_JUDGE_H
#define COMMON_SERVICE_FLEET_JUDGE_H

/* fleet_judge: when is a worker dead? (docs/ownership.md) When for one whole lease without a gap,
 * on the watcher's own monotonic clock, its beat did not change AND at every look the broker held
 * no queue for it. A look that failed starts the lease anew; so does a watcher that did not look
 * for half a lease. No I/O, no clock: the caller tells both.
 * Threads: owner. Memory: fleet_judge_done() frees. */

#include "common/base/err.h"
#include "common/base/uuid.h"

struct fleet_entry {
    struct uuid id;
    uint64_t beat;
    bool silent;       /* both witnesses were missing at the last look */
    int64_t silent_ms; /* and at every one since then */
    bool seen;         /* by the look under way */
    bool still;        /* its beat has not changed since the look before */
};

struct fleet_judge {
    struct fleet_entry *entries;
    size_t count;
    size_t capacity;
    int64_t lease_ms;
    int64_t last_look_ms;
    bool looked;
};

void fleet_judge_init(struct fleet_judge *judge, int64_t lease_ms);
void fleet_judge_done(struct fleet_judge *judge);
/* A look begins at now_ms; then fleet_judge_beat for each live worker, then fleet_judge_forget. */
void fleet_judge_begin(struct fleet_judge *judge, int64_t now_ms);
/* ret_ask: its beat stands still, so the broker has to be asked. */
MUST_USE enum err_code fleet_judge_beat(struct fleet_judge *judge, const struct uuid *id,
                                        uint64_t beat, bool *ret_ask, struct err *err);
/* Those that the look did not see are not live any more. */
void fleet_judge_forget(struct fleet_judge *judge);
/* The broker's answer, which came at now_ms: somebody holds its queue, or not. true: it is dead. */
bool fleet_judge_held(struct fleet_judge *judge, const struct uuid *id, bool held, int64_t now_ms);
/* The look failed for this worker, or (NULL) for all. */
void fleet_judge_failed(struct fleet_judge *judge, const struct uuid *id);

#endif
