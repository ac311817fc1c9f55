/* SPDX-License-Identifier: MIT */
#include "webapp/why_text_internal.h"

#include <inttypes.h>

#define LONGER_THAN_USUAL 3 /* times the median */

/* ---- which run it is ------------------------------------------------------------------------ */

static const char *const ordinals[] = {"",      "first",   "second", "third", "fourth", "fifth",
                                       "sixth", "seventh", "eighth", "ninth", "tenth"};

/* "second", or "run 12" */
static void add_ordinal(struct buf *text, uint32_t number)
{
    if (number < ARRAY_LEN(ordinals))
        buf_addf(text, "%s run", ordinals[number]);
    else
        buf_addf(text, "run %u", number);
}

/* The run before was lost with its worker, whatever the state of the job says of its begin. */
int64_t why_run_since_us(const struct why_facts *facts)
{
    const struct why_run *run = &facts->why->run;
    int64_t since_us = facts->why->since_us;
    if (run->loss_count > 0 && run->losses[run->loss_count - 1].at_us > since_us)
        since_us = run->losses[run->loss_count - 1].at_us;
    return since_us;
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

static void add_phase(const struct why_facts *facts, struct buf *text)
{
    const struct why *why = facts->why;
    const struct job *job = facts->job;
    int64_t since_us = why_run_since_us(facts);
    if (job->status == JOB_RUNNING && job->losses > 0) {
        buf_add_text(text, "Its ");
        add_ordinal(text, job->losses + 1);
        buf_add_text(text, " runs");
    } else {
        buf_add_text(text, phases[job->status]);
    }
    if (since_us != 0) {
        buf_add_text(text, " for ");
        why_add_span(text, why->now_us - since_us);
    }
}

static void add_limit(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    int64_t since_us = why_run_since_us(facts);
    if (job->status != JOB_RUNNING || since_us == 0)
        return;
    int64_t left_us = since_us + job->max_seconds * SECOND_US - facts->why->now_us;
    if (left_us > 0) {
        buf_add_text(text, ", with ");
        why_add_span(text, left_us);
        buf_addf(text, " of its %u s left,", job->max_seconds);
    } else {
        buf_addf(text, ", over its limit of %u s,", job->max_seconds);
    }
}

static void add_loss(const struct why_facts *facts, const struct why_loss *loss, struct buf *text)
{
    if (strstr(loss->detail, "runner_lost"))
        buf_add_text(text, "when its runner died on");
    else
        buf_add_text(text, "with");
    if (loss->worker[0])
        buf_addf(text, " worker '%s' of host %s at ", loss->worker, loss->host);
    else
        buf_add_text(text, " a worker that is not known any more, at ");
    why_add_clock(text, loss->at_us, facts->why->now_us);
}

/* ". The first run was lost with worker 'a' of host h at 14:02:11 UTC (1 of 3 losses)" */
static void add_losses(const struct why_facts *facts, struct buf *text)
{
    const struct why_run *run = &facts->why->run;
    const struct job *job = facts->job;
    if (run->loss_count == 0)
        return;
    buf_add_text(text, ". The ");
    add_ordinal(text, job->losses);
    buf_add_text(text, " was lost ");
    add_loss(facts, &run->losses[run->loss_count - 1], text);
    buf_addf(text, " (%u of %u losses, then it fails)", job->losses, facts->max_losses);
}

void why_add_poison(const struct why_facts *facts, struct buf *text)
{
    const struct why_run *run = &facts->why->run;
    for (size_t i = 0; i < run->loss_count; i++) {
        buf_add_text(text, i == 0 ? ". It was lost " : ", ");
        add_loss(facts, &run->losses[i], text);
    }
    buf_add_text(text, ". See whether it takes its host's memory, and the logs of these hosts");
    why_add_job_step(facts, text, "run it again then", "resubmit");
}

static void add_usual(const struct why_facts *facts, struct buf *text)
{
    const struct why_run *run = &facts->why->run;
    int64_t ran_us = facts->why->now_us - why_run_since_us(facts);
    char id[UUID_TEXT_SIZE];
    if (facts->job->status != JOB_RUNNING || run->named < WHY_NAMED_LEAST ||
        ran_us < LONGER_THAN_USUAL * run->named_us || ran_us < SECOND_US)
        return;
    buf_addf(text, ". That is longer than usual: the last %u jobs named '%s' of %s took ",
             run->named, facts->job->name, facts->job->owner);
    why_add_span(text, run->named_us);
    buf_addf(text, " (median). See what it writes: 'sluice output %s --follow'",
             uuid_text(&facts->job->id, id));
}

/* ---- its worker ----------------------------------------------------------------------------- */

static int64_t lease_us(const struct why_facts *facts)
{
    return (int64_t)facts->why->lease_ms * 1000;
}

/* Its worker is heard of, or may be again. */
static bool is_lively(const struct why_facts *facts)
{
    return facts->why->has_worker && facts->why->worker.state == WORKER_LIVE &&
           facts->why->worker.beat_age_us <= lease_us(facts);
}

static bool another_takes(const struct why_facts *facts)
{
    const struct why_queue *queue = &facts->why->queue;
    return queue->workers > queue->silent + queue->drained;
}

static void add_owner(const struct why_facts *facts, struct buf *text)
{
    const struct worker_row *worker = &facts->why->worker;
    buf_addf(text, " on worker '%s' of host %s, which", worker->name, worker->host);
    if (worker->beat_age_us > lease_us(facts) / 2) {
        buf_add_text(text, " has not been heard of for ");
        why_add_span(text, worker->beat_age_us);
        buf_add_text(text, " and is declared dead after ");
        why_add_span(text, lease_us(facts));
    } else {
        buf_add_text(text, " was heard of ");
        why_add_span(text, worker->beat_age_us);
        buf_add_text(text, " ago");
    }
}

static void add_worker_gone(const struct why_facts *facts, struct buf *text)
{
    const struct worker_row *worker = &facts->why->worker;
    if (!facts->why->has_worker) {
        buf_add_text(text, "Its worker is not known any more");
        return;
    }
    buf_addf(text, "Its worker '%s' of host %s ", worker->name, worker->host);
    if (worker->state == WORKER_LIVE)
        buf_add_text(text, "has been silent for ");
    else
        buf_addf(text, "is %s and was heard of ", worker_state_text(worker->state));
    why_add_span(text, worker->beat_age_us);
    if (worker->state == WORKER_LIVE) {
        buf_add_text(text, ", longer than the lease of ");
        why_add_span(text, lease_us(facts));
        buf_add_text(text, ": its host hangs or is cut off, and it is being declared dead");
    } else {
        buf_add_text(text, " ago");
    }
}

static void add_next_worker(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    if (another_takes(facts) && job->cancel_requested) {
        buf_add_text(text, ". There is nothing to do");
        return;
    }
    if (another_takes(facts)) {
        buf_addf(text, ". Another worker of queue '%s' takes the job over: there is nothing to do",
                 job->queue);
        return;
    }
    buf_addf(text, ". %s of queue '%s' %s, and there is none",
             job->cancel_requested ? "It needs another worker" : "Another worker", job->queue,
             job->cancel_requested ? "for that" : "would take the job over");
    next_step_add(text, facts->asker, ROLE_ADMIN, "start one",
                  "sluice-worker --tenant %s --queue %s", job->tenant, job->queue);
}

/* ---- its sentences -------------------------------------------------------------------------- */

static void add_cancel(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    if (!job->cancel_requested)
        return;
    buf_addf(text, ". %s asked to cancel it", job->cancel_by[0] ? job->cancel_by : "Somebody");
    if (facts->why->asked_us) {
        buf_add_text(text, " ");
        why_add_span(text, facts->why->now_us - facts->why->asked_us);
        buf_add_text(text, " ago");
    }
    buf_add_text(text, ", and it becomes CANCELLED when its worker is declared dead, which "
                       "sluice-recovery and other workers do");
}

static void tell_orphan(const struct why_facts *facts, struct buf *text)
{
    add_worker_gone(facts, text);
    add_losses(facts, text);
    add_cancel(facts, text);
    add_next_worker(facts, text);
}

static void tell_owned(const struct why_facts *facts, struct buf *text)
{
    if (!is_lively(facts)) {
        tell_orphan(facts, text);
        return;
    }
    add_phase(facts, text);
    add_limit(facts, text);
    why_add_inputs(facts, text);
    add_owner(facts, text);
    add_losses(facts, text);
    add_usual(facts, text);
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
