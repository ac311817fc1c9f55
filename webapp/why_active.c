/* SPDX-License-Identifier: MIT */
#include "webapp/why_text_internal.h"

#include <inttypes.h>

#define LOST_PER_LEASE 4 /* readers/recovery/lost.c sends none again that is younger */

/* ---- waiting for a slot --------------------------------------------------------------------- */

static void add_ahead(const struct why_facts *facts, struct buf *text)
{
    const struct why_queue *queue = &facts->why->queue;
    if (facts->job->status != JOB_PENDING)
        return;
    if (queue->ahead_more && queue->ahead >= WHY_AHEAD_MAX)
        buf_addf(text, ", more than %u jobs are before it", queue->ahead);
    else if (queue->ahead_more)
        buf_addf(text, ", at least %u job%s are before it", queue->ahead, why_plural(queue->ahead));
    else if (queue->ahead == 0)
        buf_add_text(text, ", it is the next");
    else
        buf_addf(text, ", %u job%s %s before it", queue->ahead, why_plural(queue->ahead),
                 queue->ahead == 1 ? "is" : "are");
}

static void add_fleet(const struct why_facts *facts, struct buf *text)
{
    const struct why_queue *queue = &facts->why->queue;
    if (queue->workers == 0)
        buf_add_text(text, ", and no worker serves this queue");
    else if (queue->silent == queue->workers)
        buf_addf(text, ", but its %u worker%s not been heard of for longer than a lease",
                 queue->workers, queue->workers == 1 ? " has" : "s have");
    else
        buf_addf(text, "; %u of %u slots of its %u worker%s are busy", queue->busy, queue->slots,
                 queue->workers, why_plural(queue->workers));
}

/* A slot is free and nothing is before it, but it does not get it. Its last message was sent when
 * its row was changed last. */
static bool seems_lost(const struct why_facts *facts)
{
    const struct why *why = facts->why;
    return facts->broker == BUS_UP && why->queue.free > 0 && why->queue.ahead == 0 &&
           why->now_us - facts->job->updated_us > (int64_t)why->lease_ms * 1000 / LOST_PER_LEASE;
}

static void add_lost(const struct why_facts *facts, struct buf *text)
{
    buf_addf(text,
             "; a slot is free and has not got it, so the broker may have lost its message: "
             "sluice-recovery sends it again within two leases (%" PRIu32 " s)",
             (2 * facts->why->lease_ms + 999) / 1000);
}

static void tell_waiting(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    if (job->status == JOB_PENDING)
        buf_addf(text, "It waits for a free slot on queue '%s'", job->queue);
    else
        buf_addf(text, "It waits for a worker of queue '%s' to go on at %s", job->queue,
                 job_state_text(job->status));
    if (!facts->why->queue.exists)
        buf_add_text(text, ", which was deleted");
    add_ahead(facts, text);
    add_fleet(facts, text);
    if (facts->broker == BUS_DOWN)
        buf_add_text(text, "; the broker cannot be reached, messages are sent when it is back");
    else if (seems_lost(facts))
        add_lost(facts, text);
    else if (facts->broker == BUS_BLOCKED)
        buf_add_text(text, "; the broker is short of memory or disk and takes no messages");
    if (facts->why->queue.workers == 0)
        next_step_add(text, facts->asker, ROLE_ADMIN, "start one",
                      "sluice-worker --tenant %s --queue %s", job->tenant, job->queue);
}

/* ---- owned by a worker ---------------------------------------------------------------------- */

static void add_owner(const struct why_facts *facts, struct buf *text)
{
    const struct worker_row *worker = &facts->why->worker;
    if (!facts->why->has_worker) {
        buf_add_text(text, " on a worker that is not known any more");
        return;
    }
    buf_addf(text, " on worker '%s' of host %s", worker->name, worker->host);
    if (worker->state == WORKER_LIVE) {
        buf_add_text(text, ", which was heard of ");
        why_add_span(text, worker->beat_age_us);
        buf_add_text(text, " ago");
    } else {
        buf_addf(text, ", which is %s: another worker of queue '%s' takes the job over",
                 worker_state_text(worker->state), facts->job->queue);
    }
}

static void add_cancel(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    if (!job->cancel_requested)
        return;
    buf_addf(text, "; %s asked to cancel it, and it ends when its worker has stopped it",
             job->cancel_by[0] ? job->cancel_by : "somebody");
}

static const char *const phases[JOB_STATE_COUNT] = {
    [JOB_PENDING] = "It was just taken",
    [JOB_PROCESSING_INPUTS] = "Its request is being looked through",
    [JOB_STAGING_INPUTS] = "Its inputs are being fetched",
    [JOB_STAGING_JOB] = "Its folder is being made",
    [JOB_SUBMITTING_JOB] = "Its command is being started",
    [JOB_QUEUED] = "It waits for its system to start it",
    [JOB_RUNNING] = "Its command runs",
    [JOB_ARCHIVING] = "Its command has ended and its files are being kept",
};

static void tell_owned(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    const struct why *why = facts->why;
    buf_add_text(text, phases[job->status]);
    why_add_since(facts, text);
    if (job->status == JOB_RUNNING && why->since_us != 0) {
        int64_t left_us = why->since_us + job->max_seconds * SECOND_US - why->now_us;
        if (left_us > 0) {
            buf_add_text(text, ", with ");
            why_add_span(text, left_us);
            buf_addf(text, " of its %u s left,", job->max_seconds);
        } else {
            buf_addf(text, ", over its limit of %u s,", job->max_seconds);
        }
    }
    add_owner(facts, text);
    add_cancel(facts, text);
}

void why_tell_active(const struct why_facts *facts, struct buf *text)
{
    if (facts->job->has_owner)
        tell_owned(facts, text);
    else
        tell_waiting(facts, text);
}
