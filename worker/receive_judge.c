/* SPDX-License-Identifier: MIT */
#include "worker/receive.h"

static bool owned_by(const struct job *job, const struct uuid *who)
{
    return job->has_owner && uuid_eq(&job->owner_worker, who);
}

bool receive_needs_owner_state(const struct receive_facts *facts)
{
    const struct job *job = facts->job;
    return job && job->epoch == facts->epoch && job_state_is_active(job->status) &&
           job->has_owner && !owned_by(job, facts->me);
}

enum receive_verdict receive_judge(const struct receive_facts *facts)
{
    const struct job *job = facts->job;
    if (!job)
        return RECEIVE_UNKNOWN;
    if (job->epoch != facts->epoch)
        return RECEIVE_STALE;
    if (job_state_ends(job->status))
        return RECEIVE_ENDED;
    if (!job_state_is_active(job->status))
        return RECEIVE_HELD;
    if (!job->has_owner)
        return RECEIVE_CLAIM;
    if (owned_by(job, facts->me))
        return facts->slot_known ? RECEIVE_ADOPT : RECEIVE_TAKE_OVER;
    return facts->owner_state == WORKER_LIVE ? RECEIVE_DEFER : RECEIVE_TAKE_OVER;
}
