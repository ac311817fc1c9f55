/* SPDX-License-Identifier: MIT */
#include "common/bus/publisher.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/publisher_impl.h"

#include <amqp_framing.h>
#include <errno.h>
#include <stdio.h>

#define FLUSH_MS 700

static void set_state(struct bus_publisher *pub, enum bus_state state)
{
    (void)pthread_mutex_lock(&pub->lock);
    if (state == BUS_BLOCKED && pub->state != BUS_BLOCKED)
        pub->stats.blocked++;
    pub->state = state;
    (void)pthread_cond_broadcast(&pub->changed);
    (void)pthread_mutex_unlock(&pub->lock);
}

static bool open_channel(struct bus_publisher *pub)
{
    struct conn *conn = &pub->conn;
    bool opened = amqp_channel_open(conn->amqp, CHANNEL_MAIN) &&
                  amqp_confirm_select(conn->amqp, CHANNEL_MAIN);
    if (!opened)
        conn_break(conn, "the broker opens no channel with confirmations");
    amqp_maybe_release_buffers(conn->amqp);
    return opened;
}

static void on_channel_closed(struct bus_publisher *pub, const amqp_channel_close_t *close)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "publishing channel closed: %u %.*s", close->reply_code,
                   (int)close->reply_text.len, (const char *)close->reply_text.bytes);
    amqp_channel_close_ok_t close_ok = {0};
    conn_send(&pub->conn, CHANNEL_MAIN, AMQP_CHANNEL_CLOSE_OK_METHOD, &close_ok);
    (void)pthread_mutex_lock(&pub->lock);
    pub->stats.channels_closed++;
    (void)pthread_mutex_unlock(&pub->lock);
    /* It means that an exchange is missing: the new connection declares it again. */
    conn_break(&pub->conn, text);
}

static void on_frame(void *arg, const amqp_frame_t *frame)
{
    struct bus_publisher *pub = arg;
    if (calls_on_frame(&pub->calls, frame) || frame->channel != CHANNEL_MAIN ||
        frame->frame_type != AMQP_FRAME_METHOD)
        return;
    if (frame->payload.method.id == AMQP_CHANNEL_CLOSE_METHOD)
        on_channel_closed(pub, frame->payload.method.decoded);
    else
        publisher_on_confirm(pub, &frame->payload.method);
}

static void take_given(struct bus_publisher *pub)
{
    (void)pthread_mutex_lock(&pub->lock);
    if (pub->given.first) {
        *pub->ready.end = pub->given.first;
        pub->ready.end = pub->given.end;
        pub->given = (struct outgoing_list){.end = &pub->given.first};
    }
    (void)pthread_mutex_unlock(&pub->lock);
}

/* Follows the connection's blocked flag, and tells whoever waits for "up". */
static void follow_state(struct bus_publisher *pub)
{
    bool blocked = pub->conn.blocked;
    if (blocked) {
        if (pub->state != BUS_BLOCKED)
            set_state(pub, BUS_BLOCKED);
        take_given(pub);
        publisher_fail_ready(pub, ERR_BROKER_BLOCKED);
        pub->told_up = false;
        return;
    }
    if (pub->state != BUS_UP)
        set_state(pub, BUS_UP);
    (void)pthread_mutex_lock(&pub->lock);
    void (*fn)(void *) = pub->on_up;
    void *arg = pub->on_up_arg;
    bool tell = fn && (!pub->told_up || pub->on_up_new);
    pub->told_up = true;
    pub->on_up_new = false;
    (void)pthread_mutex_unlock(&pub->lock);
    if (tell)
        fn(arg);
}

static bool is_idle(struct bus_publisher *pub)
{
    (void)pthread_mutex_lock(&pub->lock);
    bool idle = pub->in_flight == 0;
    (void)pthread_mutex_unlock(&pub->lock);
    return idle;
}

static int wait_ms(int64_t now_ms, int64_t until_ms)
{
    if (until_ms <= now_ms)
        return 0;
    return until_ms - now_ms > 60000 ? 60000 : (int)(until_ms - now_ms);
}

/* Until the connection breaks, or stop was asked and what is in flight ended (or took too long). */
static void serve(struct bus_publisher *pub)
{
    struct conn *conn = &pub->conn;
    int64_t stop_ms = INT64_MAX;
    while (!conn->broken) {
        int64_t now = clock_mono_ms();
        if (atomic_load(&conn->stop) && stop_ms == INT64_MAX)
            stop_ms = now + FLUSH_MS;
        if (now >= stop_ms || (stop_ms != INT64_MAX && is_idle(pub)))
            return;
        follow_state(pub);
        publisher_start_questions(pub);
        take_given(pub);
        publisher_send(pub);
        int64_t next = publisher_tick(pub, now);
        int64_t calls_next = calls_tick(&pub->calls, now);
        if (calls_next < next)
            next = calls_next;
        if (stop_ms < next)
            next = stop_ms;
        (void)conn_wait(conn, wait_ms(now, next), pub->want_write);
        conn_read(conn, on_frame, pub);
    }
}

static void end_connection(struct bus_publisher *pub)
{
    struct conn *conn = &pub->conn;
    set_state(pub, BUS_DOWN);
    pub->told_up = false;
    if (conn->broken)
        conn_lost(conn);
    else
        conn_close(conn, true);
    calls_lost(&pub->calls);
    take_given(pub);
    publisher_fail_sent(pub, ERR_BROKER_AWAY);
    publisher_fail_ready(pub, ERR_BROKER_AWAY);
    publisher_refuse_questions(pub, ERR_BROKER_AWAY);
}

static void *publisher_main(void *arg)
{
    struct bus_publisher *pub = arg;
    (void)pthread_setname_np(pthread_self(), "bus-publisher");
    while (!atomic_load(&pub->conn.stop) && conn_open(&pub->conn)) {
        (void)pthread_mutex_lock(&pub->lock);
        pub->stats.connects++;
        (void)pthread_mutex_unlock(&pub->lock);
        if (open_channel(pub))
            serve(pub);
        end_connection(pub);
    }
    return NULL;
}

static void release(struct bus_publisher *pub)
{
    publisher_free_known(pub);
    free(pub->sent);
    (void)pthread_mutex_destroy(&pub->lock);
    (void)pthread_cond_destroy(&pub->changed);
    conn_done(&pub->conn);
    free(pub);
}

enum err_code bus_publisher_open(const struct bus_config *cfg, struct bus_publisher **ret_pub,
                                 struct err *err)
{
    struct bus_publisher *pub = calloc(1, sizeof(*pub));
    if (!pub)
        return err_set(err, ERR_NOMEM, "no memory for a publisher");
    enum err_code rc = conn_init(&pub->conn, cfg, err);
    if (rc) {
        free(pub);
        return rc;
    }
    calls_init(&pub->calls, &pub->conn);
    pub->ready.end = &pub->ready.first;
    pub->given.end = &pub->given.first;
    (void)pthread_mutex_init(&pub->lock, NULL);
    clock_cond_init(&pub->changed);
    /* Twice: confirmations come out of order, and the oldest holds its place. */
    pub->sent_size = (size_t)pub->conn.cfg.in_flight_max * 2;
    pub->sent = calloc(pub->sent_size, sizeof(struct outgoing *));
    int failed = pub->sent ? pthread_create(&pub->thread, NULL, publisher_main, pub) : ENOMEM;
    if (failed) {
        release(pub);
        return err_set_errno(err, ERR_NOMEM, failed, "starting the publisher's thread");
    }
    *ret_pub = pub;
    return ERR_OK;
}

void bus_publisher_free(struct bus_publisher *pub)
{
    if (!pub)
        return;
    conn_stop(&pub->conn);
    (void)pthread_join(pub->thread, NULL);
    release(pub);
}

enum bus_state bus_publisher_state(struct bus_publisher *pub)
{
    (void)pthread_mutex_lock(&pub->lock);
    enum bus_state state = pub->state;
    (void)pthread_mutex_unlock(&pub->lock);
    return state;
}

bool bus_publisher_wait_up(struct bus_publisher *pub, int64_t deadline_ms)
{
    (void)pthread_mutex_lock(&pub->lock);
    while (pub->state != BUS_UP && clock_cond_wait_until(&pub->changed, &pub->lock, deadline_ms))
        ;
    bool up = pub->state == BUS_UP;
    (void)pthread_mutex_unlock(&pub->lock);
    return up;
}

void bus_publisher_on_up(struct bus_publisher *pub, void (*fn)(void *arg), void *arg)
{
    (void)pthread_mutex_lock(&pub->lock);
    pub->on_up = fn;
    pub->on_up_arg = arg;
    pub->on_up_new = true;
    (void)pthread_mutex_unlock(&pub->lock);
    conn_wake(&pub->conn);
}

void bus_publisher_stats(struct bus_publisher *pub, struct bus_stats *ret_stats)
{
    (void)pthread_mutex_lock(&pub->lock);
    *ret_stats = pub->stats;
    (void)pthread_mutex_unlock(&pub->lock);
}
