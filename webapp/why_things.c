/* SPDX-License-Identifier: MIT */
#include "webapp/why_text_internal.h"

#include <inttypes.h>

static void add_ago(struct buf *text, int64_t us)
{
    why_add_span(text, us);
    buf_add_text(text, " ago");
}

/* ---- workers --------------------------------------------------------------------------------- */

static void add_state(const struct why_worker *worker, struct buf *text)
{
    const struct worker_row *row = &worker->row;
    bool silent = row->state == WORKER_LIVE && row->beat_age_us > (int64_t)worker->lease_ms * 1000;
    if (row->state != WORKER_LIVE) {
        buf_addf(text, "is %s, and was heard of ", worker_state_text(row->state));
        add_ago(text, row->beat_age_us);
    } else if (silent) {
        buf_add_text(text, "has been silent for ");
        why_add_span(text, row->beat_age_us);
        buf_add_text(text, ", longer than the lease of ");
        why_add_span(text, (int64_t)worker->lease_ms * 1000);
        buf_add_text(text, ": its host hangs or is cut off, and it is being declared dead");
    } else {
        buf_addf(text, "is live: %u of its %u slots are busy (as of ", row->busy, row->slots);
        add_ago(text, row->beat_age_us);
        buf_add_text(text, ")");
    }
    if (row->state == WORKER_LIVE && row->draining) {
        buf_add_text(text, ". It was drained");
        if (worker->drain.actor[0]) {
            buf_addf(text, " by %s ", worker->drain.actor);
            add_ago(text, worker->drain.age_us);
        }
        buf_add_text(text, " and takes no further jobs");
    }
}

void why_tell_worker(const struct why_worker *worker, struct buf *text)
{
    const struct worker_row *row = &worker->row;
    const struct why_queue *queue = &worker->queue;
    char id[UUID_TEXT_SIZE];
    buf_addf(text, "Worker '%s' of host %s, for queue '%s', ", row->name, row->host, row->queue);
    add_state(worker, text);
    bool gone = row->state != WORKER_LIVE || row->beat_age_us > (int64_t)worker->lease_ms * 1000;
    if (!queue->exists) {
        buf_addf(text, ". Tenant %s has no queue '%s', so no job comes to it", row->tenant,
                 row->queue);
        next_step_add(text, worker->asker, ROLE_ADMIN, "make the queue",
                      "sluice queue put %s --priority N --filter FILTER", row->queue);
    } else if (row->state == WORKER_LIVE && row->draining && !gone) {
        next_step_add(text, worker->asker, ROLE_OPERATOR, "let it take jobs again",
                      "sluice undrain %s", uuid_text(&row->id, id));
    } else if (gone && queue->workers <= queue->silent) {
        buf_addf(text, ". No other worker serves queue '%s'", row->queue);
        next_step_add(text, worker->asker, ROLE_ADMIN, "start one",
                      "sluice-worker --tenant %s --queue %s", row->tenant, row->queue);
    } else if (gone) {
        buf_addf(text,
                 ". %u other worker%s of its queue take%s what it had: there is nothing to do",
                 queue->workers - queue->silent, why_plural(queue->workers - queue->silent),
                 queue->workers - queue->silent == 1 ? "s" : "");
    } else {
        buf_add_text(text, ". There is nothing to do");
    }
}

/* ---- groups of held jobs --------------------------------------------------------------------- */

void why_tell_group(const struct recovery *group, const struct identity *asker, struct buf *text)
{
    char id[UUID_TEXT_SIZE];
    buf_addf(text, "%" PRIu64 " job%s held since ", group->blocked,
             group->blocked == 1 ? " is" : "s are");
    why_add_clock(text, group->first_us, group->next_us - group->next_in_us);
    buf_add_text(text, ": ");
    why_add_condition(group->condition, text);
    if (group->last_detail[0])
        buf_addf(text, " (%s)", group->last_detail);
    if (group->ramp > 0) {
        buf_addf(text, ". This has cleared, and %" PRIu64 " went on; the next batch has up to %u",
                 group->released, group->ramp);
        return;
    }
    if (group->next_in_us > 0) {
        buf_add_text(text, ". It is checked again in ");
        why_add_span(text, group->next_in_us);
    } else {
        buf_add_text(text, ". The check is due since ");
        why_add_span(text, -group->next_in_us);
    }
    buf_addf(text, " (%u failed check%s so far)", group->tries, why_plural(group->tries));
    next_step_add(text, asker, ROLE_OPERATOR, "put this right, then have it checked at once",
                  "sluice recovery check %s", uuid_text(&group->id, id));
}

/* ---- dead messages --------------------------------------------------------------------------- */

static const struct {
    const char *reason;
    const char *text;
} causes[] = {
    {"expired", "it waited longer than a policy of the broker allows (message-ttl)"},
    {"maxlen", "its queue was longer than a policy of the broker allows (max-length)"},
    {"delivery_limit", "it was delivered too often without an end"},
    {"rejected", "its consumer refused it"},
    {"unroutable", "no queue was bound for it"},
};

static void add_cause(const struct dead_message *message, struct buf *text)
{
    const char *cause = message->reason;
    for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
        if (strcmp(causes[i].reason, message->reason) == 0)
            cause = causes[i].text;
    }
    if (message->queue_name[0])
        buf_addf(text, "Queue '%s' of the broker gave this message up", message->queue_name);
    else
        buf_addf(text, "The broker could not deliver this message to exchange '%s'",
                 message->exchange_name);
    buf_addf(text, ": %s", cause);
    if (message->detail[0])
        buf_addf(text, " (%s)", message->detail);
}

static const char *const outcomes[DEAD_OUTCOME_COUNT] = {
    [DEAD_NO_OUTCOME] = "Nobody has looked at it yet",
    [DEAD_KEPT] = "It is kept, since nothing can be done with it by itself",
    [DEAD_JOB_FAILED] = "Its job ended FAILED",
    [DEAD_JOB_BLOCKED] = "Its job is held until its queue is back",
    [DEAD_LEFT_ALONE] = "Its job does not need it any more",
};

void why_tell_dead(const struct dead_message *message, const struct identity *asker,
                   struct buf *text)
{
    char id[UUID_TEXT_SIZE];
    add_cause(message, text);
    buf_addf(text, ". %s", outcomes[message->outcome]);
    if (strcmp(message->reason, "expired") == 0 || strcmp(message->reason, "maxlen") == 0)
        next_step_add(text, asker, ROLE_ADMIN, "take that policy from the broker",
                      "rabbitmqctl list_policies");
    if (message->outcome == DEAD_JOB_FAILED)
        next_step_add(text, asker, ROLE_OPERATOR, "run its job again then", "sluice resubmit %s",
                      uuid_text(&message->job, id));
    else if (message->state == DEAD_OPEN)
        next_step_add(text, asker, ROLE_OPERATOR,
                      "find out who published it if it is none of ours, then discard it",
                      "sluice dead discard %s", uuid_text(&message->id, id));
    else
        buf_addf(text, ". It is %s: there is nothing to do", dead_state_text(message->state));
}
