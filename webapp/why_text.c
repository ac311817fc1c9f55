/* SPDX-License-Identifier: MIT */
#include "webapp/why_text.h"

#include <inttypes.h>

#define SECOND_US INT64_C(1000000)
#define LOST_PER_LEASE 4 /* readers/recovery/lost.c sends none again that is younger */

typedef void tell_fn(const struct why_facts *facts, struct buf *text);

/* ---- pieces --------------------------------------------------------------------------------- */

/* "3.2 s", "5 min", "2 h 10 min", "4 d 3 h" */
static void add_span(struct buf *text, int64_t us)
{
    int64_t s = us > 0 ? us / SECOND_US : 0;
    if (s < 10)
        buf_addf(text, "%.1f s", us > 0 ? (double)us / 1e6 : 0.0);
    else if (s < 120)
        buf_addf(text, "%" PRId64 " s", s);
    else if (s < 7200)
        buf_addf(text, "%" PRId64 " min", s / 60);
    else if (s < 2 * 86400)
        buf_addf(text, "%" PRId64 " h %" PRId64 " min", s / 3600, s % 3600 / 60);
    else
        buf_addf(text, "%" PRId64 " d %" PRId64 " h", s / 86400, s % 86400 / 3600);
}

static void add_since(const struct why_facts *facts, struct buf *text)
{
    if (facts->why->since_us == 0)
        return;
    buf_add_text(text, " for ");
    add_span(text, facts->why->now_us - facts->why->since_us);
}

/* A sentence of the table of conditions becomes a part of ours: without its full stop and capital.
 */
static void add_meaning(const struct why_facts *facts, struct buf *text)
{
    const char *meaning = job_condition_meaning(facts->job->condition);
    size_t length = strlen(meaning);
    if (length == 0)
        return;
    char first =
        (char)(meaning[0] >= 'A' && meaning[0] <= 'Z' ? meaning[0] + ('a' - 'A') : meaning[0]);
    (void)buf_add(text, &first, 1);
    (void)buf_add(text, meaning + 1, length - 1 - (meaning[length - 1] == '.'));
}

static void add_plain_reason(const struct why_facts *facts, struct buf *text)
{
    const char *reason = facts->job->reason;
    size_t length = strlen(reason);
    if (length > 0)
        (void)buf_add(text, reason, length - (reason[length - 1] == '.'));
}

static void add_reason(const struct why_facts *facts, struct buf *text)
{
    if (!facts->job->reason[0])
        return;
    buf_add_text(text, " (");
    add_plain_reason(facts, text);
    buf_add_text(text, ")");
}

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- waiting for a slot --------------------------------------------------------------------- */

static void add_ahead(const struct why_facts *facts, struct buf *text)
{
    const struct why_queue *queue = &facts->why->queue;
    if (facts->job->status != JOB_PENDING)
        return;
    if (queue->ahead_more && queue->ahead >= WHY_AHEAD_MAX)
        buf_addf(text, ", more than %u jobs are before it", queue->ahead);
    else if (queue->ahead_more)
        buf_addf(text, ", at least %u job%s are before it", queue->ahead, plural(queue->ahead));
    else if (queue->ahead == 0)
        buf_add_text(text, ", it is the next");
    else
        buf_addf(text, ", %u job%s %s before it", queue->ahead, plural(queue->ahead),
                 queue->ahead == 1 ? "is" : "are");
}

static void add_fleet(const struct why_facts *facts, struct buf *text)
{
    const struct why_queue *queue = &facts->why->queue;
    const struct job *job = facts->job;
    if (queue->workers == 0)
        buf_addf(text,
                 ", and no worker serves this queue: start one with 'sluice-worker --tenant %s "
                 "--queue %s'",
                 job->tenant, job->queue);
    else if (queue->silent == queue->workers)
        buf_addf(text, ", but its %u worker%s not been heard of for longer than a lease",
                 queue->workers, queue->workers == 1 ? " has" : "s have");
    else
        buf_addf(text, "; %u of %u slots of its %u worker%s are busy", queue->busy, queue->slots,
                 queue->workers, plural(queue->workers));
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
        add_span(text, worker->beat_age_us);
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
    add_since(facts, text);
    if (job->status == JOB_RUNNING && why->since_us != 0) {
        int64_t left_us = why->since_us + job->max_seconds * SECOND_US - why->now_us;
        if (left_us > 0) {
            buf_add_text(text, ", with ");
            add_span(text, left_us);
            buf_addf(text, " of its %u s left,", job->max_seconds);
        } else {
            buf_addf(text, ", over its limit of %u s,", job->max_seconds);
        }
    }
    add_owner(facts, text);
    add_cancel(facts, text);
}

static void tell_active(const struct why_facts *facts, struct buf *text)
{
    if (facts->job->has_owner)
        tell_owned(facts, text);
    else
        tell_waiting(facts, text);
}

/* ---- held ----------------------------------------------------------------------------------- */

static void tell_blocked(const struct why_facts *facts, struct buf *text)
{
    const struct why_blocked *blocked = &facts->why->blocked;
    buf_add_text(text, "It is held");
    add_since(facts, text);
    buf_add_text(text, ": ");
    add_meaning(facts, text);
    add_reason(facts, text);
    if (!facts->why->has_blocked) {
        buf_add_text(text, "; sluice-recovery puts right what it waits for");
        return;
    }
    if (blocked->ramp > 0)
        buf_add_text(text, "; this has cleared, and the jobs that waited for it go on by and by");
    else if (blocked->next_in_us > 0) {
        buf_add_text(text, "; it is checked again in ");
        add_span(text, blocked->next_in_us);
    } else if (blocked->next_in_us > -5 * SECOND_US) {
        buf_add_text(text, "; it is being checked now");
    } else {
        buf_add_text(text, "; the check is overdue by ");
        add_span(text, -blocked->next_in_us);
        buf_add_text(text, ", so sluice-recovery may not be running");
    }
    if (blocked->ramp == 0 && blocked->tries > 0)
        buf_addf(text, " (%u check%s in vain so far)", blocked->tries, plural(blocked->tries));
}

static void tell_paused(const struct why_facts *facts, struct buf *text)
{
    buf_add_text(text, "Somebody paused it, and it stays so until it is let go on");
    add_reason(facts, text);
}

/* ---- ended ---------------------------------------------------------------------------------- */

static void tell_finished(const struct why_facts *facts, struct buf *text)
{
    (void)facts;
    buf_add_text(text, "Its command ended with exit code 0, and all that was to be kept is kept");
}

static void tell_cancelled(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    buf_addf(text, "%s cancelled it %s", job->cancel_by[0] ? job->cancel_by : "Somebody",
             job->started_us ? "while it was under way" : "before it had begun");
    add_reason(facts, text);
}

static void tell_failed(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    bool by_itself =
        job->condition == JOB_COND_COMMAND_FAILED || job->condition == JOB_COND_COMMAND_SIGNALLED;
    buf_add_text(text, "It failed");
    if (by_itself && job->reason[0]) { /* the reason has the code or the signal */
        buf_add_text(text, ": its command ");
        add_plain_reason(facts, text);
        return;
    }
    if (job->condition != JOB_COND_NONE) {
        buf_add_text(text, ": ");
        add_meaning(facts, text);
    }
    add_reason(facts, text);
}

static tell_fn *const tellers[JOB_STATE_COUNT] = {
    [JOB_PENDING] = tell_active,        [JOB_PROCESSING_INPUTS] = tell_active,
    [JOB_STAGING_INPUTS] = tell_active, [JOB_STAGING_JOB] = tell_active,
    [JOB_SUBMITTING_JOB] = tell_active, [JOB_QUEUED] = tell_active,
    [JOB_RUNNING] = tell_active,        [JOB_ARCHIVING] = tell_active,
    [JOB_BLOCKED] = tell_blocked,       [JOB_PAUSED] = tell_paused,
    [JOB_FINISHED] = tell_finished,     [JOB_CANCELLED] = tell_cancelled,
    [JOB_FAILED] = tell_failed,
};

void why_tell(const struct why_facts *facts, struct buf *text)
{
    tellers[facts->job->status](facts, text);
    buf_add_text(text, ".");
}
