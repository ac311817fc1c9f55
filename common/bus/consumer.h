/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BUS_CONSUMER_H
#define COMMON_BUS_CONSUMER_H

/* consumer: deliveries of one queue, each on a channel of its own (prefetch 1), and an inbox, an
 * exclusive queue for commands or events. A channel that the broker closes costs one delivery.
 * Threads: locked. Callbacks run on the consumer's thread and must not block; they may call
 * bus_settle() and bus_consumer_set_channels().
 * Memory: a delivery belongs to its receiver until bus_settle(). */

#include "common/bus/bus.h"

#define BUS_CHANNELS_MAX 1000

struct bus_consumer;

/* What the broker noted when it last gave the message up (its header x-death). */
struct bus_death {
    char reason[32]; /* "rejected", "expired", "delivery_limit", "maxlen"; "": it never did */
    char queue[BUS_NAME_SIZE];
    char exchange[BUS_NAME_SIZE];    /* that the message had come by */
    char routing_key[BUS_NAME_SIZE]; /* with this key */
    uint64_t count;                  /* how often from that queue, for that reason */
    int64_t at_s;                    /* when, first; since 1970 by the broker's clock */
};

struct bus_delivery {
    struct sv body;          /* ended by a NUL that is not counted */
    uint64_t size_bytes;     /* of the whole message */
    bool truncated;          /* the message was longer than BUS_BODY_MAX: body is its beginning */
    bool redelivered;        /* somebody was given it before */
    uint32_t delivery_count; /* how often, if the queue counts (quorum); else 0 */
    uint32_t generation;     /* of the connection that it came on */
    unsigned channel;        /* for logs */
    char message_id[64];     /* "" if there is none, or it is too long */
    char traceparent[64];    /* likewise */
    char content_type[64];   /* likewise */
    char exchange[BUS_NAME_SIZE]; /* that it was last published to */
    char routing_key[BUS_NAME_SIZE];
    struct bus_death death;
    _Atomic(void *) user; /* the receiver's */
};

/* How a delivery ends. */
enum bus_settle {
    BUS_ACK,     /* handled */
    BUS_REJECT,  /* poison: to the dead letters */
    BUS_REQUEUE, /* back to the queue, for somebody else */
};

/* From any thread, exactly once for each delivery, lost or not; frees it. It is told to the broker
 * by the consumer's thread, and dropped when its channel is gone: the broker has taken the message
 * back then. Works after bus_consumer_free(), too. */
void bus_settle(struct bus_delivery **take_delivery, enum bus_settle how);

/* An exclusive queue of this connection, bound to an exchange by each of the keys. */
struct bus_inbox {
    enum bus_exchange exchange; /* BUS_COMMAND or BUS_EVENTS */
    const char *name;           /* bus_worker_queue(); NULL: the broker chooses one */
    const char *const *keys;
    size_t key_count; /* 0: no inbox */
};

struct bus_consumer_setup {
    const char *queue; /* to be served; declared if it is not there; NULL: inbox only */
    enum bus_queue_kind queue_kind; /* 0: a submission queue */
    const char *binding_key;        /* NULL: the queue's name; fanout exchanges ignore it */
    enum bus_queue_type queue_type; /* of a submission queue */
    struct bus_inbox inbox;
    /* How often the broker is asked to say that it holds the inbox; 0: its heartbeats are enough,
     * which a quiet connection sees once per heartbeat interval. */
    int64_t probe_ms;
    int64_t longest_ms; /* how long a delivery may be held; 0: unknown. For a warning only, when the
                         * broker's consumer_timeout turns out to be shorter. */
    void *arg;          /* of the callbacks; each may be NULL if it is not needed */
    void (*on_delivery)(void *arg, struct bus_delivery **take_delivery);
    /* The broker takes this delivery back (its channel or connection is gone): the work goes on
     * without one. It still has to be settled. Not called once bus_settle() was. */
    void (*on_lost)(void *arg, struct bus_delivery *delivery);
    /* Something came to the inbox. */
    void (*on_message)(void *arg, struct sv routing_key, struct sv body);
    /* BUS_UP: the connection and its inbox are there. BUS_DOWN: no longer. */
    void (*on_state)(void *arg, enum bus_state state, uint32_t generation);
};

/* Starts the thread; the broker need not be there. Consuming starts with set_channels. */
MUST_USE enum err_code bus_consumer_open(const struct bus_config *cfg,
                                         const struct bus_consumer_setup *setup,
                                         struct bus_consumer **ret_consumer, struct err *err);
/* Sends the settlements that are queued (for up to a second), closes the connection, ends the
 * thread. Deliveries that are still held go back to the queue; on_lost is not called for them.
 * NULL is allowed. */
void bus_consumer_free(struct bus_consumer *consumer);
DEFINE_AUTO(struct bus_consumer *, bus_consumer_free)

/* How many channels shall wait for a delivery or hold one (at most BUS_CHANNELS_MAX). Idle ones are
 * opened and closed; one that holds a delivery stays until that is settled. */
void bus_consumer_set_channels(struct bus_consumer *consumer, unsigned count);

enum bus_state bus_consumer_state(struct bus_consumer *consumer);
/* Counts connections; the one of now, or of the last one. 0 before the first. */
uint32_t bus_consumer_generation(struct bus_consumer *consumer);
/* clock_boot_ms() when the broker last vouched for the inbox: with probes, when the last question
 * was sent that it answered; without them, when it was last heard (heartbeats count). 0: never.
 * While this is recent, the broker holds our exclusive queue. */
int64_t bus_consumer_last_frame_ms(struct bus_consumer *consumer);
void bus_consumer_stats(struct bus_consumer *consumer, struct bus_stats *ret_stats);

#endif
