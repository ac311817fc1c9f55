/* SPDX-License-Identifier: MIT */
#include "common/bus/consumer.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/uuid.h"
#include "common/bus/consumer_impl.h"

#include <errno.h>
#include <stdio.h>

static void tell_state(struct bus_consumer *consumer, enum bus_state state)
{
    const struct bus_consumer_setup *setup = &consumer->setup;
    consumer->told_up = state == BUS_UP;
    atomic_store(&consumer->generation, consumer->conn.generation);
    atomic_store(&consumer->state, (int)state);
    if (setup->on_state)
        setup->on_state(setup->arg, state, consumer->conn.generation);
}

static int wait_ms(int64_t now_ms, int64_t until_ms)
{
    if (until_ms <= now_ms)
        return 0;
    return until_ms - now_ms > 60000 ? 60000 : (int)(until_ms - now_ms);
}

/* A frame says nothing about when it was sent: the network may have kept it for long. An answer is
 * younger than its question, so where there are probes it is their time that counts. */
static int64_t heard_ms(const struct bus_consumer *consumer)
{
    return consumer->setup.probe_ms > 0 ? consumer->vouched_ms : consumer->conn.heard_ms;
}

static void serve(struct bus_consumer *consumer)
{
    struct conn *conn = &consumer->conn;
    while (!conn->broken && !atomic_load(&conn->stop)) {
        int64_t now = clock_mono_ms();
        consumer_settle(consumer);
        consumer_declare(consumer, now);
        if (consumer->inbox_ready && !consumer->told_up)
            tell_state(consumer, BUS_UP);
        consumer_adjust(consumer);
        consumer_probe(consumer, now);
        int64_t next = calls_tick(&consumer->calls, now);
        int64_t due = consumer_declare_due(consumer);
        (void)conn_wait(conn, wait_ms(now, due < next ? due : next), false);
        conn_read(conn, consumer_on_frame, consumer);
        if (!conn->broken && consumer->inbox_ready)
            atomic_store(&consumer->last_frame_ms, heard_ms(consumer));
    }
}

static void end_connection(struct bus_consumer *consumer)
{
    struct conn *conn = &consumer->conn;
    bool stopping = atomic_load(&conn->stop);
    consumer_settle(consumer); /* before the polite end, which is read after it */
    if (conn->broken)
        conn_lost(conn);
    else
        conn_close(conn, true);
    calls_lost(&consumer->calls);
    consumer->inbox_ready = consumer->inbox_asked = false;
    consumer->queue_ready = consumer->queue_asked = false;
    consumer->inbox_retry_ms = consumer->queue_retry_ms = 0;
    if (consumer->told_up)
        tell_state(consumer, BUS_DOWN);
    consumer_drop_channels(consumer, !stopping);
}

static void *consumer_main(void *arg)
{
    struct bus_consumer *consumer = arg;
    (void)pthread_setname_np(pthread_self(), "bus-consumer");
    while (!atomic_load(&consumer->conn.stop) && conn_open(&consumer->conn)) {
        (void)pthread_mutex_lock(&consumer->lock);
        consumer->stats.connects++;
        (void)pthread_mutex_unlock(&consumer->lock);
        serve(consumer);
        end_connection(consumer);
    }
    return NULL;
}

static enum err_code copy_name(const char *text, char *ret_copy, struct err *err)
{
    if (!sv_copy(sv_of(text), ret_copy, BUS_NAME_SIZE))
        return err_set(err, ERR_TOO_LARGE, "a queue name or key of more than %d bytes: %.60s...",
                       BUS_NAME_SIZE - 1, text);
    return ERR_OK;
}

static enum err_code copy_setup(struct bus_consumer *consumer,
                                const struct bus_consumer_setup *from, struct err *err)
{
    char id[UUID_TEXT_SIZE];
    struct uuid random = uuid_v7();
    enum err_code rc = ERR_OK;
    consumer->setup = *from;
    if (from->inbox.key_count > INBOX_KEYS_MAX)
        return err_set(err, ERR_INVALID, "an inbox with %zu keys; at most %d",
                       from->inbox.key_count, INBOX_KEYS_MAX);
    if (from->queue)
        rc = copy_name(from->queue, consumer->queue, err);
    if (from->queue && !rc)
        rc = copy_name(from->binding_key ? from->binding_key : from->queue, consumer->binding_key,
                       err);
    for (size_t i = 0; i < from->inbox.key_count && !rc; i++) {
        rc = copy_name(from->inbox.keys[i], consumer->keys[i], err);
        consumer->key_list[i] = consumer->keys[i];
    }
    if (!rc && from->inbox.name)
        rc = copy_name(from->inbox.name, consumer->inbox_name, err);
    else
        (void)snprintf(consumer->inbox_name, BUS_NAME_SIZE, "sluice.listener.%s",
                       uuid_text(&random, id));
    consumer->queue_key = consumer->binding_key;
    return rc;
}

static void release(struct bus_consumer *consumer)
{
    if (consumer->mailbox)
        mailbox_close(consumer->mailbox);
    (void)pthread_mutex_destroy(&consumer->lock);
    conn_done(&consumer->conn);
    free(consumer);
}

static enum err_code start_thread(struct bus_consumer *consumer, struct err *err)
{
    consumer->mailbox = mailbox_new(consumer->conn.wake_fd);
    int failed = consumer->mailbox
                     ? pthread_create(&consumer->thread, NULL, consumer_main, consumer)
                     : ENOMEM;
    if (failed)
        return err_set_errno(err, ERR_NOMEM, failed, "starting the consumer's thread");
    return ERR_OK;
}

enum err_code bus_consumer_open(const struct bus_config *cfg,
                                const struct bus_consumer_setup *setup,
                                struct bus_consumer **ret_consumer, struct err *err)
{
    struct bus_consumer *consumer = calloc(1, sizeof(*consumer));
    if (!consumer)
        return err_set(err, ERR_NOMEM, "no memory for a consumer");
    enum err_code rc = conn_init(&consumer->conn, cfg, err);
    if (rc) {
        free(consumer);
        return rc;
    }
    (void)pthread_mutex_init(&consumer->lock, NULL);
    calls_init(&consumer->calls, &consumer->conn);
    rc = copy_setup(consumer, setup, err);
    if (!rc)
        rc = start_thread(consumer, err);
    if (rc) {
        release(consumer);
        return rc;
    }
    *ret_consumer = consumer;
    return ERR_OK;
}

void bus_consumer_free(struct bus_consumer *consumer)
{
    if (!consumer)
        return;
    conn_stop(&consumer->conn);
    (void)pthread_join(consumer->thread, NULL);
    release(consumer);
}

void bus_consumer_set_channels(struct bus_consumer *consumer, unsigned count)
{
    unsigned most = count < BUS_CHANNELS_MAX ? count : BUS_CHANNELS_MAX;
    if (atomic_exchange(&consumer->wanted, most) != most)
        conn_wake(&consumer->conn);
}

enum bus_state bus_consumer_state(struct bus_consumer *consumer)
{
    return (enum bus_state)atomic_load(&consumer->state);
}

uint32_t bus_consumer_generation(struct bus_consumer *consumer)
{
    return atomic_load(&consumer->generation);
}

int64_t bus_consumer_last_frame_ms(struct bus_consumer *consumer)
{
    return atomic_load(&consumer->last_frame_ms);
}

void bus_consumer_stats(struct bus_consumer *consumer, struct bus_stats *ret_stats)
{
    (void)pthread_mutex_lock(&consumer->lock);
    *ret_stats = consumer->stats;
    (void)pthread_mutex_unlock(&consumer->lock);
}
