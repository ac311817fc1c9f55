/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_WHY_TEXT_H
#define WEBAPP_WHY_TEXT_H

/* why_text: why a job is where it is, in plain sentences: the cause with its values and limits,
 * then what the asker may do about it (next_step.h). Threads: any. Memory: none. */

#include "common/auth/auth.h"
#include "common/base/buf.h"
#include "common/bus/bus.h"
#include "common/store/audit_log.h"
#include "common/store/dead_store.h"
#include "common/store/quota_store.h"
#include "common/store/why_store.h"

struct why_held {   /* of a blocked job: what it waits for, as it is now */
    bool has_thing; /* its application or system: the next three count */
    bool exists;
    bool enabled;
    struct audit_act act; /* who disabled or deleted it, if that is known; else actor is "" */
    bool has_use;         /* its quota: the next two count */
    enum quota_scope scope;
    struct quota_use use;
};

struct why_facts {
    const struct job *job;
    const struct why *why;
    enum bus_state broker; /* as this process sees it */
    const struct identity *asker;
    const char *last_line; /* of the stderr of a job that failed, fit to be quoted; NULL: none */
    const struct why_held *held; /* NULL: not known */
    uint32_t most_seconds;       /* that a job may ask for here */
    uint32_t grace_ms;           /* from SIGTERM to SIGKILL */
    uint32_t stage_s;            /* that an input may take */
    uint32_t max_losses;         /* of a job, as this service has it set */
};

/* Adds sentences, the last with its full stop; there is one for every state. */
void why_tell(const struct why_facts *facts, struct buf *text);
/* When a job that waits for a slot is likely to start; 0: not known. Basis: the jobs before it, the
 * slots of workers that take jobs, and the median of what ran on its queue in the last hour. */
MUST_USE int64_t why_estimate_us(const struct why_facts *facts);
/* When the run that a job is at began; 0: not known. */
MUST_USE int64_t why_run_since_us(const struct why_facts *facts);

/* ---- of what is no job: sentences without the last full stop -----------------------------------
 */

/* facts: of a job that would be submitted to the queue now. */
void why_tell_queue(const struct why_facts *facts, struct buf *text);

struct why_worker {
    struct worker_row row;
    struct why_queue queue; /* that it serves */
    struct audit_act drain; /* "": not drained, or not known by whom */
    uint32_t lease_ms;
    const struct identity *asker;
};
void why_tell_worker(const struct why_worker *worker, struct buf *text);
void why_tell_group(const struct recovery *group, const struct identity *asker, struct buf *text);
void why_tell_dead(const struct dead_message *message, const struct identity *asker,
                   struct buf *text);

#endif
