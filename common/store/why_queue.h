/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_WHY_QUEUE_H
#define COMMON_STORE_WHY_QUEUE_H

/* why_queue: what explains why jobs of a queue wait: its workers, what is before a job, how long
 * jobs run here. Every read is by an index and bounded. Threads: locked. */

#include "common/store/audit_log.h"
#include "common/store/worker_store.h"

#define WHY_AHEAD_MAX 1000 /* jobs before it are counted so far */
#define WHY_OWNERS_MAX 3
#define WHY_RUNS_LEAST 3 /* that ended in the last hour, for a median that says something */

struct why_owner {
    char name[USER_SIZE];
    uint32_t jobs;
};

struct why_queue {
    bool exists;
    bool enabled;
    uint32_t version;
    int64_t changed_age_us;  /* since it was changed last */
    struct audit_act change; /* of then; "": not known by whom */
    /* Before one job; of its queue, waiting, and submitted earlier. */
    uint32_t ahead;
    bool ahead_more;
    struct why_owner owners[WHY_OWNERS_MAX]; /* who has most of them, the first with most */
    size_t owner_count;
    /* Its live workers, by their last beats. */
    uint32_t workers;
    uint32_t silent;  /* with a beat older than the lease */
    uint32_t drained; /* of the others */
    uint32_t slots;
    uint32_t busy;
    uint32_t usable;     /* slots of workers that take jobs */
    uint32_t free;       /* of these */
    int64_t beat_age_us; /* the oldest beat of those that are not silent */
    bool has_worker;
    struct worker_row
        worker; /* the live one that was heard of last; or the last one, if none lives */
    struct audit_act drain; /* of that worker; "": not drained, or not known by whom */
    /* Runs that ended in the last hour; no more than a sample is looked at. */
    uint32_t runs;
    int64_t run_us; /* their median */
};

/* All but what is before a job. lease_ms: the silence after which a worker counts as dead. */
MUST_USE enum err_code why_queue_read(struct store *store, const char *tenant, const char *name,
                                      uint32_t lease_ms, struct why_queue *ret_queue,
                                      struct err *err);
MUST_USE enum err_code why_queue_ahead(struct store *store, const struct job *job,
                                       struct why_queue *queue, struct err *err);

#endif
