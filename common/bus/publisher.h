/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BUS_PUBLISHER_H
#define COMMON_BUS_PUBLISHER_H

/* publisher: messages out, each with the broker's confirmation, and questions about queues.
 * Threads: locked (every call from any thread). Callbacks run on the publisher's thread: they must
 * not block, and may call bus_publish() but none of the calls that wait.
 * Memory: everything given is copied. */

#include "common/bus/bus.h"

struct bus_publisher;

/* How a message ended. ERR_OK: the broker has it (durably, if it is persistent and was routed; the
 * alternate exchange counts as routed). ERR_BROKER: refused by a queue. ERR_BROKER_AWAY: the
 * connection was lost. ERR_TIMEOUT: no confirmation in time. After these two it may or may not
 * be there: sending it again is right, since a doubled message is harmless.
 * ERR_BROKER_BLOCKED: not sent. */
typedef void bus_confirm_fn(void *arg, enum err_code rc);

struct bus_message {
    enum bus_exchange exchange;
    const char
        *routing_key;       /* BUS_DEFER: where it shall go afterwards, a submission queue's name */
    struct sv body;         /* at most BUS_BODY_MAX */
    const char *message_id; /* or NULL */
    const char *traceparent; /* or NULL */
    bool transient;          /* true: may be lost with the broker (wake-ups) */
    bool declare_queue;      /* BUS_SUBMIT: declare the queue `routing_key` before, if it is new */
    enum bus_queue_type queue_type; /* with declare_queue */
    unsigned defer_s;               /* BUS_DEFER: seconds until it goes on to sluice.submit */
};

/* Starts the thread; the broker need not be there. */
MUST_USE enum err_code bus_publisher_open(const struct bus_config *cfg,
                                          struct bus_publisher **ret_pub, struct err *err);
/* Lets what was published be confirmed for up to a second, then ends the rest with
 * ERR_BROKER_AWAY, and the thread. NULL is allowed. */
void bus_publisher_free(struct bus_publisher *pub);
DEFINE_AUTO(struct bus_publisher *, bus_publisher_free)

/* Queues a message. ERR_OK: done (if not NULL) is called exactly once, later. Otherwise never:
 * ERR_BROKER_AWAY, ERR_BROKER_BLOCKED, ERR_OVERLOADED (in_flight_max reached), ERR_TOO_LARGE. */
MUST_USE enum err_code bus_publish(struct bus_publisher *pub, const struct bus_message *message,
                                   bus_confirm_fn *done, void *arg, struct err *err);
/* Publishes and waits until deadline_ms (clock_mono_ms); the errors of both. */
MUST_USE enum err_code bus_publish_wait(struct bus_publisher *pub,
                                        const struct bus_message *message, int64_t deadline_ms,
                                        struct err *err);

enum bus_state bus_publisher_state(struct bus_publisher *pub);
/* Waits until it is up (not blocked); false at deadline_ms. */
bool bus_publisher_wait_up(struct bus_publisher *pub, int64_t deadline_ms);
/* fn is called whenever messages can be sent (again): soon if that is so now, and each time that a
 * connection came up or the broker takes messages again. One fn; NULL takes it away. */
void bus_publisher_on_up(struct bus_publisher *pub, void (*fn)(void *arg), void *arg);
void bus_publisher_stats(struct bus_publisher *pub, struct bus_stats *ret_stats);

/* The calls below wait until deadline_ms (clock_mono_ms). All: ERR_BROKER_AWAY, ERR_BROKER_BLOCKED,
 * ERR_TIMEOUT, ERR_BROKER (refused; the text says why). */

/* Declares a submission queue and its binding now (bus_publish does it when needed). */
MUST_USE enum err_code bus_queue_declare(struct bus_publisher *pub, const char *name,
                                         enum bus_queue_type type, int64_t deadline_ms,
                                         struct err *err);
/* if_empty: ERR_IN_USE when messages are ready in it. One that arrives between the look and the
 * deletion goes with the queue: let nobody publish to it before. A queue that is not there is
 * deleted already. */
MUST_USE enum err_code bus_queue_delete(struct bus_publisher *pub, const char *name, bool if_empty,
                                        int64_t deadline_ms, struct err *err);
/* Messages ready, and consumers; each ret may be NULL. ERR_NOT_FOUND. */
MUST_USE enum err_code bus_queue_depth(struct bus_publisher *pub, const char *name,
                                       int64_t deadline_ms, uint32_t *ret_messages,
                                       uint32_t *ret_consumers, struct err *err);
/* Whether some connection holds this exclusive queue: proof of life. An error is neither answer:
 * the look failed. */
MUST_USE enum err_code bus_queue_held(struct bus_publisher *pub, const char *name,
                                      int64_t deadline_ms, bool *ret_held, struct err *err);

#endif
