/* SPDX-License-Identifier: MIT */
#include "readers/common/arrival.h"

#include "common/base/openssl.h"
#include "common/model/message.h"

static void add_bytes(EVP_MD_CTX *md, const void *bytes, uint64_t size)
{
    (void)EVP_DigestUpdate(md, &size, sizeof(size));
    (void)EVP_DigestUpdate(md, bytes, (size_t)size);
}

static void add_text(EVP_MD_CTX *md, const char *text)
{
    add_bytes(md, text, strlen(text));
}

static void add_number(EVP_MD_CTX *md, uint64_t number)
{
    (void)EVP_DigestUpdate(md, &number, sizeof(number));
}

static bool make_digest(const struct bus_delivery *delivery, enum dead_source source,
                        uint8_t *ret_digest)
{
    const struct bus_death *death = &delivery->death;
    unsigned length = 0;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    if (!md || EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(md);
        return false;
    }
    add_text(md, dead_source_text(source));
    add_bytes(md, delivery->body.ptr, delivery->body.len);
    add_number(md, delivery->size_bytes);
    add_text(md, delivery->message_id);
    add_text(md, delivery->exchange);
    add_text(md, delivery->routing_key);
    if (source == DEAD_LETTER) {
        add_text(md, death->queue);
        add_text(md, death->reason);
        add_number(md, death->count);
        add_number(md, (uint64_t)death->at_s);
    }
    bool good = EVP_DigestFinal_ex(md, ret_digest, &length) == 1;
    EVP_MD_CTX_free(md);
    return good;
}

static void copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from);
}

/* A message that died on the way back from a defer queue was published to sluice.submit again by
 * the broker: its latest death is what brought it here. */
static void read_origin(enum dead_source source, const struct bus_delivery *delivery,
                        struct dead_message *message)
{
    const struct bus_death *death = &delivery->death;
    bool died = source == DEAD_LETTER && death->reason[0];
    copy(message->reason, sizeof(message->reason),
         source == DEAD_ALTERNATE ? "unroutable"
         : died                   ? death->reason
                                  : "unknown");
    copy(message->exchange_name, sizeof(message->exchange_name),
         died ? death->exchange : delivery->exchange);
    copy(message->queue_name, sizeof(message->queue_name), died ? death->queue : "");
    copy(message->routing_key, sizeof(message->routing_key),
         died && death->routing_key[0] ? death->routing_key : delivery->routing_key);
    message->death_count = died ? death->count : 0;
    message->died_us = died ? death->at_s * 1000000 : 0;
}

static void read_job(const struct bus_delivery *delivery, struct arrival *arrival)
{
    struct message message = {0};
    struct err err = {0};
    if (delivery->truncated)
        (void)err_set(&err, ERR_TOO_LARGE, "message of %llu bytes, of which %zu are kept",
                      (unsigned long long)delivery->size_bytes, delivery->body.len);
    else if (message_read(delivery->body, &message, &err) == ERR_OK) {
        arrival->message.has_job = true;
        arrival->message.job = message.job;
        arrival->message.epoch = message.epoch;
        return;
    }
    (void)snprintf(arrival->fault, sizeof(arrival->fault), "%.*s", (int)sizeof(arrival->fault) - 1,
                   err.text);
}

/* "sluice-probe-<uuid>": the row gets that id, so that the doctor finds it. */
static bool read_probe(const char *message_id, struct uuid *ret_id)
{
    size_t length = strlen(DEAD_PROBE_PREFIX);
    return strncmp(message_id, DEAD_PROBE_PREFIX, length) == 0 &&
           uuid_parse(sv_of(message_id + length), ret_id);
}

static bool read_tenant(const char *name, struct dead_message *message)
{
    char queue[QUEUE_NAME_SIZE];
    return bus_split_submit_queue(name, message->tenant, sizeof(message->tenant), queue,
                                  sizeof(queue));
}

void arrival_read(enum dead_source source, const struct bus_delivery *delivery, struct arrival *ret)
{
    struct dead_message *message = &ret->message;
    *ret = (struct arrival){.message = {.id = uuid_v7(), .source = source}};
    read_origin(source, delivery, message);
    copy(message->message_id, sizeof(message->message_id), delivery->message_id);
    copy(message->content_type, sizeof(message->content_type), delivery->content_type);
    copy(message->traceparent, sizeof(message->traceparent), delivery->traceparent);
    message->delivery_count = delivery->delivery_count;
    message->size_bytes = delivery->size_bytes;
    read_job(delivery, ret);
    ret->is_probe = read_probe(message->message_id, &message->id);
    if (!read_tenant(message->queue_name, message) && !read_tenant(message->routing_key, message))
        message->tenant[0] = 0;
    ret->row = (struct dead_arrival){
        .message = message, .body = delivery->body, .redelivered = delivery->redelivered};
    ret->is_short = !make_digest(delivery, source, ret->row.digest);
}
