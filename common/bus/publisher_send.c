/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/bus/publisher_impl.h"

#include <amqp_framing.h>
#include <assert.h>
#include <stdio.h>

/* Less than a third of the socket's send buffer (dial.c), so that no write waits. */
#define BATCH_BYTES (32 * 1024)
#define FRAMES_BYTES 256 /* what a message costs besides its body, roughly */
#define PERSISTENT 2
#define TRANSIENT 1

static char *copy_text(char **at, const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);
    *at += size;
    return copy;
}

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static struct outgoing *copy_message(const struct bus_message *from)
{
    struct outgoing *to = calloc(1, sizeof(*to) + text_size(from->message_id) +
                                        text_size(from->traceparent) + from->body.len);
    if (!to)
        return NULL;
    char *at = (char *)(to + 1);
    to->exchange = from->exchange;
    to->message_id = copy_text(&at, from->message_id);
    to->traceparent = copy_text(&at, from->traceparent);
    to->body = at;
    to->body_bytes = from->body.len;
    if (from->body.len)
        memcpy(at, from->body.ptr, from->body.len);
    to->transient = from->transient;
    to->declare_queue = from->declare_queue && from->exchange == BUS_SUBMIT;
    to->queue_type = from->queue_type;
    to->defer_s = from->defer_s;
    return to;
}

static enum err_code check_state(struct bus_publisher *pub, struct err *err)
{
    if (atomic_load(&pub->conn.stop))
        return err_set(err, ERR_STOPPING, "the publisher is stopping");
    if (pub->state == BUS_DOWN)
        return err_set(err, ERR_BROKER_AWAY, "no connection to the broker at %s port %d",
                       pub->conn.cfg.host, pub->conn.cfg.port);
    if (pub->state == BUS_BLOCKED)
        return err_set(err, ERR_BROKER_BLOCKED, "the broker takes no messages now");
    if (pub->in_flight >= pub->conn.cfg.in_flight_max)
        return err_set(err, ERR_OVERLOADED, "%u messages wait for the broker already",
                       pub->in_flight);
    return ERR_OK;
}

enum err_code bus_publish(struct bus_publisher *pub, const struct bus_message *message,
                          bus_confirm_fn *done, void *arg, struct err *err)
{
    if (message->body.len > BUS_BODY_MAX)
        return err_set(err, ERR_TOO_LARGE, "a message of %zu bytes; at most %zu are sent",
                       message->body.len, BUS_BODY_MAX);
    struct outgoing *copy = copy_message(message);
    if (!copy)
        return err_set(err, ERR_NOMEM, "no memory for a message");
    if (!sv_copy(sv_of(message->routing_key), copy->routing_key, sizeof(copy->routing_key))) {
        free(copy);
        return err_set(err, ERR_TOO_LARGE, "a routing key of more than %d bytes",
                       BUS_NAME_SIZE - 1);
    }
    copy->done = done;
    copy->arg = arg;
    copy->deadline_ms = clock_mono_ms() + pub->conn.cfg.confirm_timeout_ms;
    (void)pthread_mutex_lock(&pub->lock);
    enum err_code rc = check_state(pub, err);
    bool first = !pub->given.first;
    if (!rc) {
        *pub->given.end = copy;
        pub->given.end = &copy->next;
        pub->in_flight++;
    }
    (void)pthread_mutex_unlock(&pub->lock);
    if (rc)
        free(copy);
    else if (first)
        conn_wake(&pub->conn);
    return rc;
}

void publisher_finish(struct bus_publisher *pub, struct outgoing *message, enum err_code rc)
{
    (void)pthread_mutex_lock(&pub->lock);
    pub->in_flight--;
    pub->stats.confirmed += rc == ERR_OK;
    pub->stats.nacked += rc == ERR_BROKER;
    pub->stats.timed_out += rc == ERR_TIMEOUT;
    pub->stats.lost += rc == ERR_BROKER_AWAY;
    (void)pthread_mutex_unlock(&pub->lock);
    if (message->done)
        message->done(message->arg, rc);
    free(message);
}

static struct outgoing *pop_ready(struct bus_publisher *pub)
{
    struct outgoing *message = pub->ready.first;
    pub->ready.first = message->next;
    if (!pub->ready.first)
        pub->ready.end = &pub->ready.first;
    message->next = NULL;
    return message;
}

void publisher_fail_ready(struct bus_publisher *pub, enum err_code rc)
{
    while (pub->ready.first)
        publisher_finish(pub, pop_ready(pub), rc);
}

static struct outgoing **sent_slot(struct bus_publisher *pub, uint64_t tag)
{
    return &pub->sent[tag % pub->sent_size];
}

static void finish_sent(struct bus_publisher *pub, uint64_t tag, enum err_code rc)
{
    struct outgoing *message = TAKE(*sent_slot(pub, tag));
    if (message)
        publisher_finish(pub, message, rc);
}

static void skip_confirmed(struct bus_publisher *pub)
{
    while (pub->oldest_tag < pub->next_tag && !*sent_slot(pub, pub->oldest_tag))
        pub->oldest_tag++;
}

/* Also makes ready for a new connection, whose tags begin at 1. */
void publisher_fail_sent(struct bus_publisher *pub, enum err_code rc)
{
    for (uint64_t tag = pub->oldest_tag; tag < pub->next_tag; tag++)
        finish_sent(pub, tag, rc);
    pub->oldest_tag = pub->next_tag = 0;
}

void publisher_on_confirm(struct bus_publisher *pub, const amqp_method_t *method)
{
    uint64_t tag = 0;
    bool multiple = false;
    enum err_code rc = ERR_OK;
    if (method->id == AMQP_BASIC_ACK_METHOD) {
        const amqp_basic_ack_t *ack = method->decoded;
        tag = ack->delivery_tag;
        multiple = ack->multiple;
    } else if (method->id == AMQP_BASIC_NACK_METHOD) {
        const amqp_basic_nack_t *nack = method->decoded;
        tag = nack->delivery_tag;
        multiple = nack->multiple;
        rc = ERR_BROKER;
    } else {
        return;
    }
    if (multiple && tag == 0)
        tag = pub->next_tag - 1;
    if (tag >= pub->next_tag)
        return;
    for (uint64_t at = multiple ? pub->oldest_tag : tag; at <= tag; at++)
        if (at >= pub->oldest_tag)
            finish_sent(pub, at, rc);
    skip_confirmed(pub);
}

int64_t publisher_tick(struct bus_publisher *pub, int64_t now_ms)
{
    /* All have the same time limit: the oldest one is due first. */
    while (pub->ready.first && pub->ready.first->deadline_ms <= now_ms)
        publisher_finish(pub, pop_ready(pub), ERR_TIMEOUT);
    skip_confirmed(pub);
    while (pub->oldest_tag < pub->next_tag &&
           (*sent_slot(pub, pub->oldest_tag))->deadline_ms <= now_ms) {
        finish_sent(pub, pub->oldest_tag, ERR_TIMEOUT);
        skip_confirmed(pub);
    }
    int64_t next_ms = pub->ready.first ? pub->ready.first->deadline_ms : INT64_MAX;
    if (pub->oldest_tag < pub->next_tag &&
        (*sent_slot(pub, pub->oldest_tag))->deadline_ms < next_ms)
        next_ms = (*sent_slot(pub, pub->oldest_tag))->deadline_ms;
    return next_ms;
}

static void exchange_name(const struct outgoing *message, char *ret_name)
{
    const char *name = topology_exchange(message->exchange)->name;
    if (message->exchange == BUS_DEFER)
        (void)snprintf(ret_name, BUS_NAME_SIZE, "%s%u", name, message->defer_s);
    else
        (void)snprintf(ret_name, BUS_NAME_SIZE, "%s", name);
}

static int send_one(struct bus_publisher *pub, const struct outgoing *message)
{
    char exchange[BUS_NAME_SIZE];
    amqp_table_entry_t entry = {.key = amqp_cstring_bytes("traceparent")};
    amqp_basic_properties_t properties = {
        ._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG,
        .content_type = amqp_cstring_bytes("application/json"),
        .delivery_mode = message->transient ? TRANSIENT : PERSISTENT};
    if (message->message_id) {
        properties._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
        properties.message_id = amqp_cstring_bytes(message->message_id);
    }
    if (message->traceparent) {
        entry.value.kind = AMQP_FIELD_KIND_UTF8;
        entry.value.value.bytes = amqp_cstring_bytes(message->traceparent);
        properties._flags |= AMQP_BASIC_HEADERS_FLAG;
        properties.headers = (amqp_table_t){1, &entry};
    }
    exchange_name(message, exchange);
    const amqp_bytes_t body = {message->body_bytes, message->body};
    return amqp_basic_publish(pub->conn.amqp, CHANNEL_MAIN, amqp_cstring_bytes(exchange),
                              amqp_cstring_bytes(message->routing_key), false, false, &properties,
                              body);
}

static void send_ready(struct bus_publisher *pub)
{
    struct outgoing *message = pop_ready(pub);
    if (pub->next_tag == 0)
        pub->oldest_tag = pub->next_tag = 1;
    assert(!*sent_slot(pub, pub->next_tag));
    *sent_slot(pub, pub->next_tag++) = message;
    (void)pthread_mutex_lock(&pub->lock);
    pub->stats.published++;
    (void)pthread_mutex_unlock(&pub->lock);
    if (FAULT_FAILS("bus.publish")) {
        conn_break(&pub->conn, "failure point bus.publish");
        return;
    }
    int status = send_one(pub, message);
    if (status != AMQP_STATUS_OK)
        conn_break(&pub->conn, amqp_error_string2(status));
}

void publisher_send(struct bus_publisher *pub)
{
    size_t room = 0;
    pub->want_write = false;
    while (pub->ready.first && !pub->conn.broken && !pub->conn.blocked) {
        size_t size = pub->ready.first->body_bytes + FRAMES_BYTES;
        if (pub->next_tag - pub->oldest_tag >= pub->sent_size)
            return; /* confirmations, or the oldest one's time limit, make room */
        if (!publisher_is_declared(pub, pub->ready.first))
            return; /* the answer to the declaration wakes us */
        if (room < size) {
            pub->want_write = !conn_writable(&pub->conn);
            room = size > BATCH_BYTES ? size : BATCH_BYTES;
        }
        if (pub->want_write)
            return;
        send_ready(pub);
        room -= size;
    }
}
