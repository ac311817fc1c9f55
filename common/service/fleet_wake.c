/* SPDX-License-Identifier: MIT */
#include "common/service/fleet_wake.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/model/message.h"
#include "common/store/job_store.h"
#include "common/store/outbox_store.h"

#define PUBLISH_WAIT_MS 2000

/* As its user had asked, and nobody is left who could. */
static void cancel_jobs(const struct fleet_config *cfg, const struct uuid *dead)
{
    struct job_hold_row *rows = NULL;
    size_t count = 0;
    struct err err = {0};
    enum err_code rc = job_store_cancel_requests(cfg->store, dead, &rows, &count, &err);
    for (size_t i = 0; i < count && rc == ERR_OK; i++) {
        AUTO(job_free) struct job *job = NULL;
        struct job_cancelled done;
        rc = job_store_get(cfg->store, NULL, &rows[i].id, &job, &err);
        if (rc == ERR_OK)
            rc = job_store_cancel(cfg->store, job->tenant, &job->id, job->cancel_by, &done, &err);
        if (rc == ERR_STATE || rc == ERR_NOT_FOUND) { /* it has ended */
            err_clear(&err);
            rc = ERR_OK;
        }
    }
    if (rc)
        log_err("fleet.cancel.waits", &err);
    free(rows);
}

static enum err_code publish(const struct fleet_config *cfg, const struct worker_row *worker,
                             const struct uuid *job, uint32_t epoch, struct err *err)
{
    char body[MESSAGE_SIZE_MAX];
    char key[BUS_NAME_SIZE];
    char id[UUID_TEXT_SIZE];
    struct message message = {*job, epoch};
    size_t length = message_write(&message, body);
    struct bus_message out = {
        .exchange = BUS_SUBMIT,
        .routing_key = bus_submit_queue(worker->tenant, worker->queue, key),
        .body = {body, length},
        .message_id = uuid_text(job, id),
    };
    return bus_publish_wait(cfg->publisher, &out, clock_mono_ms() + PUBLISH_WAIT_MS, err);
}

/* false: the broker did not take it; the relay sends it later. */
static bool send_again(const struct fleet_config *cfg, const struct worker_row *worker,
                       const struct job_hold_row *row)
{
    struct job_hold hold = {.id = row->id, .worker = worker->id, .fence = row->fence};
    struct job_handed_back sent = {0};
    struct err err = {0};
    if (!job_state_is_active(row->status) ||
        job_store_send_again(cfg->store, &hold, row->status, "its worker was declared dead", &sent,
                             &err) != ERR_OK)
        return true; /* somebody has taken it over, or the database is away */
    if (publish(cfg, worker, &row->id, sent.epoch, &err) != ERR_OK)
        return false;
    if (outbox_store_delete(cfg->store, &sent.outbox_id, 1, &err) != ERR_OK)
        log_err("fleet.outbox.kept", &err);
    return true;
}

void fleet_wake(const struct fleet_config *cfg, const struct uuid *dead)
{
    struct job_hold_row *rows = NULL;
    size_t count = 0;
    struct worker_row worker;
    struct err err = {0};
    cancel_jobs(cfg, dead);
    /* A new epoch makes the messages that are there stale. While none can be sent in their place,
     * they are what wakes another worker. */
    if (!bus_publisher_wait_up(cfg->publisher, clock_mono_ms())) {
        log_event(LOG_INFO, "fleet.jobs.messages_stay",
                  LOG_S("reason", "nothing can be published"));
        return;
    }
    enum err_code rc = worker_store_get(cfg->store, NULL, dead, &worker, &err);
    if (rc == ERR_OK)
        rc = job_store_owned(cfg->store, dead, &rows, &count, &err);
    if (rc)
        log_err("fleet.jobs.wait", &err);
    for (size_t i = 0; i < count && send_again(cfg, &worker, &rows[i]); i++)
        ;
    free(rows);
}
