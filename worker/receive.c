/* SPDX-License-Identifier: MIT */
#include "worker/receive.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/model/message.h"
#include "common/model/retry.h"
#include "worker/run.h"
#include "worker/stats.h"

#include <assert.h>

#define PUBLISH_WAIT_MS 5000
#define RACE_PAUSE_MS 20 /* another slot of ours is in the middle of a claim */

static const struct retry read_retry = {100, 5000};

/* What a slot knows of the message that it handles. */
struct receipt {
    struct worker *w;
    struct slot *slot;
    struct message message;
    char id_text[UUID_TEXT_SIZE];
    char traceparent[64];
    uint32_t delivery_count;
    struct job *job; /* as read last; NULL: there is none */
    struct job_gate gate;
    bool claims; /* the row led to a claim at once; job is the run's then */
    struct run run;
    struct job_claim claim;
};

static struct receive_facts facts_of(const struct receipt *receipt)
{
    return (struct receive_facts){
        .job = receipt->job,
        .epoch = receipt->message.epoch,
        .me = &receipt->w->id,
        .slot_known = slots_hold(receipt->w->slots, &receipt->message.job),
        .owner_state = WORKER_DEAD, /* of a worker without a row */
    };
}

static void observe_wait(const struct job *job)
{
    int64_t waited_us = clock_wall_us() - job->created_us; /* two clocks: for people only */
    if (job->fence == 0)
        metric_observe_us(&stat_queue_wait, waited_us > 0 ? waited_us : 0);
}

static void open_run(struct receipt *receipt)
{
    observe_wait(receipt->job);
    run_open(&receipt->run, receipt->w, receipt->slot, &receipt->job);
    run_looked(&receipt->run, &receipt->gate);
    (void)snprintf(receipt->run.traceparent, sizeof(receipt->run.traceparent), "%s",
                   receipt->traceparent);
}

/* The row as it is now. On whatever thread read it, while the slot waits. */
static const struct job_claim *judge_row(void *arg, struct job **take_job,
                                         const struct job_gate *gate)
{
    struct receipt *receipt = arg;
    receipt->gate = *gate;
    /* A job of another tenant is none that this worker knows. */
    if (*take_job && strcmp((*take_job)->tenant, receipt->w->cfg->worker_tenant) == 0)
        receipt->job = TAKE(*take_job);
    struct receive_facts facts = facts_of(receipt);
    if (receive_needs_owner_state(&facts) || receive_judge(&facts) != RECEIVE_CLAIM ||
        !slot_hold_job(receipt->slot, &receipt->message.job))
        return NULL;
    open_run(receipt);
    run_plan_claim(&receipt->run, &receipt->claim);
    receipt->claims = true;
    return &receipt->claim;
}

static enum err_code drive(struct receipt *receipt, enum stat_delivery kind, bool loss,
                           struct err *err)
{
    FAULT("worker.claimed");
    metric_count(&stat_deliveries, kind, 1);
    metric_count(&stat_losses, 0, loss);
    if (run_drive(&receipt->run))
        return ERR_OK;
    return err_set(err, ERR_CONFLICT, "fenced"); /* the message is looked at again */
}

/* Reads the row; a job that nobody owns is claimed in one go, and driven: *ret_done then. */
static enum err_code look(struct receipt *receipt, bool *ret_done, struct err *err)
{
    uint64_t fence = 0;
    int64_t start_us = clock_mono_us();
    job_free(TAKE(receipt->job));
    receipt->claims = false;
    enum err_code rc =
        job_writer_take(receipt->w->writer, &receipt->message.job, judge_row, receipt, &fence, err);
    *ret_done = receipt->claims;
    if (!receipt->claims)
        return rc;
    if (rc == ERR_OK) {
        metric_observe_us(&stat_claim, clock_mono_us() - start_us);
        run_claimed(&receipt->run, &receipt->claim, fence);
        rc = drive(receipt, STAT_CLAIMED, false, err);
    }
    slot_release_job(receipt->slot);
    run_close(&receipt->run);
    return rc;
}

static enum err_code judge(struct receipt *receipt, enum receive_verdict *ret_verdict,
                           struct err *err)
{
    enum err_code rc = ERR_OK;
    struct receive_facts facts = facts_of(receipt);
    if (receive_needs_owner_state(&facts)) {
        rc = worker_store_state(receipt->w->store, &receipt->job->owner_worker, &facts.owner_state,
                                err);
        if (rc && rc != ERR_NOT_FOUND)
            return rc;
        err_clear(err);
    }
    *ret_verdict = receive_judge(&facts);
    return ERR_OK;
}

static enum err_code settle(struct receipt *receipt, enum bus_settle how, enum stat_delivery kind)
{
    metric_count(&stat_deliveries, kind, 1);
    slot_settle(receipt->slot, how);
    return ERR_OK;
}

static enum err_code acknowledge_stale(struct receipt *receipt)
{
    log_event(LOG_DEBUG, "worker.delivery.stale", LOG_S("job", receipt->id_text),
              LOG_U("epoch", receipt->message.epoch));
    metric_count(&stat_stale, 0, 1);
    slot_settle(receipt->slot, BUS_ACK);
    return ERR_OK;
}

/* Publishes this message once more, to come back later by `exchange`. */
static enum err_code copy_message(struct receipt *receipt, struct err *err)
{
    char body[MESSAGE_SIZE_MAX];
    size_t length = message_write(&receipt->message, body);
    struct bus_message copy = {
        .exchange = BUS_DEFER,
        .routing_key = receipt->w->queue,
        .body = {body, length},
        .message_id = receipt->id_text,
        .traceparent = receipt->traceparent[0] ? receipt->traceparent : NULL,
        .defer_s = (receipt->w->cfg->fleet_defer_ms + 999) / 1000,
    };
    return bus_publish_wait(receipt->w->publisher, &copy, clock_mono_ms() + PUBLISH_WAIT_MS, err);
}

/* The copy is confirmed before the original is acknowledged: at worst there are two. */
static enum err_code defer(struct receipt *receipt, struct err *err)
{
    enum err_code rc = copy_message(receipt, err);
    if (rc)
        return rc;
    log_event(LOG_DEBUG, "worker.delivery.deferred", LOG_S("job", receipt->id_text));
    return settle(receipt, BUS_ACK, STAT_DEFERRED);
}

#define WAKE_WAIT_MS 1000

/* It names the job, not its cause: recovery reads its table again. */
static enum err_code wake_recovery(struct receipt *receipt)
{
    char body[MESSAGE_SIZE_MAX];
    struct err ignored = {0}; /* recovery also reads its table when something is due */
    struct bus_message wake = {
        .exchange = BUS_RECOVERY,
        .routing_key = receipt->job->tenant,
        .body = {body, message_write(&receipt->message, body)},
    };
    best_effort(
        bus_publish_wait(receipt->w->publisher, &wake, clock_mono_ms() + WAKE_WAIT_MS, &ignored));
    return settle(receipt, BUS_ACK, STAT_HELD);
}

static bool nears_limit(const struct receipt *receipt)
{
    return receipt->delivery_count >= receipt->w->cfg->amqp_delivery_limit / 2;
}

/* Our own message has come back: the slot that drives the job goes on with the new delivery. */
static enum err_code adopt(struct receipt *receipt, struct err *err)
{
    if (nears_limit(receipt))
        return defer(receipt, err); /* a fresh copy: this one nears the broker's limit */
    switch (slots_hand_over(receipt->w->slots, receipt->slot, &receipt->message.job)) {
    case HANDOVER_DONE:
        log_event(LOG_INFO, "worker.delivery.adopted", LOG_S("job", receipt->id_text));
        metric_count(&stat_deliveries, STAT_ADOPTED, 1);
        return ERR_OK;
    case HANDOVER_DUPLICATE:
        metric_count(&stat_stale, 0, 1);
        return ERR_OK;
    case HANDOVER_NOBODY: /* the run has just ended: what is not settled goes back to the queue */
    case HANDOVER_LOST:
        return ERR_OK;
    }
    return ERR_OK;
}

static bool was_found(const struct worker *w, const struct uuid *job)
{
    for (size_t i = 0; i < w->found_count; i++) {
        if (uuid_eq(&w->found[i].job, job))
            return true;
    }
    return false;
}

/* The former owner claimed it and never asked its runner for it. Proved by the runner, if it is the
 * very process that this owner had from before its claims until it was gone (another one may have
 * forgotten), and did not list the job once the owner could ask no more. A run that was on record
 * was there, and may have been forgotten since. */
static bool never_began(struct receipt *receipt)
{
    const struct worker *w = receipt->w;
    const struct job *job = receipt->job;
    bool same = false;
    struct err err = {0};
    if (job->status >= JOB_RUNNING || !w->runner_text[0] || was_found(w, &job->id))
        return false;
    return worker_store_shares_runner(w->store, &job->owner_worker, &w->home, w->runner_text, &same,
                                      &err) == ERR_OK &&
           same;
}

/* Claims the job, or takes it over, and drives it. ERR_CONFLICT: look again. */
static enum err_code take(struct receipt *receipt, bool from_owner, struct err *err)
{
    /* Ours without a slot: a claim whose commit stayed unknown. It never came to a run. */
    bool mine = from_owner && uuid_eq(&receipt->job->owner_worker, &receipt->w->id);
    bool loss =
        from_owner && !mine && job_state_has_run(receipt->job->status) && !never_began(receipt);
    char owner[UUID_TEXT_SIZE] = "";
    char detail[JOB_REASON_SIZE] = "";
    if (!slot_hold_job(receipt->slot, &receipt->message.job))
        return err_set(err, ERR_CONFLICT, "another slot claims it");
    if (from_owner) {
        (void)uuid_text(&receipt->job->owner_worker, owner);
        (void)snprintf(detail, sizeof(detail), "from worker %s, fence %llu", owner,
                       (unsigned long long)receipt->job->fence);
    }
    open_run(receipt);
    enum err_code rc = run_claim(&receipt->run, from_owner, loss, detail[0] ? detail : NULL, err);
    if (rc == ERR_OK)
        rc = drive(receipt, from_owner ? STAT_TAKEN_OVER : STAT_CLAIMED, loss, err);
    slot_release_job(receipt->slot);
    run_close(&receipt->run);
    return rc;
}

/* One row of the table of docs/ownership.md each. ERR_OK: dealt with. */
static enum err_code act(struct receipt *receipt, enum receive_verdict verdict, struct err *err)
{
    assert(verdict == RECEIVE_UNKNOWN || receipt->job);
    switch (verdict) {
    case RECEIVE_UNKNOWN:
        log_event(LOG_WARN, "worker.delivery.unknown", LOG_S("job", receipt->id_text));
        return settle(receipt, BUS_REJECT, STAT_UNKNOWN);
    case RECEIVE_STALE:
        return acknowledge_stale(receipt);
    case RECEIVE_ENDED:
        announcer_tell(receipt->w->announcer, &receipt->job->id, receipt->job->status);
        return settle(receipt, BUS_ACK, STAT_ENDED);
    case RECEIVE_HELD:
        return wake_recovery(receipt);
    case RECEIVE_CLAIM:
        return take(receipt, false, err);
    case RECEIVE_ADOPT:
        return adopt(receipt, err);
    case RECEIVE_DEFER:
        return defer(receipt, err);
    case RECEIVE_TAKE_OVER:
        return take(receipt, true, err);
    }
    return err_set(err, ERR_INTERNAL, "no such verdict");
}

/* false: it is no message of ours, and was rejected. */
static bool open_receipt(struct receipt *receipt)
{
    const struct bus_delivery *delivery = slot_delivery(receipt->slot);
    struct err err = {0};
    if (delivery->redelivered)
        metric_count(&stat_redeliveries, 0, 1);
    receipt->delivery_count = delivery->delivery_count;
    (void)snprintf(receipt->traceparent, sizeof(receipt->traceparent), "%s", delivery->traceparent);
    enum err_code rc = delivery->truncated
                           ? err_set(&err, ERR_TOO_LARGE, "longer than any message of ours")
                           : message_read(delivery->body, &receipt->message, &err);
    if (rc) {
        log_err("worker.delivery.unparsable", &err);
        (void)settle(receipt, BUS_REJECT, STAT_UNPARSABLE);
        return false;
    }
    (void)uuid_text(&receipt->message.job, receipt->id_text);
    return true;
}

/* The copy of a deferred message cannot be sent now. The original is kept as long as the copy would
 * have been elsewhere: given back, it would come again at once, until it came too often. */
static bool is_unsent(enum err_code rc)
{
    return rc == ERR_BROKER_BLOCKED || rc == ERR_BROKER_AWAY;
}

/* A worker that found itself silent begins nothing: its row is still the owner's, so what it has
 * just dropped looks like a claim that never came to a run (take()). Its slots are fenced soon. */
static enum err_code may_begin(const struct worker *w, struct err *err)
{
    if (atomic_load(&w->fenced))
        return err_set(err, ERR_CONFLICT, "this worker takes nothing until it registers anew");
    return ERR_OK;
}

void receive_delivery(struct worker *w, struct slot *slot)
{
    struct receipt receipt = {.w = w, .slot = slot};
    if (!open_receipt(&receipt))
        return;
    FAULT("worker.received");
    log_set_request(receipt.id_text);
    for (uint32_t tries = 1;; tries++) {
        struct err err = {0};
        enum receive_verdict verdict = RECEIVE_UNKNOWN;
        bool done = false;
        enum err_code rc = may_begin(w, &err);
        if (rc == ERR_OK)
            rc = look(&receipt, &done, &err);
        if (rc == ERR_OK && !done)
            rc = judge(&receipt, &verdict, &err);
        if (rc == ERR_OK && !done)
            rc = act(&receipt, verdict, &err);
        /* Fenced while it finished: the next job may be in its place by now. */
        if (rc == ERR_OK || slot_delivery_lost(slot) || slot_is_finishing(slot))
            break; /* what is not settled goes back to the queue */
        if (rc != ERR_CONFLICT && tries == 1)
            log_err("worker.delivery.waits", &err);
        if (is_unsent(rc) && slot_set_aside(slot, clock_mono_ms() + w->cfg->fleet_defer_ms))
            break;
        int64_t pause_ms =
            rc == ERR_CONFLICT && tries < 50 ? RACE_PAUSE_MS : retry_pause_ms(&read_retry, tries);
        if (slot_wait(slot, MAIL_FENCED | MAIL_LEAVE | MAIL_LOST, clock_mono_ms() + pause_ms))
            break; /* likewise */
    }
    job_free(receipt.job);
}

void receive_give_back(void *worker, struct slot *slot)
{
    struct receipt receipt = {.w = worker, .slot = slot};
    struct err err = {0};
    if (!open_receipt(&receipt))
        return;
    log_event(LOG_DEBUG, "worker.delivery.given_back", LOG_S("job", receipt.id_text));
    if (!nears_limit(&receipt) || defer(&receipt, &err))
        (void)settle(&receipt, BUS_REQUEUE, STAT_GIVEN_BACK);
}
