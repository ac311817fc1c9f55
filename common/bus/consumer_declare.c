/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/consumer_impl.h"

#include <amqp_framing.h>
#include <stdio.h>

#define RETRY_MS 1000
#define REFRESH_MS 20000 /* what somebody took away (a binding) is there again after so long */
#define LOCKED 405
#define MISSING 404

static bool has_inbox(const struct bus_consumer *consumer)
{
    return consumer->setup.inbox.key_count > 0;
}

void consumer_inbox_gone(struct bus_consumer *consumer, const char *why)
{
    if (consumer->inbox_ready)
        log_event(LOG_WARN, "bus.inbox.gone", LOG_S("queue", consumer->inbox_name),
                  LOG_S("reason", why));
    else
        consumer->inbox_retry_ms = clock_mono_ms() + RETRY_MS;
    consumer->inbox_ready = false;
}

void consumer_queue_gone(struct bus_consumer *consumer, const char *why)
{
    if (!consumer->queue_ready)
        return; /* said before: all channels of the queue say it */
    consumer->queue_ready = false;
    consumer->queue_retry_ms = clock_mono_ms() + RETRY_MS;
    if (!consumer->trouble_told)
        log_event(LOG_WARN, "bus.queue.gone", LOG_S("queue", consumer->queue), LOG_S("reason", why),
                  LOG_I("declared_again_in_ms", RETRY_MS));
    consumer->trouble_told = true;
}

/* An exchange is missing: a new connection declares them all. */
static bool breaks(struct bus_consumer *consumer, const struct call_result *result)
{
    if (result->rc != ERR_BROKER || result->code != MISSING)
        return false;
    conn_break(&consumer->conn, result->text);
    return true;
}

static void on_inbox_declared(void *arg, const struct call_result *result)
{
    struct bus_consumer *consumer = arg;
    consumer->inbox_asked = false;
    if (breaks(consumer, result) || consumer->inbox.state != CHANNEL_CLOSED)
        return; /* it was but refreshed */
    if (result->rc == ERR_OK) {
        consumer->locked_told = false;
        consumer_open_channel(consumer, &consumer->inbox, consumer->inbox_name);
        return;
    }
    consumer->inbox_retry_ms = clock_mono_ms() + RETRY_MS;
    if (result->rc != ERR_BROKER || consumer->locked_told)
        return;
    consumer->locked_told = true;
    log_event(LOG_WARN, result->code == LOCKED ? "bus.inbox.locked" : "bus.inbox.refused",
              LOG_S("queue", consumer->inbox_name), LOG_S("reason", result->text),
              LOG_S("detail", result->code == LOCKED
                                  ? "a former connection still holds it; tried again until the "
                                    "broker has noticed that it is gone"
                                  : "tried again every second"));
}

static void on_queue_declared(void *arg, const struct call_result *result)
{
    struct bus_consumer *consumer = arg;
    consumer->queue_asked = false;
    if (breaks(consumer, result))
        return;
    if (result->rc != ERR_OK && result->rc != ERR_BROKER) {
        consumer->queue_retry_ms = clock_mono_ms() + RETRY_MS;
        return;
    }
    if (result->mismatch && !consumer->mismatch_told) {
        consumer->mismatch_told = true;
        log_event(LOG_WARN, "bus.queue.mismatch", LOG_S("queue", consumer->queue),
                  LOG_S("detail", "it exists with other arguments and is used as it is"));
    }
    if (result->rc == ERR_BROKER && !consumer->trouble_told)
        log_event(LOG_WARN, "bus.queue.refused", LOG_S("queue", consumer->queue),
                  LOG_S("reason", result->text));
    consumer->queue_ready = true; /* if it is not there after all, consuming says so */
}

static bool start(struct bus_consumer *consumer, const struct call *call)
{
    struct err err = {0};
    return calls_start(&consumer->calls, call, &err) == ERR_OK;
}

static void declare_inbox(struct bus_consumer *consumer, int64_t deadline_ms)
{
    struct call call = {.kind = CALL_DECLARE,
                        .queue = consumer->setup.inbox.exchange == BUS_EVENTS ? BUS_QUEUE_LISTENER
                                                                              : BUS_QUEUE_WORKER,
                        .keys = consumer->key_list,
                        .key_count = consumer->setup.inbox.key_count,
                        .deadline_ms = deadline_ms,
                        .done = on_inbox_declared,
                        .arg = consumer};
    (void)snprintf(call.name, sizeof(call.name), "%s", consumer->inbox_name);
    consumer->inbox_asked = start(consumer, &call);
}

static void declare_queue(struct bus_consumer *consumer, int64_t deadline_ms)
{
    struct call call = {.kind = CALL_DECLARE,
                        .queue = consumer->setup.queue_kind,
                        .choice = {.type = consumer->setup.queue_type,
                                   .delivery_limit = consumer->conn.cfg.delivery_limit},
                        .keys = &consumer->queue_key,
                        .key_count = 1,
                        .deadline_ms = deadline_ms,
                        .done = on_queue_declared,
                        .arg = consumer};
    (void)snprintf(call.name, sizeof(call.name), "%s", consumer->queue);
    consumer->queue_asked = start(consumer, &call);
}

static bool wants_inbox(const struct bus_consumer *consumer)
{
    return has_inbox(consumer) && !consumer->inbox_ready && !consumer->inbox_asked &&
           consumer->inbox.state == CHANNEL_CLOSED;
}

static bool wants_queue(const struct bus_consumer *consumer)
{
    return consumer->setup.queue && !consumer->queue_ready && !consumer->queue_asked;
}

static void refresh(struct bus_consumer *consumer, int64_t now_ms, int64_t deadline_ms)
{
    consumer->refresh_ms = now_ms + REFRESH_MS;
    if (has_inbox(consumer) && consumer->inbox_ready && !consumer->inbox_asked)
        declare_inbox(consumer, deadline_ms);
    if (consumer->setup.queue && consumer->queue_ready && !consumer->queue_asked)
        declare_queue(consumer, deadline_ms);
}

void consumer_declare(struct bus_consumer *consumer, int64_t now_ms)
{
    int64_t deadline_ms = now_ms + consumer->conn.cfg.connect_timeout_ms;
    if (!has_inbox(consumer))
        consumer->inbox_ready = true;
    if (wants_inbox(consumer) && now_ms >= consumer->inbox_retry_ms)
        declare_inbox(consumer, deadline_ms);
    if (wants_queue(consumer) && now_ms >= consumer->queue_retry_ms)
        declare_queue(consumer, deadline_ms);
    if (now_ms >= consumer->refresh_ms)
        refresh(consumer, now_ms, deadline_ms);
}

static bool wants_probe(const struct bus_consumer *consumer)
{
    return consumer->setup.probe_ms > 0 && has_inbox(consumer) && consumer->inbox_ready &&
           !consumer->probe_asked;
}

void consumer_probe(struct bus_consumer *consumer, int64_t now_ms)
{
    amqp_queue_declare_t look = {.queue = amqp_cstring_bytes(consumer->inbox_name),
                                 .passive = true};
    if (!wants_probe(consumer) || now_ms < consumer->probe_due_ms)
        return;
    consumer->probe_asked = true;
    consumer->probe_due_ms = now_ms + consumer->setup.probe_ms;
    consumer->asked_ms = clock_boot_ms();
    conn_send(&consumer->conn, CHANNEL_MAIN, AMQP_QUEUE_DECLARE_METHOD, &look);
}

int64_t consumer_declare_due(const struct bus_consumer *consumer)
{
    int64_t due_ms = consumer->refresh_ms;
    if (wants_probe(consumer) && consumer->probe_due_ms < due_ms)
        due_ms = consumer->probe_due_ms;
    if (wants_inbox(consumer) && consumer->inbox_retry_ms < due_ms)
        due_ms = consumer->inbox_retry_ms;
    if (wants_queue(consumer) && consumer->queue_retry_ms < due_ms)
        due_ms = consumer->queue_retry_ms;
    return due_ms;
}
