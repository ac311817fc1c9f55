/* SPDX-License-Identifier: MIT */
#include "common/base/wake.h"
#include "common/bus/consumer_impl.h"

#include <amqp_framing.h>
#include <assert.h>

struct mailbox *mailbox_new(int wake_fd)
{
    struct mailbox *mailbox = calloc(1, sizeof(*mailbox));
    if (!mailbox)
        return NULL;
    (void)pthread_mutex_init(&mailbox->lock, NULL);
    mailbox->end = &mailbox->first;
    mailbox->wake_fd = wake_fd;
    mailbox->refs = 1;
    return mailbox;
}

/* The lock is held; it is released. */
static void mailbox_leave(struct mailbox *mailbox)
{
    bool last = --mailbox->refs == 0;
    (void)pthread_mutex_unlock(&mailbox->lock);
    if (!last)
        return;
    (void)pthread_mutex_destroy(&mailbox->lock);
    free(mailbox);
}

void mailbox_close(struct mailbox *mailbox)
{
    (void)pthread_mutex_lock(&mailbox->lock);
    mailbox->wake_fd = -1;
    (void)pthread_mutex_unlock(&mailbox->lock);
    struct delivery *next = NULL;
    for (struct delivery *at = mailbox_take(mailbox); at; at = next) {
        next = at->next;
        delivery_free(at);
    }
    (void)pthread_mutex_lock(&mailbox->lock);
    mailbox_leave(mailbox);
}

struct delivery *mailbox_take(struct mailbox *mailbox)
{
    (void)pthread_mutex_lock(&mailbox->lock);
    struct delivery *first = TAKE(mailbox->first);
    mailbox->end = &mailbox->first;
    (void)pthread_mutex_unlock(&mailbox->lock);
    return first;
}

struct delivery *delivery_new(struct mailbox *mailbox)
{
    struct delivery *delivery = calloc(1, sizeof(*delivery));
    if (!delivery)
        return NULL;
    (void)pthread_mutex_lock(&mailbox->lock);
    mailbox->refs++;
    (void)pthread_mutex_unlock(&mailbox->lock);
    delivery->mailbox = mailbox;
    return delivery;
}

void delivery_free(struct delivery *delivery)
{
    if (!delivery)
        return;
    (void)pthread_mutex_lock(&delivery->mailbox->lock);
    mailbox_leave(delivery->mailbox);
    free(delivery->bytes);
    free(delivery);
}

bool delivery_is_settled(struct delivery *delivery)
{
    (void)pthread_mutex_lock(&delivery->mailbox->lock);
    bool settled = delivery->settled;
    (void)pthread_mutex_unlock(&delivery->mailbox->lock);
    return settled;
}

void bus_settle(struct bus_delivery **take_delivery, enum bus_settle how)
{
    struct delivery *delivery = (struct delivery *)TAKE(*take_delivery);
    struct mailbox *mailbox = delivery->mailbox;
    (void)pthread_mutex_lock(&mailbox->lock);
    assert(!delivery->settled);
    bool gone = mailbox->wake_fd < 0;
    if (!gone) {
        bool first = !mailbox->first;
        delivery->how = how;
        delivery->settled = true;
        delivery->next = NULL;
        *mailbox->end = delivery;
        mailbox->end = &delivery->next;
        if (first)
            wake_raise(mailbox->wake_fd); /* under the lock: the descriptor is still open */
    }
    (void)pthread_mutex_unlock(&mailbox->lock);
    if (gone)
        delivery_free(delivery);
}

static void copy_bytes(amqp_bytes_t bytes, char *ret_text, size_t size)
{
    const struct sv text = {bytes.bytes, bytes.len};
    if (!sv_copy(text, ret_text, size))
        ret_text[0] = '\0';
}

void delivery_set_method(struct delivery *delivery, const amqp_basic_deliver_t *method)
{
    delivery->tag = method->delivery_tag;
    delivery->pub.redelivered = method->redelivered;
    copy_bytes(method->routing_key, delivery->pub.routing_key, sizeof(delivery->pub.routing_key));
    copy_bytes(method->exchange, delivery->pub.exchange, sizeof(delivery->pub.exchange));
}

static int64_t number_of(const amqp_field_value_t *value)
{
    switch (value->kind) {
    case AMQP_FIELD_KIND_I8:
        return value->value.i8; /* NOLINT(bugprone-signed-char-misuse): it is a number */
    case AMQP_FIELD_KIND_I16:
        return value->value.i16;
    case AMQP_FIELD_KIND_I32:
        return value->value.i32;
    case AMQP_FIELD_KIND_I64:
        return value->value.i64;
    case AMQP_FIELD_KIND_TIMESTAMP:
        return value->value.u64 > INT64_MAX ? 0 : (int64_t)value->value.u64;
    default: /* no number that we understand: as if it were not there */
        return 0;
    }
}

static uint32_t count_of(const amqp_field_value_t *value)
{
    int64_t count = number_of(value);
    return count < 0 ? 0 : count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

static bool key_is(amqp_bytes_t key, const char *name)
{
    return sv_is((struct sv){key.bytes, key.len}, name);
}

static void copy_text(const amqp_field_value_t *value, char *ret_text, size_t size)
{
    if (value->kind == AMQP_FIELD_KIND_UTF8 || value->kind == AMQP_FIELD_KIND_BYTES)
        copy_bytes(value->value.bytes, ret_text, size);
}

static void read_death_entry(struct bus_death *death, const amqp_table_entry_t *entry)
{
    const amqp_field_value_t *value = &entry->value;
    if (key_is(entry->key, "reason"))
        copy_text(value, death->reason, sizeof(death->reason));
    else if (key_is(entry->key, "queue"))
        copy_text(value, death->queue, sizeof(death->queue));
    else if (key_is(entry->key, "exchange"))
        copy_text(value, death->exchange, sizeof(death->exchange));
    else if (key_is(entry->key, "count"))
        death->count = (uint64_t)(number_of(value) > 0 ? number_of(value) : 0);
    else if (key_is(entry->key, "time"))
        death->at_s = number_of(value);
    else if (key_is(entry->key, "routing-keys") && value->kind == AMQP_FIELD_KIND_ARRAY &&
             value->value.array.num_entries > 0)
        copy_text(&value->value.array.entries[0], death->routing_key, sizeof(death->routing_key));
}

/* The broker keeps one entry per queue and reason, the latest first. */
static void read_death(struct bus_death *death, const amqp_field_value_t *value)
{
    if (value->kind != AMQP_FIELD_KIND_ARRAY || value->value.array.num_entries < 1 ||
        value->value.array.entries[0].kind != AMQP_FIELD_KIND_TABLE)
        return;
    const amqp_table_t *last = &value->value.array.entries[0].value.table;
    for (int i = 0; i < last->num_entries; i++)
        read_death_entry(death, &last->entries[i]);
}

static void read_headers(struct bus_delivery *pub, const amqp_table_t *headers)
{
    for (int i = 0; i < headers->num_entries; i++) {
        const amqp_table_entry_t *entry = &headers->entries[i];
        if (key_is(entry->key, "x-delivery-count"))
            pub->delivery_count = count_of(&entry->value);
        else if (key_is(entry->key, "traceparent") && entry->value.kind == AMQP_FIELD_KIND_UTF8)
            copy_bytes(entry->value.value.bytes, pub->traceparent, sizeof(pub->traceparent));
        else if (key_is(entry->key, "x-death"))
            read_death(&pub->death, &entry->value);
    }
}

bool delivery_set_header(struct delivery *delivery, const amqp_frame_t *frame)
{
    const amqp_basic_properties_t *properties = frame->payload.properties.decoded;
    struct bus_delivery *pub = &delivery->pub;
    delivery->size_due = frame->payload.properties.body_size;
    pub->size_bytes = delivery->size_due;
    pub->truncated = delivery->size_due > BUS_BODY_MAX;
    if (properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG)
        copy_bytes(properties->message_id, pub->message_id, sizeof(pub->message_id));
    if (properties->_flags & AMQP_BASIC_CONTENT_TYPE_FLAG)
        copy_bytes(properties->content_type, pub->content_type, sizeof(pub->content_type));
    if (properties->_flags & AMQP_BASIC_HEADERS_FLAG)
        read_headers(pub, &properties->headers);
    delivery->capacity = pub->truncated ? BUS_BODY_MAX : (size_t)delivery->size_due;
    delivery->bytes = calloc(1, delivery->capacity + 1);
    if (!delivery->bytes) /* it comes again: one without its bytes would be taken for broken */
        return false;
    pub->body = (struct sv){delivery->bytes, 0};
    return true;
}

void delivery_add_body(struct delivery *delivery, amqp_bytes_t fragment)
{
    size_t room = delivery->capacity - delivery->pub.body.len;
    size_t size = fragment.len < room ? fragment.len : room;
    if (size > 0)
        memcpy(delivery->bytes + delivery->pub.body.len, fragment.bytes, size);
    delivery->pub.body.len += size;
    delivery->size_read += fragment.len;
}

bool delivery_is_whole(const struct delivery *delivery)
{
    return delivery->pub.body.ptr && delivery->size_read >= delivery->size_due;
}
