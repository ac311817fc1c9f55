/* SPDX-License-Identifier: MIT */
#include "readers/common/judge.h"

static enum verdict say(enum verdict verdict, const char *sentence, char *ret_text, size_t size)
{
    (void)snprintf(ret_text, size, "%s", sentence);
    return verdict;
}

static enum verdict judge_owned(const struct judge_facts *facts, char *ret_text, size_t size)
{
    const struct job *job = facts->job;
    if (facts->owner_live)
        return say(VERDICT_LEAVE,
                   "the job has a live owner and goes on without the message; if the owner is "
                   "lost, the reconciler puts it on its queue again",
                   ret_text, size);
    if (job->cancel_requested || facts->arrival->message.source == DEAD_ALTERNATE)
        return say(VERDICT_LEAVE,
                   "the job's owner is not live: the reconciler puts it on its queue again",
                   ret_text, size);
    return VERDICT_FAIL;
}

/* The job is there, and this is its message. */
static enum verdict judge_waiting(const struct judge_facts *facts, char *ret_text, size_t size)
{
    const struct dead_message *message = &facts->arrival->message;
    enum verdict verdict = message->source == DEAD_ALTERNATE ? VERDICT_BLOCK : VERDICT_FAIL;
    if (facts->job->has_owner)
        verdict = judge_owned(facts, ret_text, size);
    if (verdict == VERDICT_BLOCK)
        (void)snprintf(ret_text, size, "no queue of the broker is bound for '%.120s'",
                       message->routing_key);
    if (verdict == VERDICT_FAIL)
        (void)snprintf(ret_text, size,
                       "the broker gave the job's message up (%s, queue '%.120s'); resubmit the "
                       "job once the cause is removed",
                       message->reason, message->queue_name);
    return verdict;
}

/* The job is as this message's death leaves it. */
static bool was_done(const struct judge_facts *facts)
{
    const struct job *job = facts->job;
    const struct dead_message *message = &facts->arrival->message;
    if (job->epoch != message->epoch)
        return false;
    if (message->source == DEAD_ALTERNATE)
        return job->status == JOB_BLOCKED && job->condition == JOB_COND_QUEUE_UNAVAILABLE;
    return job->status == JOB_FAILED && job->condition == JOB_COND_DEAD_LETTERED;
}

static enum verdict judge_done(const struct judge_facts *facts, char *ret_text, size_t size)
{
    bool blocked = facts->arrival->message.source == DEAD_ALTERNATE;
    (void)snprintf(ret_text, size, "%s", facts->job->reason);
    return blocked ? VERDICT_WAS_BLOCKED : VERDICT_WAS_FAILED;
}

enum verdict judge(const struct judge_facts *facts, char *ret_text, size_t size)
{
    const struct arrival *arrival = facts->arrival;
    const struct job *job = facts->job;
    if (arrival->is_probe)
        return say(VERDICT_LEAVE, "a probe of sluice doctor", ret_text, size);
    if (!arrival->message.has_job)
        return say(VERDICT_KEEP, arrival->fault, ret_text, size);
    if (!job)
        return say(VERDICT_KEEP, "there is no job of this id", ret_text, size);
    if (strcmp(job->tenant, arrival->message.tenant) != 0)
        return say(VERDICT_KEEP, "the job it names is not one of this queue's tenant", ret_text,
                   size);
    if (!job_state_is_active(job->status)) {
        if (was_done(facts))
            return judge_done(facts, ret_text, size);
        (void)snprintf(ret_text, size, "the job is %s and needs no message",
                       job_state_text(job->status));
        return VERDICT_LEAVE;
    }
    if (job->epoch != arrival->message.epoch) {
        (void)snprintf(ret_text, size, "the message is of epoch %u; the job has epoch %u now",
                       arrival->message.epoch, job->epoch);
        return VERDICT_LEAVE;
    }
    return judge_waiting(facts, ret_text, size);
}
