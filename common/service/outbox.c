/* SPDX-License-Identifier: MIT */
#include "common/service/outbox.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/model/message.h"
#include "common/service/metrics.h"
#include "common/store/outbox_store.h"

#include <pthread.h>

#define BUCKETS 4096u
#define BATCH_MAX 500u
/* Confirmations that come so close together are deleted together. Nobody waits for it: each
 * deletion is a sync of the disk that the next submission would wait for. */
#define GATHER_MS 100
#define RELAY_PAGE 500u

static struct metric confirm_seconds = METRIC_HISTOGRAM(
    "sluice_confirm_seconds", "From publishing a job's message to the broker's confirmation.");

/* A row that we sent: under way, or confirmed and not deleted yet. */
struct sent {
    struct sent *next; /* of its bucket */
    struct outbox *outbox;
    uint64_t id;
    int64_t sent_us;
    bool confirmed; /* lock */
};

struct outbox {
    struct outbox_config cfg;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct sent *buckets[BUCKETS]; /* lock; and all below */
    size_t count;
    uint64_t done[BATCH_MAX * 4]; /* confirmed, to be deleted */
    size_t done_count;
    bool overflow; /* more were confirmed than done holds: look through the buckets */
    bool backlog;  /* the publisher did not take all: they are sent as soon as it has room */
    bool relay_now, stopping;
    struct outbox_counters counters;
    pthread_t thread;
    bool has_thread;
};

static struct sent **find(struct outbox *outbox, uint64_t id)
{
    struct sent **at = &outbox->buckets[id % BUCKETS];
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* false: it is under way already, or there is no memory (the relay tries again). */
static bool remember(struct outbox *outbox, uint64_t id, struct sent **ret_sent)
{
    struct sent *fresh = calloc(1, sizeof(*fresh));
    if (!fresh)
        return false;
    *fresh = (struct sent){.outbox = outbox, .id = id, .sent_us = clock_mono_us()};
    pthread_mutex_lock(&outbox->lock);
    struct sent **at = find(outbox, id);
    bool is_new = !*at;
    if (is_new) {
        *at = fresh;
        outbox->count++;
    }
    pthread_mutex_unlock(&outbox->lock);
    if (!is_new)
        free(fresh);
    else
        *ret_sent = fresh;
    return is_new;
}

static void forget_locked(struct outbox *outbox, uint64_t id)
{
    struct sent **at = find(outbox, id);
    struct sent *sent = *at;
    if (!sent)
        return;
    *at = sent->next;
    outbox->count--;
    free(sent);
}

/* On the publisher's thread. */
static void on_confirm(void *arg, enum err_code rc)
{
    struct sent *sent = arg;
    struct outbox *outbox = sent->outbox;
    if (rc == ERR_OK) {
        FAULT(outbox->cfg.fault_confirmed);
        metric_observe_us(&confirm_seconds, clock_mono_us() - sent->sent_us);
    }
    pthread_mutex_lock(&outbox->lock);
    if (rc != ERR_OK) {
        outbox->counters.failed++;
        forget_locked(outbox, sent->id);
    } else {
        outbox->counters.confirmed++;
        sent->confirmed = true;
        if (outbox->done_count < ARRAY_LEN(outbox->done))
            outbox->done[outbox->done_count++] = sent->id;
        else
            outbox->overflow = true;
        pthread_cond_signal(&outbox->wake);
    }
    pthread_mutex_unlock(&outbox->lock);
}

static enum err_code send_one(struct outbox *outbox, const struct outbox_message *message,
                              struct err *err)
{
    struct sent *sent = NULL;
    if (!remember(outbox, message->outbox_id, &sent))
        return ERR_OK;
    char body[MESSAGE_SIZE_MAX];
    char key[BUS_NAME_SIZE];
    char id[UUID_TEXT_SIZE];
    struct message content = {message->job, message->epoch};
    size_t length = message_write(&content, body);
    enum bus_queue_type type = BUS_QUORUM;
    (void)(message->queue_type && bus_queue_type_parse(sv_of(message->queue_type), &type));
    const char *trace = message->traceparent;
    const struct bus_message wire = {
        .exchange = BUS_SUBMIT,
        .routing_key = bus_submit_queue(message->tenant, message->queue, key),
        .body = {body, length},
        .message_id = uuid_text(&message->job, id),
        .traceparent = trace && trace[0] ? trace : NULL,
        .declare_queue = true,
        .queue_type = type,
    };
    enum err_code rc = bus_publish(outbox->cfg.pub, &wire, on_confirm, sent, err);
    pthread_mutex_lock(&outbox->lock);
    if (rc) {
        forget_locked(outbox, message->outbox_id);
        outbox->backlog = true;
    } else {
        outbox->counters.sent++;
    }
    pthread_mutex_unlock(&outbox->lock);
    return rc;
}

void outbox_send(struct outbox *outbox, const struct outbox_message *message)
{
    struct err err = {0};
    if (send_one(outbox, message, &err) != ERR_OK)
        log_event(LOG_DEBUG, "outbox.deferred", LOG_U("outbox", message->outbox_id),
                  LOG_S("detail", err.text));
}

size_t outbox_under_way(struct outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    size_t count = outbox->count;
    pthread_mutex_unlock(&outbox->lock);
    return count;
}

void outbox_counters(struct outbox *outbox, struct outbox_counters *ret_counters)
{
    pthread_mutex_lock(&outbox->lock);
    *ret_counters = outbox->counters;
    pthread_mutex_unlock(&outbox->lock);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void gather_bucket(struct outbox *outbox, const struct sent *sent)
{
    for (; sent; sent = sent->next) {
        if (!sent->confirmed)
            continue;
        if (outbox->done_count == ARRAY_LEN(outbox->done))
            outbox->overflow = true;
        else
            outbox->done[outbox->done_count++] = sent->id;
    }
}

static void gather_overflow(struct outbox *outbox)
{
    outbox->overflow = false;
    for (size_t i = 0; i < BUCKETS && !outbox->overflow; i++)
        gather_bucket(outbox, outbox->buckets[i]);
}

/* Deletes a batch of confirmed rows; false when the database did not take it. The lock is held,
 * and released meanwhile. */
static bool delete_done(struct outbox *outbox)
{
    uint64_t ids[ARRAY_LEN(outbox->done)];
    struct err err = {0};
    if (outbox->done_count == 0 && outbox->overflow)
        gather_overflow(outbox);
    size_t count = outbox->done_count;
    if (count == 0)
        return true;
    memcpy(ids, outbox->done, count * sizeof(ids[0]));
    outbox->done_count = 0;
    pthread_mutex_unlock(&outbox->lock);
    enum err_code rc = outbox_store_delete(outbox->cfg.store, ids, count, &err);
    pthread_mutex_lock(&outbox->lock);
    if (rc) {
        outbox->overflow = true; /* they are still marked as confirmed */
        log_event(LOG_WARN, "outbox.delete.failed", LOG_U("rows", count),
                  LOG_S("detail", err.text));
        return false;
    }
    for (size_t i = 0; i < count; i++)
        forget_locked(outbox, ids[i]);
    return true;
}

static enum err_code relay_page(struct outbox *outbox, uint32_t age_ms, uint64_t *after,
                                size_t *ret_count, struct err *err)
{
    struct outbox_list list = {0};
    enum err_code rc = outbox_store_read(outbox->cfg.store, *after, age_ms, RELAY_PAGE, &list, err);
    const struct outbox_row *rows = list.items;
    *ret_count = list.count;
    for (size_t i = 0; rc == ERR_OK && i < list.count; i++) {
        const struct outbox_message message = {
            .outbox_id = rows[i].id,
            .job = rows[i].job,
            .epoch = rows[i].epoch,
            .tenant = rows[i].tenant,
            .queue = rows[i].queue,
            .queue_type = rows[i].queue_type,
        };
        rc = send_one(outbox, &message, err);
        *after = rows[i].id;
    }
    free(list.items);
    return rc;
}

/* Sends every row of this age again that is not under way, as far as the publisher takes them. */
static void relay(struct outbox *outbox, uint32_t age_ms)
{
    if (bus_publisher_state(outbox->cfg.pub) != BUS_UP)
        return;
    uint64_t after = 0;
    size_t count = 0;
    struct err err = {0};
    struct outbox_counters before;
    struct outbox_counters behind;
    outbox_counters(outbox, &before);
    do {
        if (relay_page(outbox, age_ms, &after, &count, &err) != ERR_OK)
            break;
    } while (count == RELAY_PAGE);
    outbox_counters(outbox, &behind);
    if (err.code && err.code != ERR_OVERLOADED)
        log_event(LOG_WARN, "outbox.relay.failed", LOG_S("detail", err.text));
    if (behind.sent == before.sent || age_ms == 0) /* a backlog is our own, and no news */
        return;
    pthread_mutex_lock(&outbox->lock);
    outbox->counters.relayed += behind.sent - before.sent;
    pthread_mutex_unlock(&outbox->lock);
    log_event(LOG_INFO, "outbox.relayed", LOG_U("messages", behind.sent - before.sent));
}

static void on_publisher_up(void *arg)
{
    struct outbox *outbox = arg;
    pthread_mutex_lock(&outbox->lock);
    outbox->relay_now = true;
    pthread_cond_signal(&outbox->wake);
    pthread_mutex_unlock(&outbox->lock);
}

static bool has_room_for_backlog(const struct outbox *outbox)
{
    return outbox->backlog && outbox->count < RELAY_PAGE &&
           bus_publisher_state(outbox->cfg.pub) == BUS_UP;
}

/* Waits until there is something to do; the lock is held. */
static void wait_for_work(struct outbox *outbox, int64_t next_relay_ms, bool retry_delete)
{
    int64_t until_ms = next_relay_ms;
    if (retry_delete && until_ms > clock_mono_ms() + 1000)
        until_ms = clock_mono_ms() + 1000;
    while (!outbox->stopping && !outbox->relay_now && !has_room_for_backlog(outbox) &&
           (retry_delete || (outbox->done_count == 0 && !outbox->overflow)) &&
           clock_cond_wait_until(&outbox->wake, &outbox->lock, until_ms))
        continue;
    int64_t gather_ms = clock_mono_ms() + GATHER_MS;
    while (!outbox->stopping && !outbox->relay_now && outbox->done_count < BATCH_MAX &&
           clock_cond_wait_until(&outbox->wake, &outbox->lock, gather_ms))
        continue;
}

static void *outbox_main(void *arg)
{
    struct outbox *outbox = arg;
    int64_t next_relay_ms = clock_mono_ms();
    bool retry_delete = false;
    pthread_mutex_lock(&outbox->lock);
    while (!outbox->stopping) {
        wait_for_work(outbox, next_relay_ms, retry_delete);
        retry_delete = !delete_done(outbox);
        bool backlog = has_room_for_backlog(outbox);
        if (outbox->stopping || (!backlog && !outbox->relay_now && clock_mono_ms() < next_relay_ms))
            continue;
        outbox->relay_now = false;
        outbox->backlog = outbox->backlog && !backlog;
        pthread_mutex_unlock(&outbox->lock);
        relay(outbox, backlog ? 0 : outbox->cfg.age_ms);
        next_relay_ms = clock_mono_ms() + outbox->cfg.age_ms;
        pthread_mutex_lock(&outbox->lock);
    }
    pthread_mutex_unlock(&outbox->lock);
    store_thread_end();
    return NULL;
}

enum err_code outbox_open(const struct outbox_config *cfg, struct outbox **ret_outbox,
                          struct err *err)
{
    struct outbox *outbox = calloc(1, sizeof(*outbox));
    if (!outbox)
        return err_set(err, ERR_NOMEM, "out of memory");
    outbox->cfg = *cfg;
    metrics_add(&confirm_seconds);
    pthread_mutex_init(&outbox->lock, NULL);
    clock_cond_init(&outbox->wake);
    int rc = pthread_create(&outbox->thread, NULL, outbox_main, outbox);
    if (rc) {
        outbox_close(outbox);
        return err_set_errno(err, ERR_NOMEM, rc, "cannot start the outbox thread");
    }
    outbox->has_thread = true;
    bus_publisher_on_up(cfg->pub, on_publisher_up, outbox);
    *ret_outbox = outbox;
    return ERR_OK;
}

void outbox_stop(struct outbox *outbox)
{
    if (!outbox || !outbox->has_thread)
        return;
    bus_publisher_on_up(outbox->cfg.pub, NULL, NULL);
    pthread_mutex_lock(&outbox->lock);
    outbox->stopping = true;
    pthread_cond_broadcast(&outbox->wake);
    pthread_mutex_unlock(&outbox->lock);
    (void)pthread_join(outbox->thread, NULL);
    outbox->has_thread = false;
}

void outbox_close(struct outbox *outbox)
{
    if (!outbox)
        return;
    outbox_stop(outbox);
    pthread_mutex_lock(&outbox->lock);
    while ((outbox->done_count > 0 || outbox->overflow) && delete_done(outbox))
        continue;
    pthread_mutex_unlock(&outbox->lock);
    for (size_t i = 0; i < BUCKETS; i++) {
        while (outbox->buckets[i])
            forget_locked(outbox, outbox->buckets[i]->id);
    }
    pthread_cond_destroy(&outbox->wake);
    pthread_mutex_destroy(&outbox->lock);
    free(outbox);
}
