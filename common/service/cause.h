/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_CAUSE_H
#define COMMON_SERVICE_CAUSE_H

/* cause: what a program does that finds a job cannot go on now (rows: cause.def): it blocks the job
 * with the tester and policy of the condition, and wakes sluice-recovery.
 *   struct job_block block = cause_block(cfg, JOB_COND_CONNECTION_FAILED, params, detail);
 *   rc = job_store_block(store, hold, from, &block, &recovery, err);
 *   if (rc == ERR_OK)
 *       cause_wake(publisher, tenant, &recovery);
 * Threads: any. Memory: the texts of cfg, params and detail are borrowed by the result. */

#include "common/bus/publisher.h"
#include "common/config/config.h"
#include "common/store/gate_store.h"

bool cause_is_known(enum job_condition condition); /* it has a row */
/* condition has a row. */
struct job_block cause_block(const struct config *cfg, enum job_condition condition,
                             const char *params, const char *detail);
/* Before the job's message is acknowledged: it comes back if we die here, and wakes recovery again.
 * Waits up to a second for the broker; without it recovery finds the row when it reads its table.
 * Not from callbacks of the bus. */
void cause_wake(struct bus_publisher *pub, const char *tenant, const struct uuid *recovery);
/* The same for somebody who has changed the cause's row and waits for what comes of it. */
void cause_wake_now(struct bus_publisher *pub, const char *tenant, const struct uuid *recovery);
/* What jobs that wait for this limit are blocked with; answers ret_params. */
const char *cause_quota_params(const struct quota_key *key, char ret_params[BLOCK_PARAMS_SIZE]);
/* There may be room in the quotas of this tenant, owner and system (each but the first may be NULL
 * or ""): those who wait for it are looked at now, not when their turn comes. Best effort. */
void cause_tell_room(struct store *store, struct bus_publisher *pub, const struct quota_key *whose);
/* What jobs that wait for an application or a system are blocked with; each answers ret_params. */
const char *cause_app_params(const char *app, const char *version,
                             char ret_params[BLOCK_PARAMS_SIZE]);
const char *cause_system_params(const char *system_id, char ret_params[BLOCK_PARAMS_SIZE]);
/* What this condition waits for may have cleared: as cause_tell_room. */
void cause_tell_changed(struct store *store, struct bus_publisher *pub, const char *tenant,
                        enum job_condition condition, const char *params);

#endif
