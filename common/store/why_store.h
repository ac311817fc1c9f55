/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_WHY_STORE_H
#define COMMON_STORE_WHY_STORE_H

/* why_store: what explains where a job is. Every read is by an index and bounded, however many jobs
 * there are. Threads: locked. */

#include "common/model/job.h"
#include "common/store/recovery_store.h"
#include "common/store/store.h"
#include "common/store/why_queue.h"
#include "common/store/why_run.h"

struct why_blocked {
    struct uuid recovery;
    enum job_state resume;
    int64_t blocked_us;
    char tester[BLOCK_TESTER_SIZE];
    char params[BLOCK_PARAMS_SIZE];
    uint32_t tests;
    uint32_t tries;
    int64_t next_us;
    int64_t next_in_us; /* from now; negative: overdue */
    char last_result[RECOVERY_RESULT_SIZE];
    char last_detail[JOB_REASON_SIZE];
    uint32_t ramp; /* not 0: a release is under way */
    char policy[BLOCK_POLICY_SIZE];
    uint32_t before; /* jobs of its group that go on before it, counted to WHY_AHEAD_MAX */
    /* Who let it go on last, before it was blocked again, and when; "" and 0: nobody did. */
    char released_by[USER_SIZE];
    int64_t released_us;
};

struct why {
    int64_t now_us;    /* by the database's clock, as all times of jobs */
    uint32_t lease_ms; /* as given */
    int64_t since_us;  /* it came to its state; 0: not known */
    int64_t held_us;   /* of a cancelled job: it was held last; 0: it never was */
    int64_t asked_us;  /* of a job with an owner: its cancellation was; 0: was not */
    /* ... the last that is known of it: its host was short of something; 0: it was not */
    int64_t delayed_us;
    char delay[JOB_REASON_SIZE];
    struct why_queue queue;
    struct why_run run;
    bool has_worker; /* the owner's row was found */
    struct worker_row worker;
    bool has_blocked;
    struct why_blocked blocked;
};

/* lease_ms: the silence after which a worker counts as dead. */
MUST_USE enum err_code why_store_read(struct store *store, const struct job *job, uint32_t lease_ms,
                                      struct why *ret_why, struct err *err);

#endif
