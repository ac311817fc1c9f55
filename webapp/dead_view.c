/* SPDX-License-Identifier: MIT */
#include "common/base/openssl.h"
#include "webapp/dead.h"
#include "webapp/job_view.h"

/* base64 of the bytes; JSON's null without memory. */
static json_t *view_base64(const char *bytes, size_t size)
{
    unsigned char *text = calloc(1, (size + 2) / 3 * 4 + 1);
    if (!text)
        return json_null();
    (void)EVP_EncodeBlock(text, (const unsigned char *)bytes, (int)size);
    json_t *view = json_string((const char *)text);
    free(text);
    return view;
}

static json_t *view_plain(const char *bytes, size_t size)
{
    struct sv text = {bytes, size};
    bool plain = sv_is_utf8(text) && (size == 0 || !memchr(bytes, 0, size));
    return plain ? json_stringn(bytes, size) : json_null();
}

static void put_origin(json_t *view, const struct dead_message *message)
{
    json_object_set_new(view, "source", json_string(dead_source_text(message->source)));
    json_object_set_new(view, "reason", json_string(message->reason));
    json_object_set_new(view, "exchange", view_text(message->exchange_name));
    json_object_set_new(view, "queue", view_text(message->queue_name));
    json_object_set_new(view, "routingKey", view_text(message->routing_key));
    json_object_set_new(view, "messageId", view_text(message->message_id));
    json_object_set_new(view, "contentType", view_text(message->content_type));
    json_object_set_new(view, "deathCount", json_integer((json_int_t)message->death_count));
    json_object_set_new(view, "deliveryCount", json_integer(message->delivery_count));
    json_object_set_new(view, "died", view_time(message->died_us));
    json_object_set_new(view, "job", message->has_job ? view_uuid(&message->job) : json_null());
    json_object_set_new(view, "epoch",
                        message->has_job ? json_integer(message->epoch) : json_null());
    json_object_set_new(view, "sizeBytes", json_integer((json_int_t)message->size_bytes));
    json_object_set_new(view, "keptBytes", json_integer((json_int_t)message->kept_bytes));
}

static void put_deeds(json_t *view, const struct dead_message *message)
{
    json_object_set_new(view, "outcome", view_text(dead_outcome_text(message->outcome)));
    json_object_set_new(view, "detail", view_text(message->detail));
    json_object_set_new(view, "seen", json_integer(message->seen));
    json_object_set_new(view, "replays", json_integer(message->replays));
    json_object_set_new(view, "actedBy", view_text(message->acted_by));
    json_object_set_new(view, "acted", view_time(message->acted_us));
    json_object_set_new(view, "created", view_time(message->created_us));
    json_object_set_new(view, "lastSeen", view_time(message->seen_us));
}

json_t *dead_view(const struct dead_message *message, bool whole)
{
    json_t *view = json_object();
    json_object_set_new(view, "id", view_uuid(&message->id));
    json_object_set_new(view, "state", json_string(dead_state_text(message->state)));
    put_origin(view, message);
    put_deeds(view, message);
    if (whole) {
        const char *bytes = message->body ? message->body : "";
        json_object_set_new(view, "bodyText", view_plain(bytes, (size_t)message->kept_bytes));
        json_object_set_new(view, "bodyBase64", view_base64(bytes, (size_t)message->kept_bytes));
    }
    return view;
}
