/* SPDX-License-Identifier: MIT */
#include "webapp/why_text_internal.h"

#include <inttypes.h>

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
    why_add_inputs(facts, text);
    add_owner(facts, text);
    why_add_delay(facts, text);
    why_add_cancel(facts, text);
}

void why_tell_active(const struct why_facts *facts, struct buf *text)
{
    if (facts->job->has_owner)
        tell_owned(facts, text);
    else
        why_tell_waiting(facts, text);
}
