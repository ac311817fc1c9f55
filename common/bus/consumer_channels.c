/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/consumer_impl.h"

#include <amqp_framing.h>
#include <stdio.h>

#define PRECONDITION_FAILED 406
#define CONSUMER_TAG "c" /* one consumer per channel */

static amqp_channel_t number_of(const struct bus_consumer *consumer, const struct channel *channel)
{
    if (channel == &consumer->inbox)
        return CHANNEL_MAIN;
    return (amqp_channel_t)(CHANNEL_SLOTS + (channel - consumer->slots));
}

static bool is_inbox(const struct bus_consumer *consumer, const struct channel *channel)
{
    return channel == &consumer->inbox;
}

static bool is_active(enum channel_state state)
{
    return state == CHANNEL_OPENING || state == CHANNEL_READY;
}

static void set_channel_state(struct bus_consumer *consumer, struct channel *channel,
                              enum channel_state state)
{
    if (!is_inbox(consumer, channel)) {
        consumer->slots_active += (unsigned)is_active(state) - (unsigned)is_active(channel->state);
        consumer->slots_opening +=
            (unsigned)(state == CHANNEL_OPENING) - (unsigned)(channel->state == CHANNEL_OPENING);
    }
    channel->state = state;
}

static void count(struct bus_consumer *consumer, uint64_t *counter)
{
    (void)pthread_mutex_lock(&consumer->lock);
    ++*counter;
    (void)pthread_mutex_unlock(&consumer->lock);
}

/* What was on the channel goes back to the queue; the receiver is told. */
static void lose_delivery(struct bus_consumer *consumer, struct channel *channel, bool tell)
{
    delivery_free(TAKE(channel->arriving));
    struct delivery *held = TAKE(channel->held);
    if (!held)
        return;
    held->lost = true;
    if (!tell || delivery_is_settled(held))
        return;
    count(consumer, &consumer->stats.deliveries_lost);
    if (consumer->setup.on_lost)
        consumer->setup.on_lost(consumer->setup.arg, &held->pub);
}

/* Everything in one go; the answers are awaited one by one in consumer_on_frame(). */
void consumer_open_channel(struct bus_consumer *consumer, struct channel *channel,
                           const char *queue)
{
    amqp_channel_t number = number_of(consumer, channel);
    amqp_channel_open_t open = {0};
    amqp_basic_qos_t qos = {.prefetch_count = 1};
    amqp_basic_consume_t consume = {.queue = amqp_cstring_bytes(queue),
                                    .consumer_tag = amqp_cstring_bytes(CONSUMER_TAG),
                                    .no_ack = is_inbox(consumer, channel)};
    set_channel_state(consumer, channel, CHANNEL_OPENING);
    if (is_inbox(consumer, channel))
        consumer->asked_ms = clock_boot_ms();
    conn_send(&consumer->conn, number, AMQP_CHANNEL_OPEN_METHOD, &open);
    if (!is_inbox(consumer, channel))
        conn_send(&consumer->conn, number, AMQP_BASIC_QOS_METHOD, &qos);
    conn_send(&consumer->conn, number, AMQP_BASIC_CONSUME_METHOD, &consume);
}

static void close_channel(struct bus_consumer *consumer, struct channel *channel)
{
    set_channel_state(consumer, channel, CHANNEL_CLOSING);
    lose_delivery(consumer, channel, true);
    conn_close_channel(&consumer->conn, number_of(consumer, channel));
}

static unsigned most_channels(struct bus_consumer *consumer)
{
    unsigned wanted = atomic_load(&consumer->wanted);
    unsigned max = consumer->conn.channel_max;
    unsigned most = max >= CHANNEL_SLOTS ? max - CHANNEL_SLOTS + 1 : 0;
    if (wanted <= most)
        return wanted;
    if (!consumer->capped_told)
        log_event(LOG_WARN, "bus.channels.capped", LOG_U("wanted", wanted), LOG_U("have", most),
                  LOG_U("channel_max", max),
                  LOG_S("cure", "raise channel_max in the broker's configuration"));
    consumer->capped_told = true;
    return most;
}

/* Only as many as are too many, and only idle ones. */
static void close_idle(struct bus_consumer *consumer, unsigned wanted)
{
    for (unsigned i = consumer->slots_used; i-- > 0 && consumer->slots_active > wanted;) {
        struct channel *channel = &consumer->slots[i];
        if (channel->state == CHANNEL_READY && !channel->held && !channel->arriving)
            close_channel(consumer, channel);
    }
}

void consumer_adjust(struct bus_consumer *consumer)
{
    unsigned wanted = most_channels(consumer);
    if (consumer->slots_active > wanted)
        close_idle(consumer, wanted);
    if (!consumer->told_up || !consumer->queue_ready)
        return;
    for (unsigned i = 0; i < BUS_CHANNELS_MAX && consumer->slots_active < wanted; i++) {
        struct channel *channel = &consumer->slots[i];
        if (consumer->trouble_told && consumer->slots_opening > 0)
            return; /* one tries whether the queue can be consumed now, not all of them */
        if (channel->state != CHANNEL_CLOSED)
            continue;
        consumer_open_channel(consumer, channel, consumer->queue);
        if (i >= consumer->slots_used)
            consumer->slots_used = i + 1;
    }
}

void consumer_drop_channels(struct bus_consumer *consumer, bool tell)
{
    for (unsigned i = 0; i < consumer->slots_used; i++) {
        set_channel_state(consumer, &consumer->slots[i], CHANNEL_CLOSED);
        lose_delivery(consumer, &consumer->slots[i], tell);
    }
    consumer->slots_used = 0;
    consumer->inbox.state = CHANNEL_CLOSED;
    lose_delivery(consumer, &consumer->inbox, false);
}

static struct channel *channel_of(struct bus_consumer *consumer, const struct delivery *delivery)
{
    return &consumer->slots[delivery->pub.channel - CHANNEL_SLOTS];
}

static void send_settlement(struct bus_consumer *consumer, const struct delivery *delivery)
{
    amqp_channel_t number = (amqp_channel_t)delivery->pub.channel;
    if (delivery->how == BUS_ACK) {
        amqp_basic_ack_t ack = {.delivery_tag = delivery->tag};
        conn_send(&consumer->conn, number, AMQP_BASIC_ACK_METHOD, &ack);
    } else {
        amqp_basic_reject_t reject = {.delivery_tag = delivery->tag,
                                      .requeue = delivery->how == BUS_REQUEUE};
        conn_send(&consumer->conn, number, AMQP_BASIC_REJECT_METHOD, &reject);
    }
}

static void settle_one(struct bus_consumer *consumer, struct delivery *delivery)
{
    if (delivery->lost)
        return;
    struct channel *channel = channel_of(consumer, delivery);
    bool surplus = consumer->slots_active > most_channels(consumer);
    channel->held = NULL;
    if (surplus) { /* so that the settlement does not bring another delivery */
        amqp_basic_cancel_t cancel = {.consumer_tag = amqp_cstring_bytes(CONSUMER_TAG),
                                      .nowait = true};
        conn_send(&consumer->conn, (amqp_channel_t)delivery->pub.channel, AMQP_BASIC_CANCEL_METHOD,
                  &cancel);
    }
    send_settlement(consumer, delivery);
    if (surplus)
        close_channel(consumer, channel);
}

void consumer_settle(struct bus_consumer *consumer)
{
    struct delivery *next = NULL;
    for (struct delivery *at = mailbox_take(consumer->mailbox); at; at = next) {
        next = at->next;
        settle_one(consumer, at);
        delivery_free(at);
    }
}

static void give_to_receiver(struct bus_consumer *consumer, struct channel *channel)
{
    struct delivery *delivery = TAKE(channel->arriving);
    const struct bus_consumer_setup *setup = &consumer->setup;
    if (is_inbox(consumer, channel)) {
        if (setup->on_message)
            setup->on_message(setup->arg, sv_of(delivery->pub.routing_key), delivery->pub.body);
        delivery_free(delivery);
        return;
    }
    (void)pthread_mutex_lock(&consumer->lock);
    consumer->stats.delivered++;
    consumer->stats.redelivered += delivery->pub.redelivered;
    (void)pthread_mutex_unlock(&consumer->lock);
    delivery->given_ms = clock_mono_ms();
    channel->held = delivery;
    struct bus_delivery *given = &delivery->pub;
    setup->on_delivery(setup->arg, &given);
}

static void on_deliver(struct bus_consumer *consumer, struct channel *channel,
                       const amqp_basic_deliver_t *method)
{
    struct delivery *delivery = delivery_new(consumer->mailbox);
    if (!delivery) {
        conn_break(&consumer->conn, "no memory for a delivery");
        return;
    }
    delivery_free(channel->arriving);
    channel->arriving = delivery;
    delivery->pub.channel = number_of(consumer, channel);
    delivery->pub.generation = consumer->conn.generation;
    delivery_set_method(delivery, method);
}

/* The broker's own patience with an unacknowledged message is too short for our jobs. */
static void log_ack_timeout(struct bus_consumer *consumer, const struct delivery *held,
                            struct sv reason)
{
    int64_t held_ms = clock_mono_ms() - held->given_ms;
    int64_t needed_ms = consumer->setup.longest_ms > held_ms ? consumer->setup.longest_ms : held_ms;
    log_event(LOG_WARN, "bus.consumer_timeout", LOG_S("queue", consumer->queue),
              LOG_S("message", held->pub.message_id), LOG_V("reason", reason),
              LOG_I("held_ms", held_ms), LOG_S("setting", "consumer_timeout"),
              LOG_I("needed_ms", needed_ms),
              LOG_S("cure", "set consumer_timeout in the broker's configuration to more than "
                            "needed_ms; the job goes on without its delivery"));
}

static void on_channel_closed(struct bus_consumer *consumer, struct channel *channel,
                              const amqp_channel_close_t *close)
{
    const struct sv reason = {close->reply_text.bytes, close->reply_text.len};
    amqp_channel_close_ok_t close_ok = {0};
    char text[256];
    (void)snprintf(text, sizeof(text), "%u %.*s", close->reply_code, (int)reason.len, reason.ptr);
    conn_send(&consumer->conn, number_of(consumer, channel), AMQP_CHANNEL_CLOSE_OK_METHOD,
              &close_ok);
    bool was_opening = channel->state == CHANNEL_OPENING;
    bool was_closing = channel->state == CHANNEL_CLOSING;
    set_channel_state(consumer, channel, CHANNEL_CLOSED);
    if (was_closing)
        return;
    count(consumer, &consumer->stats.channels_closed);
    if (is_inbox(consumer, channel)) {
        consumer_inbox_gone(consumer, text);
        return;
    }
    if (channel->held && close->reply_code == PRECONDITION_FAILED)
        log_ack_timeout(consumer, channel->held, reason);
    else if (!was_opening)
        log_event(LOG_WARN, "bus.channel.closed", LOG_S("queue", consumer->queue),
                  LOG_S("reason", text));
    lose_delivery(consumer, channel, true);
    if (was_opening)
        consumer_queue_gone(consumer, text);
}

static void on_cancel(struct bus_consumer *consumer, struct channel *channel)
{
    close_channel(consumer, channel);
    if (is_inbox(consumer, channel))
        consumer_inbox_gone(consumer, "the broker cancelled it: the queue was deleted");
    else
        consumer_queue_gone(consumer, "the broker cancelled it: the queue was deleted");
}

static void on_consuming(struct bus_consumer *consumer, struct channel *channel)
{
    set_channel_state(consumer, channel, CHANNEL_READY);
    consumer->trouble_told = false;
    if (!is_inbox(consumer, channel))
        return;
    consumer->inbox_ready = true;
    consumer->probe_asked = false;
    consumer->vouched_ms = consumer->asked_ms;
}

static void on_method(struct bus_consumer *consumer, struct channel *channel,
                      const amqp_method_t *method)
{
    bool closing = channel->state == CHANNEL_CLOSING;
    switch (method->id) {
    case AMQP_BASIC_DELIVER_METHOD:
        if (!closing)
            on_deliver(consumer, channel, method->decoded);
        return;
    case AMQP_BASIC_CONSUME_OK_METHOD:
        if (!closing)
            on_consuming(consumer, channel);
        return;
    case AMQP_QUEUE_DECLARE_OK_METHOD: /* of consumer_probe(): that it came is all it says */
        consumer->probe_asked = false;
        consumer->vouched_ms = consumer->asked_ms;
        return;
    case AMQP_BASIC_CANCEL_METHOD:
        if (!closing)
            on_cancel(consumer, channel);
        return;
    case AMQP_CHANNEL_CLOSE_METHOD:
        on_channel_closed(consumer, channel, method->decoded);
        return;
    case AMQP_CHANNEL_CLOSE_OK_METHOD:
        set_channel_state(consumer, channel, CHANNEL_CLOSED);
        return;
    default: /* open-ok, qos-ok: nothing waits for them alone */
        return;
    }
}

void consumer_on_frame(void *arg, const amqp_frame_t *frame)
{
    struct bus_consumer *consumer = arg;
    if (calls_on_frame(&consumer->calls, frame))
        return;
    if (frame->channel >= CHANNEL_SLOTS + BUS_CHANNELS_MAX)
        return;
    struct channel *channel = frame->channel == CHANNEL_MAIN
                                  ? &consumer->inbox
                                  : &consumer->slots[frame->channel - CHANNEL_SLOTS];
    if (frame->frame_type == AMQP_FRAME_METHOD) {
        on_method(consumer, channel, &frame->payload.method);
        return;
    }
    if (!channel->arriving)
        return; /* the rest of a delivery that we gave up with its channel */
    if (frame->frame_type == AMQP_FRAME_HEADER && !delivery_set_header(channel->arriving, frame)) {
        conn_break(&consumer->conn, "no memory for a delivery");
        return;
    }
    if (frame->frame_type == AMQP_FRAME_BODY)
        delivery_add_body(channel->arriving, frame->payload.body_fragment);
    if (delivery_is_whole(channel->arriving))
        give_to_receiver(consumer, channel);
}
