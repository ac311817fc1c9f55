/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_GATE_STORE_H
#define COMMON_STORE_GATE_STORE_H

/* gate_store: whether a job may go on: its application and system are enabled, and no quota is used
 * up. Threads: locked. */

#include "common/store/block_store.h"
#include "common/store/quota_store.h"

struct job_gate {
    bool app_off;                       /* its application is disabled or missing */
    bool system_off;                    /* its system is disabled or missing */
    uint32_t limits[QUOTA_SCOPE_COUNT]; /* that count for it; 0: none */
};
/* One read by keys. ERR_NOT_FOUND: there is no such job. */
MUST_USE enum err_code job_store_gate(struct store *store, const struct uuid *id,
                                      struct job_gate *ret_gate, struct err *err);
bool job_gate_has_limits(const struct job_gate *gate);

struct quota_over { /* the limit that leaves no room */
    enum quota_scope scope;
    uint32_t limit;
    uint32_t active; /* other jobs */
};
/* Fills what the job is blocked with; the texts must stay for the call. */
typedef void quota_block_fn(void *arg, const struct quota_over *over, struct job_block *ret_block);

struct job_admission {
    const struct job_hold *hold;
    enum job_state from; /* past PENDING: it is counted already */
    struct quota_key whose;
    quota_block_fn *block;
    void *arg;
};
/* The owner asks for his job after its claim. The rows of its limits are locked, the other active
 * jobs are counted, and if they leave no room the job is blocked (as job_store_block does it)
 * before the locks go. So the jobs that were claimed at the same moment are judged one after the
 * other, each with all others in sight: of those that were let in the last one saw every other one,
 * and there was room; and a job that steps back is no longer counted by the next one. No limit is
 * ever passed, and no room is left unused.
 * *ret_admitted false: it is BLOCKED, by the cause *ret_recovery. ERR_FENCED, ERR_STATE as
 * job_store_block. */
MUST_USE enum err_code job_store_admit(struct store *store, const struct job_admission *admission,
                                       bool *ret_admitted, struct uuid *ret_recovery,
                                       struct err *err);

#define HASTENED_MAX 16
#define HASTEN_PARAMS 4
struct hasten {
    const char *tenant;
    const char *tester;
    const char *params[HASTEN_PARAMS]; /* NULL: none */
};
/* Something may have cleared: the causes with this tester and any of these parameters that jobs of
 * the tenant wait for are due now. Their ids, for the wake-up. */
MUST_USE enum err_code job_store_hasten(struct store *store, const struct hasten *what,
                                        struct uuid ret_ids[HASTENED_MAX], size_t *ret_count,
                                        struct err *err);

#endif
