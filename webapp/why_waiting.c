/* SPDX-License-Identifier: MIT */
#include "webapp/why_text_internal.h"

#include <inttypes.h>

#define LOST_PER_LEASE 4 /* readers/recovery/lost.c sends none again that is younger */

static int64_t lease_us(const struct why_facts *facts)
{
    return (int64_t)facts->why->lease_ms * 1000;
}

/* ---- where it is ----------------------------------------------------------------------------- */

static bool misses_beats(const struct why_facts *facts)
{
    return facts->why->queue.beat_age_us > lease_us(facts) / 2;
}

/* A slot is free and nothing is before it. */
static bool has_room(const struct why_facts *facts)
{
    const struct why_queue *queue = &facts->why->queue;
    return facts->broker == BUS_UP && queue->free > 0 && queue->ahead == 0 && !misses_beats(facts);
}

/* It is not on its way any more: its last message was sent when its row was changed last. */
static bool seems_lost(const struct why_facts *facts)
{
    return has_room(facts) &&
           facts->why->now_us - facts->job->updated_us > lease_us(facts) / LOST_PER_LEASE;
}

static void add_place(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    buf_add_text(text, "It has waited");
    why_add_since(facts, text);
    if (job->status != JOB_PENDING)
        buf_addf(text, " for a worker of queue '%s' to go on at %s", job->queue,
                 job_state_text(job->status));
    else
        buf_addf(text, "%s on queue '%s'", has_room(facts) ? "" : " for a free slot", job->queue);
    if (!facts->why->queue.exists)
        buf_add_text(text, ", which was deleted");
}

static void add_owners(const struct why_queue *queue, struct buf *text)
{
    uint32_t left = queue->ahead;
    for (size_t i = 0; i < queue->owner_count; i++) {
        const struct why_owner *owner = &queue->owners[i];
        left -= owner->jobs < left ? owner->jobs : left;
        buf_addf(text, "%s%u of %s", i == 0 ? " (" : ", ", owner->jobs, owner->name);
    }
    if (queue->owner_count > 0 && left > 0)
        buf_addf(text, ", %u of others", left);
    if (queue->owner_count > 0)
        buf_add_text(text, ")");
}

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
    add_owners(queue, text);
}

/* ---- the queue's workers --------------------------------------------------------------------- */

static const char *const ends[] = {
    [WORKER_LIVE] = "was there",
    [WORKER_STOPPED] = "was stopped",
    [WORKER_REPLACED] = "was replaced",
    [WORKER_DEAD] = "was lost",
};

static void add_ago(struct buf *text, int64_t us)
{
    why_add_span(text, us);
    buf_add_text(text, " ago");
}

static void add_no_worker(const struct why_queue *queue, struct buf *text)
{
    const struct worker_row *last = &queue->worker;
    buf_add_text(text, ", and no worker serves this queue");
    if (!queue->has_worker)
        return;
    buf_addf(text, "; the last one, '%s' of host %s, %s, and was heard of ", last->name, last->host,
             ends[last->state]);
    add_ago(text, last->beat_age_us);
}

static void add_silent(const struct why_facts *facts, struct buf *text)
{
    const struct why_queue *queue = &facts->why->queue;
    const struct worker_row *worker = &queue->worker;
    if (queue->workers == 1 && queue->has_worker)
        buf_addf(text, ", but its worker '%s' of host %s has", worker->name, worker->host);
    else
        buf_addf(text, ", but its %u worker%s", queue->workers,
                 queue->workers == 1 ? " has" : "s have");
    if (queue->has_worker) {
        buf_add_text(text,
                     queue->workers == 1 ? " been silent for " : " been silent, the last for ");
        why_add_span(text, worker->beat_age_us);
    } else {
        buf_add_text(text, " been silent");
    }
    buf_add_text(text, ", longer than the lease of ");
    why_add_span(text, lease_us(facts));
}

static void add_drained(const struct why_queue *queue, struct buf *text)
{
    const struct worker_row *worker = &queue->worker;
    if (queue->workers > 1 || !queue->has_worker) {
        buf_addf(text, ", but its %u workers are drained and take no jobs", queue->workers);
        return;
    }
    buf_addf(text, ", but its only worker '%s' of host %s was drained", worker->name, worker->host);
    if (queue->drain.actor[0]) {
        buf_addf(text, " by %s ", queue->drain.actor);
        add_ago(text, queue->drain.age_us);
    }
    buf_add_text(text, " and takes no jobs");
}

static void add_busy(const struct why_facts *facts, struct buf *text)
{
    const struct why_queue *queue = &facts->why->queue;
    uint32_t heard = queue->workers - queue->silent;
    buf_addf(text, "; %u of %u slots of its %u worker%s are busy (as of ", queue->busy,
             queue->slots, queue->workers, why_plural(queue->workers));
    add_ago(text, queue->beat_age_us);
    buf_add_text(text, ")");
    if (queue->drained > 0)
        buf_addf(text, ", %u of them %s drained", queue->drained,
                 queue->drained == 1 ? "is" : "are");
    if (queue->silent > 0)
        buf_addf(text, ", %u of them %s silent for longer than the lease", queue->silent,
                 queue->silent == 1 ? "is" : "are");
    if (!misses_beats(facts))
        return;
    buf_addf(text, "; %s not been heard of for ", heard == 1 ? "it has" : "one of them has");
    why_add_span(text, queue->beat_age_us);
    buf_add_text(text, " and is given up after ");
    why_add_span(text, lease_us(facts));
}

/* What keeps all workers from taking it. */
enum hindrance { NOTHING, NO_WORKER, ALL_SILENT, NONE_TAKES };

static enum hindrance hindrance_of(const struct why_queue *queue)
{
    if (queue->workers == 0)
        return NO_WORKER;
    if (queue->silent == queue->workers)
        return ALL_SILENT;
    return queue->silent + queue->drained == queue->workers ? NONE_TAKES : NOTHING;
}

static void add_fleet(const struct why_facts *facts, struct buf *text)
{
    const struct why_queue *queue = &facts->why->queue;
    switch (hindrance_of(queue)) {
    case NO_WORKER:
        add_no_worker(queue, text);
        return;
    case ALL_SILENT:
        add_silent(facts, text);
        return;
    case NONE_TAKES:
        if (queue->silent > 0)
            add_busy(facts, text);
        else
            add_drained(queue, text);
        return;
    case NOTHING:
        break;
    }
    if (has_room(facts))
        buf_add_text(text, seems_lost(facts) ? " and a slot is free, so the broker seems to have "
                                               "lost its message"
                                             : " and a slot is free: its message is on its way");
    else
        add_busy(facts, text);
}

/* ---- what else there is, and what comes -------------------------------------------------------
 */

int64_t why_estimate_us(const struct why_facts *facts)
{
    const struct why_queue *queue = &facts->why->queue;
    if (facts->job->status != JOB_PENDING || facts->broker != BUS_UP || queue->usable == 0 ||
        queue->ahead_more || queue->runs < WHY_RUNS_LEAST || queue->free > queue->ahead)
        return 0;
    /* Of the runs that are under way, half is over on the average. */
    int64_t runs_us = (2 * (int64_t)queue->ahead + 1) * queue->run_us / 2;
    return facts->why->now_us + runs_us / queue->usable;
}

static void add_estimate(const struct why_facts *facts, struct buf *text)
{
    const struct why_queue *queue = &facts->why->queue;
    int64_t at_us = why_estimate_us(facts);
    if (at_us == 0)
        return;
    buf_add_text(text, ". A job took ");
    why_add_span(text, queue->run_us);
    buf_addf(text, " here (median of %u that ended in the last hour): it should start in about ",
             queue->runs);
    why_add_span(text, at_us - facts->why->now_us);
    buf_add_text(text, ", at ");
    why_add_clock(text, at_us, facts->why->now_us);
}

static void add_disabled(const struct why_queue *queue, struct buf *text)
{
    if (!queue->exists || queue->enabled)
        return;
    buf_add_text(text, ". The queue was disabled");
    if (queue->change.actor[0]) {
        buf_addf(text, " by %s ", queue->change.actor);
        add_ago(text, queue->changed_age_us);
    }
    buf_add_text(text, ": no new jobs come to it, those on it still run");
}

static void add_broker(const struct why_facts *facts, struct buf *text)
{
    if (facts->broker == BUS_DOWN)
        buf_add_text(text, "; the broker cannot be reached, messages are sent when it is back");
    else if (facts->broker == BUS_BLOCKED)
        buf_add_text(text, "; the broker is short of memory or disk and takes no messages");
}

static void add_step(const struct why_facts *facts, struct buf *text)
{
    const struct why_queue *queue = &facts->why->queue;
    const struct job *job = facts->job;
    char id[UUID_TEXT_SIZE];
    switch (hindrance_of(queue)) {
    case NO_WORKER:
        next_step_add(text, facts->asker, ROLE_ADMIN, "start one",
                      "sluice-worker --tenant %s --queue %s", job->tenant, job->queue);
        return;
    case ALL_SILENT:
        next_step_add(text, facts->asker, ROLE_ADMIN, "look at its host, or start another worker",
                      "sluice-worker --tenant %s --queue %s", job->tenant, job->queue);
        return;
    case NONE_TAKES:
        next_step_add(text, facts->asker, ROLE_OPERATOR, "let it take jobs again",
                      "sluice undrain %s", uuid_text(&queue->worker.id, id));
        return;
    case NOTHING:
        break;
    }
    if (seems_lost(facts))
        buf_addf(text,
                 ". sluice-recovery sends it again within two leases (%" PRIu32
                 " s): there is nothing to do",
                 (2 * facts->why->lease_ms + 999) / 1000);
    else if (facts->broker == BUS_UP)
        buf_add_text(text, ". There is nothing to do");
    if (facts->broker == BUS_UP && queue->busy >= queue->slots && queue->slots > 0)
        next_step_add(text, facts->asker, ROLE_ADMIN, "start a further worker if it must go faster",
                      "sluice-worker --tenant %s --queue %s", job->tenant, job->queue);
    if (facts->broker != BUS_UP)
        next_step_add(text, facts->asker, ROLE_ADMIN, "look at the broker", "sluice doctor");
}

static void add_routed(const struct why_facts *facts, struct buf *text)
{
    const char *routed = facts->why->run.routed;
    char id[UUID_TEXT_SIZE];
    const char *to = strstr(routed, "to queue '"); /* behind "resubmitted from" */
    if (to)
        buf_addf(text, ". It went %s ('sluice explain %s' tells more)", to,
                 uuid_text(&facts->job->id, id));
}

void why_tell_waiting(const struct why_facts *facts, struct buf *text)
{
    add_place(facts, text);
    add_ahead(facts, text);
    add_fleet(facts, text);
    add_broker(facts, text);
    add_disabled(&facts->why->queue, text);
    add_estimate(facts, text);
    add_routed(facts, text);
    add_step(facts, text);
}

void why_tell_queue(const struct why_facts *facts, struct buf *text)
{
    const struct why_queue *queue = &facts->why->queue;
    buf_addf(text, "%s%u job%s on queue '%s'", queue->ahead_more ? "At least " : "", queue->ahead,
             queue->ahead == 1 ? " waits" : "s wait", facts->job->queue);
    add_owners(queue, text);
    if (hindrance_of(queue) == NOTHING)
        add_busy(facts, text);
    else
        add_fleet(facts, text);
    add_broker(facts, text);
    add_disabled(queue, text);
    if (queue->runs >= WHY_RUNS_LEAST) {
        buf_add_text(text, ". A job took ");
        why_add_span(text, queue->run_us);
        buf_addf(text, " here (median of %u that ended in the last hour)", queue->runs);
    }
    add_step(facts, text);
}
