/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BUS_BUS_H
#define COMMON_BUS_BUS_H

/* bus: what publisher.h and consumer.h share: configuration, names, counters.
 * Each publisher and each consumer has one connection and one thread that owns it; the thread
 * connects for ever (100 ms to 5 s apart, with jitter) and declares what it uses (topology.def) on
 * every new connection. Publishing has a connection of its own because the broker stops a
 * connection that publishes when it runs short of memory, and acknowledgements must flow on.
 * Threads: any. Memory: texts in a struct bus_config are copied by whoever takes it. */

#include "common/base/base.h"
#include "common/base/err.h"
#include "common/base/sv.h"

#define BUS_NAME_SIZE 200                /* a queue name or routing key, and its NUL */
#define BUS_BODY_MAX ((size_t)64 * 1024) /* our messages are wake-ups: some hundred bytes */

enum bus_exchange {
#define BUS_EXCHANGE(id, name, type, alternate) BUS_##id,
#include "common/bus/topology.def"
    BUS_EXCHANGE_COUNT
};

/* What a queue is for; from it come its properties, and what it is bound to. */
enum bus_queue_kind {
#define BUS_QUEUE(id, name, type, life, exchange) BUS_QUEUE_##id,
#include "common/bus/topology.def"
    BUS_QUEUE_KIND_COUNT
};

enum bus_queue_type { BUS_QUORUM, BUS_CLASSIC };

enum bus_state { BUS_DOWN, BUS_UP, BUS_BLOCKED /* up, but the broker takes no messages now */ };

/* A zero or NULL takes what is said behind it. */
struct bus_config {
    const char *host;               /* "127.0.0.1"; or several (base/hosts.h), tried in turn */
    const char *user, *password;    /* "guest" */
    const char *vhost;              /* "/" */
    const char *name;               /* shown in the broker's management: "sluice" */
    const char *tls_ca;             /* none: no TLS; else the broker is checked by this file */
    const char *tls_cert, *tls_key; /* none; files of our own certificate */
    int port;                       /* 5672, of those that name none */
    int heartbeat_s;                /* 10 */
    int connect_timeout_ms;         /* 5000, for connect, login and each declaration */
    int confirm_timeout_ms;         /* 10000, from bus_publish() on */
    unsigned in_flight_max;         /* 4096 messages that are queued or not confirmed yet */
    unsigned delivery_limit;        /* 20, x-delivery-limit of quorum queues */
};

/* Counters since start; a copy. */
struct bus_stats {
    uint64_t connects; /* connections that came up: the first one counts too */
    uint64_t blocked;  /* times that the broker said it takes no messages */
    uint64_t published, confirmed, nacked, timed_out, lost; /* messages */
    uint64_t delivered, redelivered, deliveries_lost;       /* deliveries */
    uint64_t channels_closed;                               /* by the broker */
};

/* Names, into BUS_NAME_SIZE bytes; ret_name is returned. The submission queue's name is also its
 * routing key on sluice.submit. Names that are too long are cut (and then do not exist). */
const char *bus_submit_queue(const char *tenant, const char *queue, char *ret_name);
/* The other way round; false: it is not the name of a submission queue, or a part does not fit. */
MUST_USE bool bus_split_submit_queue(const char *name, char *ret_tenant, size_t tenant_size,
                                     char *ret_queue, size_t queue_size);
const char *bus_recovery_queue(const char *tenant, char *ret_name);
const char *bus_worker_queue(const char *worker_id, char *ret_name);
const char *bus_queue_name(enum bus_queue_kind kind); /* "" if it has no fixed name */
const char *bus_exchange_name(enum bus_exchange exchange);
MUST_USE bool bus_exchange_parse(struct sv text, enum bus_exchange *ret_exchange);
/* "quorum", "classic" */
const char *bus_queue_type_text(enum bus_queue_type type);
MUST_USE bool bus_queue_type_parse(struct sv text, enum bus_queue_type *ret_type);

#endif
