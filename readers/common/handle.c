/* SPDX-License-Identifier: MIT */
#include "readers/common/handle.h"

#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/service/cause.h"
#include "common/service/metrics.h"
#include "common/store/job_store.h"
#include "readers/common/judge.h"

#define RACES_MAX 5 /* a job that moves on between reading and writing is read again */

static struct metric handled =
    METRIC_COUNTER_BY("sluice_dead_messages_handled_total", "Messages taken, by what was done",
                      "outcome", "none", "kept", "job-failed", "job-blocked", "left-alone");
static struct metric doubled =
    METRIC_COUNTER("sluice_dead_messages_doubled_total", "Messages that had a row already");

static struct metric set_aside = METRIC_COUNTER("sluice_dead_messages_set_aside_total",
                                                "Messages kept because handling them failed");

void handle_metrics_add(void)
{
    metrics_add(&set_aside);
    metrics_add(&handled);
    metrics_add(&doubled);
}

/* What is known and decided about one message. */
struct work {
    const struct handle *handle;
    struct arrival arrival;
    struct job *job;
    enum dead_outcome outcome;
    char detail[JOB_REASON_SIZE];
};

static enum err_code read_facts(struct work *work, struct judge_facts *ret_facts, struct err *err)
{
    enum worker_state owner = WORKER_DEAD; /* of an owner without a row */
    struct store *store = work->handle->store;
    job_free(TAKE(work->job));
    *ret_facts = (struct judge_facts){.arrival = &work->arrival};
    if (!work->arrival.message.has_job)
        return ERR_OK;
    enum err_code rc = job_store_get(store, NULL, &work->arrival.message.job, &work->job, err);
    if (rc == ERR_OK && work->job && work->job->has_owner)
        rc = worker_store_state(store, &work->job->owner_worker, &owner, err);
    if (rc && rc != ERR_NOT_FOUND)
        return rc;
    err_clear(err);
    ret_facts->job = work->job;
    ret_facts->owner_live = owner == WORKER_LIVE;
    return ERR_OK;
}

/* Whoever waits for the job's end is told; best effort. */
static void tell_end(const struct work *work)
{
    char id[UUID_TEXT_SIZE];
    char key[BUS_NAME_SIZE];
    char body[160];
    struct err err = {0};
    (void)uuid_text(&work->job->id, id);
    (void)snprintf(key, sizeof(key), "%s.ended.%s", work->job->tenant, id);
    (void)snprintf(body, sizeof(body), "{\"v\":1,\"job\":\"%s\",\"status\":\"FAILED\"}", id);
    const struct bus_message message = {
        .exchange = BUS_EVENTS, .routing_key = key, .body = sv_of(body), .transient = true};
    (void)!bus_publish(work->handle->pub, &message, NULL, NULL, &err);
}

static enum err_code fail_job(struct work *work, struct err *err)
{
    enum err_code rc = job_store_dead_letter(work->handle->store, work->job, work->detail, err);
    if (rc == ERR_OK)
        tell_end(work);
    return rc;
}

static enum err_code block_job(struct work *work, struct err *err)
{
    char params[QUEUE_NAME_SIZE + 16];
    struct uuid recovery;
    const struct job *job = work->job;
    (void)snprintf(params, sizeof(params), "{\"queue\":\"%s\"}", job->queue);
    struct job_block block =
        cause_block(work->handle->cfg, JOB_COND_QUEUE_UNAVAILABLE, params, work->detail);
    enum err_code rc =
        job_store_block_unowned(work->handle->store, &job->id, job->epoch, &block, &recovery, err);
    if (rc == ERR_OK)
        cause_wake(work->handle->pub, job->tenant, &recovery);
    return rc;
}

static enum err_code act(struct work *work, enum verdict verdict, struct err *err)
{
    switch (verdict) {
    case VERDICT_FAIL:
        work->outcome = DEAD_JOB_FAILED;
        return fail_job(work, err);
    case VERDICT_BLOCK:
        work->outcome = DEAD_JOB_BLOCKED;
        return block_job(work, err);
    case VERDICT_LEAVE:
        work->outcome = DEAD_LEFT_ALONE;
        return ERR_OK;
    case VERDICT_WAS_FAILED:
        work->outcome = DEAD_JOB_FAILED;
        return ERR_OK;
    case VERDICT_WAS_BLOCKED:
        work->outcome = DEAD_JOB_BLOCKED;
        return ERR_OK;
    case VERDICT_KEEP:
        break;
    }
    work->outcome = DEAD_KEPT;
    return ERR_OK;
}

static enum err_code settle_job(struct work *work, struct err *err)
{
    struct judge_facts facts;
    enum err_code rc = ERR_OK;
    for (int i = 0; i < RACES_MAX; i++) {
        err_clear(err);
        rc = read_facts(work, &facts, err);
        if (rc)
            return rc;
        rc = act(work, judge(&facts, work->detail, sizeof(work->detail)), err);
        if (rc != ERR_CONFLICT && rc != ERR_STATE && rc != ERR_NOT_FOUND)
            return rc;
    }
    return rc;
}

static void tell(const struct work *work, const struct uuid *row, bool is_new)
{
    const struct dead_message *message = &work->arrival.message;
    char row_text[UUID_TEXT_SIZE];
    char job_text[UUID_TEXT_SIZE] = "";
    if (message->has_job)
        (void)uuid_text(&message->job, job_text);
    log_event(work->arrival.is_probe ? LOG_INFO : LOG_WARN, "dead.message",
              LOG_S("id", uuid_text(row, row_text)),
              LOG_S("source", dead_source_text(message->source)), LOG_S("reason", message->reason),
              LOG_S("tenant", message->tenant), LOG_S("routing_key", message->routing_key),
              LOG_S("queue", message->queue_name), LOG_U("bytes", message->size_bytes),
              LOG_S("job", job_text), LOG_S("outcome", dead_outcome_text(work->outcome)),
              LOG_S("detail", work->detail), LOG_B("known", !is_new));
    if (is_new && !work->arrival.is_probe)
        notify_dead(work->handle->notify, message, row, work->outcome, work->detail);
}

static enum err_code handle_work(struct work *work, struct err *err)
{
    struct store *store = work->handle->store;
    struct dead_arrived arrived;
    enum err_code rc = dead_store_put(store, &work->arrival.row, &arrived, err);
    if (rc == ERR_OK)
        rc = settle_job(work, err);
    FAULT("dead.job_settled");
    if (rc == ERR_OK)
        rc = dead_store_settle(store, &arrived.id, work->outcome, work->detail, err);
    if (rc)
        return rc;
    metric_count(&handled, work->outcome, 1);
    metric_count(&doubled, 0, !arrived.is_new);
    /* One that was cut short before its outcome was written has not been told of either. */
    tell(work, &arrived.id, arrived.is_new || arrived.outcome == DEAD_NO_OUTCOME);
    return ERR_OK;
}

enum err_code handle_delivery(const struct handle *handle, const struct bus_delivery *delivery,
                              struct err *err)
{
    struct work work = {.handle = handle};
    arrival_read(handle->source, delivery, &work.arrival);
    if (work.arrival.is_short)
        return err_set(err, ERR_NOMEM, "no memory for a digest");
    enum err_code rc = handle_work(&work, err);
    job_free(work.job);
    return rc;
}

/* ---- what cannot be handled ------------------------------------------------------------------ */

static enum err_code keep(const struct handle *handle, const struct dead_arrival *row,
                          const char *reason, struct dead_arrived *ret_arrived, struct err *err)
{
    char detail[JOB_REASON_SIZE];
    (void)snprintf(detail, sizeof(detail), "it could not be handled: %.300s", reason);
    enum err_code rc = dead_store_put(handle->store, row, ret_arrived, err);
    return rc ? rc : dead_store_settle(handle->store, &ret_arrived->id, DEAD_KEPT, detail, err);
}

/* Nothing of it is left that a row could be refused for, or found by. */
static void strip(struct arrival *arrival)
{
    struct dead_message *message = &arrival->message;
    const struct uuid id = uuid_v7();
    *message = (struct dead_message){
        .id = id, .source = message->source, .size_bytes = message->size_bytes};
    (void)snprintf(message->reason, sizeof(message->reason), "unknown");
    arrival->row.redelivered = true;
    memset(arrival->row.digest, 0, sizeof(arrival->row.digest));
    memcpy(arrival->row.digest, id.bytes, sizeof(id.bytes));
}

enum err_code handle_set_aside(const struct handle *handle, const struct bus_delivery *delivery,
                               const char *reason, struct err *err)
{
    struct arrival arrival;
    struct dead_arrived arrived = {0};
    char id[UUID_TEXT_SIZE];
    struct err first = {0};
    arrival_read(handle->source, delivery, &arrival);
    enum err_code rc =
        arrival.is_short ? ERR_NOMEM : keep(handle, &arrival.row, reason, &arrived, &first);
    if (rc) {
        strip(&arrival);
        rc = keep(handle, &arrival.row, reason, &arrived, err);
    }
    if (rc)
        return rc;
    metric_count(&set_aside, 0, 1);
    metric_count(&handled, DEAD_KEPT, 1);
    log_event(LOG_ERROR, "dead.message.set_aside", LOG_S("id", uuid_text(&arrived.id, id)),
              LOG_S("source", dead_source_text(handle->source)),
              LOG_U("bytes", delivery->size_bytes), LOG_S("reason", reason));
    return ERR_OK;
}
