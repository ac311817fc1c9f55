/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_FLEET_JUDGE_H
#define COMMON_SERVICE_FLEET_JUDGE_H

/* fleet_judge: when is a worker dead? (docs/ownership.md) When for one whole lease without a gap,
 * on the watcher's own monotonic clock, its beat did not change AND at every look the broker held
 * no queue for it. The lease is the larger of the watcher's own and the worker's, which it counts
 * its runs' time by. A look that failed starts the lease anew; so does a watcher that did not look
 * for half a lease of its own. No I/O, no clock: the caller passes both.
 * Threads: owner. Memory: fleet_judge_done() frees. */

#include "common/base/err.h"
#include "common/base/uuid.h"
#include "common/store/worker_store.h"

struct fleet_entry {
    struct uuid id;
    uint64_t beat;
    int64_t lease_ms;  /* the larger of the worker's and the watcher's */
    bool silent;       /* both witnesses were missing at the last look */
    int64_t silent_ms; /* and at every one since then */
    bool seen;         /* by the look under way */
    bool still;        /* its beat has not changed since the look before */
};

struct fleet_judge {
    struct fleet_entry *entries;
    size_t count;
    size_t capacity;
    int64_t lease_ms; /* the watcher's */
    int64_t last_look_ms;
    bool looked;
};

void fleet_judge_init(struct fleet_judge *judge, int64_t lease_ms);
void fleet_judge_done(struct fleet_judge *judge);
/* A look begins at now_ms; then fleet_judge_beat for each live worker, then fleet_judge_forget. */
void fleet_judge_begin(struct fleet_judge *judge, int64_t now_ms);
/* beat, lease_ms: as its row has them. ret_ask: its beat stands still, so the broker has to be
 * asked. */
MUST_USE enum err_code fleet_judge_beat(struct fleet_judge *judge, const struct worker_beat *row,
                                        bool *ret_ask, struct err *err);
/* Those that the look did not see are not live any more. */
void fleet_judge_forget(struct fleet_judge *judge);
/* The broker's answer, which came at now_ms: somebody holds its queue, or not. true: it is dead. */
bool fleet_judge_held(struct fleet_judge *judge, const struct uuid *id, bool held, int64_t now_ms);
/* When the next of the silent ones can be dead, on the clock of the looks; INT64_MAX: none is. */
int64_t fleet_judge_due_ms(const struct fleet_judge *judge);
/* The look failed for this worker, or (NULL) for all. */
void fleet_judge_failed(struct fleet_judge *judge, const struct uuid *id);

#endif
