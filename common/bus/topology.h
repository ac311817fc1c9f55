/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BUS_TOPOLOGY_H
#define COMMON_BUS_TOPOLOGY_H

/* topology: the rows of topology.def as the broker's library wants them (inside bus/ only).
 * Threads: immutable. Memory: a table of arguments lies in its caller. */

#include "common/bus/bus.h"

#include <amqp.h>

struct topology_exchange {
    const char *name, *type, *alternate;
};

struct topology_queue {
    const char *name;   /* "" if it is completed by the caller */
    bool type_is_given; /* else `type` */
    enum bus_queue_type type;
    bool exclusive;
    enum bus_exchange exchange;
};

#define TOPOLOGY_ARGS_MAX 8

struct topology_args {
    amqp_table_entry_t entries[TOPOLOGY_ARGS_MAX];
    amqp_table_t table;
};

/* What a queue's arguments depend on. */
struct topology_choice {
    enum bus_queue_type type;
    unsigned delivery_limit, ttl_s;
};

const struct topology_exchange *topology_exchange(enum bus_exchange exchange);
const struct topology_queue *topology_queue(enum bus_queue_kind kind);
void topology_exchange_args(enum bus_exchange exchange, struct topology_args *ret_args);
/* The type that counts for this kind of queue is put into the arguments, too. */
void topology_queue_args(enum bus_queue_kind kind, const struct topology_choice *choice,
                         struct topology_args *ret_args);
/* Declares all exchanges with a fixed name, and the durable queues with a fixed name, with their
 * bindings; waits for each answer. channel is opened and closed. What exists with other properties
 * is logged and used as it is. */
MUST_USE enum err_code topology_declare(amqp_connection_state_t amqp, amqp_channel_t channel,
                                        struct err *err);
/* What went wrong, as text. */
const char *topology_reply_text(const amqp_rpc_reply_t *reply, char *ret_text, size_t size);

#endif
