/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_BLOCK_STORE_H
#define COMMON_STORE_BLOCK_STORE_H

/* block_store: a job begins to wait for something other than a free slot. One transaction: BLOCKED,
 * owner given up, the job's blocked row, the shared recovery row of its cause (made if it is the
 * first), the event. After it the job belongs to sluice-recovery; wake that, best effort.
 * Threads: locked. Texts that are too long for people's eyes (detail) are cut. */

#include "common/store/job_own.h"

#define BLOCK_TESTER_SIZE 33
#define BLOCK_PARAMS_SIZE 2049
#define BLOCK_POLICY_SIZE 256

/* The cause: jobs that agree in all but detail and first_test_ms share one recovery row. */
struct job_block {
    enum job_condition condition;
    const char *tester;     /* of readers/recovery/tester.def */
    const char *params;     /* JSON object, members sorted, without blanks */
    const char *policy;     /* as service/cause.h says it, e.g. "exponential first=1s most=5m" */
    const char *detail;     /* for the event and for `reason`: what was found; may be NULL */
    uint32_t first_test_ms; /* from now, if the cause is new or was being released */
};

/* The owner gives the job up. ERR_FENCED: he has lost it. ERR_STATE: its cancellation was asked
 * for, so it must not wait any more: cancel it. A repeated call after an unknown commit answers
 * ERR_OK. ret_recovery (may be NULL): the cause, for the wake-up. */
MUST_USE enum err_code job_store_block(struct store *store, const struct job_hold *hold,
                                       enum job_state from, const struct job_block *block,
                                       struct uuid *ret_recovery, struct err *err);
/* For a job that nobody owns, in any active state. ERR_CONFLICT: it has an owner, another epoch, or
 * is not active any more. */
MUST_USE enum err_code job_store_block_unowned(struct store *store, const struct uuid *id,
                                               uint32_t epoch, const struct job_block *block,
                                               struct uuid *ret_recovery, struct err *err);

#endif
