/* SPDX-License-Identifier: MIT */
#include "common/bus/call.h"

#include <amqp_framing.h>
#include <stdio.h>

#define NOT_EQUIVALENT 406

static amqp_channel_t channel_of(const struct calls *calls, const struct call_slot *slot)
{
    return (amqp_channel_t)(CHANNEL_CALLS + (slot - calls->slots));
}

void calls_init(struct calls *calls, struct conn *conn)
{
    *calls = (struct calls){.conn = conn};
    calls->end = &calls->first;
}

static void send_exchange(struct calls *calls, struct call_slot *slot)
{
    const struct topology_exchange *row = topology_exchange(BUS_DEFER);
    amqp_exchange_declare_t method = {.exchange = amqp_cstring_bytes(slot->call.name),
                                      .type = amqp_cstring_bytes(row->type),
                                      .durable = true};
    conn_send(calls->conn, channel_of(calls, slot), AMQP_EXCHANGE_DECLARE_METHOD, &method);
    slot->answers_due++;
}

static void send_queue(struct calls *calls, struct call_slot *slot)
{
    const struct topology_queue *row = topology_queue(slot->call.queue);
    struct topology_args args;
    topology_queue_args(slot->call.queue, &slot->call.choice, &args);
    amqp_queue_declare_t method = {.queue = amqp_cstring_bytes(slot->call.name),
                                   .durable = !row->exclusive,
                                   .exclusive = row->exclusive,
                                   .arguments = args.table};
    conn_send(calls->conn, channel_of(calls, slot), AMQP_QUEUE_DECLARE_METHOD, &method);
    slot->answers_due++;
}

static void send_bindings(struct calls *calls, struct call_slot *slot)
{
    const struct call *call = &slot->call;
    const char *exchange = topology_exchange(topology_queue(call->queue)->exchange)->name;
    if (call->queue == BUS_QUEUE_DEFER)
        exchange = call->name;
    for (size_t i = 0; i < call->key_count; i++) {
        amqp_queue_bind_t method = {.queue = amqp_cstring_bytes(call->name),
                                    .exchange = amqp_cstring_bytes(exchange),
                                    .routing_key = amqp_cstring_bytes(call->keys[i])};
        conn_send(calls->conn, channel_of(calls, slot), AMQP_QUEUE_BIND_METHOD, &method);
        slot->answers_due++;
    }
}

/* Everything at once: the answers come in the same order, or the channel is closed. */
static void send_call(struct calls *calls, struct call_slot *slot)
{
    const struct call *call = &slot->call;
    amqp_channel_t channel = channel_of(calls, slot);
    amqp_channel_open_t open = {0};
    conn_send(calls->conn, channel, AMQP_CHANNEL_OPEN_METHOD, &open);
    slot->state = CALL_ASKED;
    slot->answers_due = 0;
    if (call->kind == CALL_LOOK) {
        amqp_queue_declare_t look = {.queue = amqp_cstring_bytes(call->name), .passive = true};
        conn_send(calls->conn, channel, AMQP_QUEUE_DECLARE_METHOD, &look);
        slot->answers_due = 1;
    } else if (call->kind == CALL_DELETE) {
        amqp_queue_delete_t delete = {.queue = amqp_cstring_bytes(call->name)};
        conn_send(calls->conn, channel, AMQP_QUEUE_DELETE_METHOD, &delete);
        slot->answers_due = 1;
    } else {
        if (call->queue == BUS_QUEUE_DEFER)
            send_exchange(calls, slot);
        if (!slot->result.mismatch)
            send_queue(calls, slot);
        send_bindings(calls, slot);
    }
}

static struct call_slot *free_slot(struct calls *calls)
{
    for (size_t i = 0; i < ARRAY_LEN(calls->slots); i++) {
        if (calls->slots[i].state == CALL_FREE && CHANNEL_CALLS + i <= calls->conn->channel_max)
            return &calls->slots[i];
    }
    return NULL;
}

static void start_waiting(struct calls *calls)
{
    struct call_slot *slot = NULL;
    while (calls->first && (slot = free_slot(calls))) {
        struct call_waiting *waiting = calls->first;
        calls->first = waiting->next;
        if (!calls->first)
            calls->end = &calls->first;
        *slot = (struct call_slot){.call = waiting->call};
        free(waiting);
        send_call(calls, slot);
    }
}

enum err_code calls_start(struct calls *calls, const struct call *call, struct err *err)
{
    struct call_waiting *waiting = malloc(sizeof(*waiting));
    if (!waiting)
        return err_set(err, ERR_NOMEM, "no memory for a question to the broker");
    *waiting = (struct call_waiting){.call = *call};
    *calls->end = waiting;
    calls->end = &waiting->next;
    start_waiting(calls);
    return ERR_OK;
}

/* The slot is free, or ending, before done is called: it may start another call. */
static void finish(struct call_slot *slot, enum err_code rc, const char *text)
{
    struct call_result result = slot->result;
    result.rc = rc;
    result.text = text;
    slot->call.done(slot->call.arg, &result);
}

static bool is_about_queue(const amqp_channel_close_t *close)
{
    amqp_method_number_t id = (amqp_method_number_t)close->class_id << 16 | close->method_id;
    return id == AMQP_QUEUE_DECLARE_METHOD;
}

static void on_refusal(struct calls *calls, struct call_slot *slot,
                       const amqp_channel_close_t *close)
{
    char text[256];
    amqp_channel_close_ok_t close_ok = {0};
    bool asked = slot->state == CALL_ASKED;
    (void)snprintf(text, sizeof(text), "%.*s", (int)close->reply_text.len,
                   (const char *)close->reply_text.bytes);
    conn_send(calls->conn, channel_of(calls, slot), AMQP_CHANNEL_CLOSE_OK_METHOD, &close_ok);
    slot->state = CALL_FREE;
    if (!asked)
        return;
    if (close->reply_code == NOT_EQUIVALENT && !slot->result.mismatch &&
        slot->call.kind == CALL_DECLARE && is_about_queue(close)) {
        slot->result.mismatch = true;
        send_call(calls, slot); /* the bindings are still wanted */
        return;
    }
    slot->result.code = close->reply_code;
    finish(slot, ERR_BROKER, text);
}

static void on_answer(struct calls *calls, struct call_slot *slot, const amqp_method_t *method)
{
    if (slot->state != CALL_ASKED)
        return;
    if (method->id == AMQP_QUEUE_DECLARE_OK_METHOD) {
        const amqp_queue_declare_ok_t *answer = method->decoded;
        slot->result.messages = answer->message_count;
        slot->result.consumers = answer->consumer_count;
    }
    if (--slot->answers_due > 0)
        return;
    conn_close_channel(calls->conn, channel_of(calls, slot));
    slot->state = CALL_ENDING;
    finish(slot, ERR_OK, "");
}

bool calls_on_frame(struct calls *calls, const amqp_frame_t *frame)
{
    if (frame->channel < CHANNEL_CALLS || frame->channel >= CHANNEL_SLOTS)
        return false;
    struct call_slot *slot = &calls->slots[frame->channel - CHANNEL_CALLS];
    if (frame->frame_type != AMQP_FRAME_METHOD)
        return true;
    switch (frame->payload.method.id) {
    case AMQP_CHANNEL_OPEN_OK_METHOD:
        return true;
    case AMQP_CHANNEL_CLOSE_METHOD:
        on_refusal(calls, slot, frame->payload.method.decoded);
        break;
    case AMQP_CHANNEL_CLOSE_OK_METHOD:
        slot->state = CALL_FREE;
        break;
    default:
        on_answer(calls, slot, &frame->payload.method);
    }
    start_waiting(calls);
    return true;
}

static void expire_waiting(struct calls *calls, int64_t now_ms, int64_t *next_ms)
{
    struct call_waiting **at = &calls->first;
    while (*at) {
        struct call_waiting *waiting = *at;
        if (waiting->call.deadline_ms > now_ms) {
            if (waiting->call.deadline_ms < *next_ms)
                *next_ms = waiting->call.deadline_ms;
            at = &waiting->next;
            continue;
        }
        *at = waiting->next;
        struct call_slot gone = {.call = waiting->call};
        free(waiting);
        finish(&gone, ERR_TIMEOUT, "the broker did not answer in time");
    }
    calls->end = at;
}

int64_t calls_tick(struct calls *calls, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < ARRAY_LEN(calls->slots); i++) {
        struct call_slot *slot = &calls->slots[i];
        if (slot->state != CALL_ASKED)
            continue;
        if (slot->call.deadline_ms > now_ms) {
            if (slot->call.deadline_ms < next_ms)
                next_ms = slot->call.deadline_ms;
            continue;
        }
        conn_close_channel(calls->conn, channel_of(calls, slot));
        slot->state = CALL_ENDING;
        finish(slot, ERR_TIMEOUT, "the broker did not answer in time");
    }
    expire_waiting(calls, now_ms, &next_ms);
    return next_ms;
}

void calls_lost(struct calls *calls)
{
    struct calls old = *calls;
    if (!old.first)
        old.end = &old.first;
    calls_init(calls, old.conn);
    for (size_t i = 0; i < ARRAY_LEN(old.slots); i++) {
        if (old.slots[i].state == CALL_ASKED)
            finish(&old.slots[i], ERR_BROKER_AWAY, "the connection to the broker was lost");
    }
    while (old.first) {
        struct call_waiting *waiting = old.first;
        old.first = waiting->next;
        struct call_slot gone = {.call = waiting->call};
        free(waiting);
        finish(&gone, ERR_BROKER_AWAY, "the connection to the broker was lost");
    }
}
