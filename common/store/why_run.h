/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_WHY_RUN_H
#define COMMON_STORE_WHY_RUN_H

/* why_run: what explains the run of a job: the runs before it that were lost, and how long jobs of
 * its name run. Every read is by an index and bounded. Threads: locked. */

#include "common/model/job.h"
#include "common/store/store.h"

#define WHY_LOSSES_MAX 5
#define WHY_NAMED_LEAST 3 /* runs, for a median that says something */

struct why_loss {
    int64_t at_us;
    char worker[64]; /* that was lost, or whose runner was; "": not known any more */
    char host[256];
    char detail[JOB_REASON_SIZE];
};

struct why_run {
    char routed[JOB_REASON_SIZE]; /* of a job that waits: why it went to its queue; "": not known */
    struct why_loss losses[WHY_LOSSES_MAX]; /* the newest, in the order of time */
    size_t loss_count;
    uint32_t named;   /* runs of its owner's jobs with its name that finished; of the newest only */
    int64_t named_us; /* their median */
};

MUST_USE enum err_code why_run_read(struct store *store, const struct job *job,
                                    struct why_run *ret_run, struct err *err);

#endif
