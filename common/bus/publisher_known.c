/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/publisher_impl.h"

#include <stdio.h>

#define REFRESH_MS 20000 /* a queue that somebody deleted is there again after so long */
#define MISSING 404

static struct known_queue **bucket_of(struct bus_publisher *pub, const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *at = name; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 16777619u;
    return &pub->known[hash % KNOWN_BUCKETS];
}

static struct known_queue *find(struct bus_publisher *pub, const char *name)
{
    struct known_queue *known = *bucket_of(pub, name);
    while (known && strcmp(known->name, name) != 0)
        known = known->next;
    return known;
}

static struct known_queue *find_or_add(struct bus_publisher *pub, const char *name)
{
    struct known_queue *known = find(pub, name);
    if (known)
        return known;
    known = calloc(1, sizeof(*known));
    if (!known)
        return NULL;
    (void)snprintf(known->name, sizeof(known->name), "%s", name);
    known->pub = pub;
    known->next = *bucket_of(pub, name);
    *bucket_of(pub, name) = known;
    return known;
}

static void on_declared(void *arg, const struct call_result *result)
{
    struct known_queue *known = arg;
    struct bus_publisher *pub = known->pub;
    known->asked = false;
    if (result->rc == ERR_BROKER && result->code == MISSING) {
        conn_break(&pub->conn, result->text); /* an exchange: the new connection declares them */
        return;
    }
    if (result->rc != ERR_OK && result->rc != ERR_BROKER)
        return; /* nothing is known: asked again, as long as there is a message for it */
    if (result->mismatch && !known->mismatch_told) {
        known->mismatch_told = true;
        log_event(LOG_WARN, "bus.queue.mismatch", LOG_S("queue", known->name),
                  LOG_S("detail", "it exists with other arguments and is used as it is"));
    }
    if (result->rc == ERR_BROKER)
        log_event(LOG_WARN, "bus.queue.refused", LOG_S("queue", known->name),
                  LOG_S("reason", result->text));
    known->declared = pub->conn.generation;
    known->refresh_ms = clock_mono_ms() + REFRESH_MS;
}

void publisher_forget_queue(struct bus_publisher *pub, const char *name)
{
    struct known_queue *known = find(pub, name);
    if (known)
        known->declared = 0;
}

static void declare(struct known_queue *known, const struct outgoing *message)
{
    struct bus_publisher *pub = known->pub;
    bool defer = message->exchange == BUS_DEFER;
    struct err err = {0};
    known->key = defer ? "" : known->name;
    struct call call = {.kind = CALL_DECLARE,
                        .queue = defer ? BUS_QUEUE_DEFER : BUS_QUEUE_SUBMIT,
                        .choice = {.type = message->queue_type,
                                   .delivery_limit = pub->conn.cfg.delivery_limit,
                                   .ttl_s = message->defer_s},
                        .keys = &known->key,
                        .key_count = 1,
                        .deadline_ms = clock_mono_ms() + pub->conn.cfg.connect_timeout_ms,
                        .done = on_declared,
                        .arg = known};
    (void)snprintf(call.name, sizeof(call.name), "%s", known->name);
    known->asked = calls_start(&pub->calls, &call, &err) == ERR_OK;
}

bool publisher_is_declared(struct bus_publisher *pub, const struct outgoing *message)
{
    char name[BUS_NAME_SIZE];
    bool defer = message->exchange == BUS_DEFER;
    if (!defer && !message->declare_queue)
        return true;
    if (defer)
        (void)snprintf(name, sizeof(name), "%s%u", topology_exchange(BUS_DEFER)->name,
                       message->defer_s);
    else
        (void)snprintf(name, sizeof(name), "%s", message->routing_key);
    struct known_queue *known = find_or_add(pub, name);
    if (!known)
        return false;
    bool declared = known->declared == pub->conn.generation;
    if (!known->asked && (!declared || clock_mono_ms() >= known->refresh_ms))
        declare(known, message);
    return declared; /* a refreshment is not waited for */
}

void publisher_free_known(struct bus_publisher *pub)
{
    for (size_t i = 0; i < KNOWN_BUCKETS; i++) {
        while (pub->known[i]) {
            struct known_queue *gone = pub->known[i];
            pub->known[i] = gone->next;
            free(gone);
        }
    }
}
