/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BUS_INSPECT_H
#define COMMON_BUS_INSPECT_H

/* inspect: a look at the broker that changes nothing there, for diagnosis: unlike a publisher or a
 * consumer it declares none of our exchanges and queues. One connection, each call waits for its
 * answer (bus_config.connect_timeout_ms).
 * Threads: owner. Memory: bus_inspector_free() frees, and its own queues go with the connection.
 * Errors of every call: ERR_BROKER_AWAY. */

#include "common/bus/bus.h"

struct bus_inspector;

struct bus_looked {
    enum { BUS_LOOK_SAME, BUS_LOOK_MISSING, BUS_LOOK_OTHER /* other properties */ } look;
    uint32_t messages; /* of queues */
    uint32_t consumers;
    char text[256]; /* of the broker, unless it is the same */
};

/* Texts of cfg are read in this call only; defaults are not filled in; of several hosts the first
 * is asked. ERR_BROKER_AWAY. */
MUST_USE enum err_code bus_inspector_open(const struct bus_config *cfg,
                                          struct bus_inspector **ret_inspector, struct err *err);
void bus_inspector_free(struct bus_inspector *inspector); /* NULL is allowed */
DEFINE_AUTO(struct bus_inspector *, bus_inspector_free)
const char *bus_inspector_version(const struct bus_inspector *inspector); /* of the broker */

/* Whether it is there as topology.def says. One with a fixed name. */
MUST_USE enum err_code bus_inspect_exchange(struct bus_inspector *inspector,
                                            enum bus_exchange exchange,
                                            struct bus_looked *ret_looked, struct err *err);
MUST_USE enum err_code bus_inspect_queue(struct bus_inspector *inspector, enum bus_queue_kind kind,
                                         const char *name, enum bus_queue_type type,
                                         struct bus_looked *ret_looked, struct err *err);
/* A queue of this connection alone, bound with its name as key; what is rejected in it goes to
 * sluice.dead, if it keeps its dead, else nowhere. */
MUST_USE enum err_code bus_inspect_own_queue(struct bus_inspector *inspector, const char *name,
                                             enum bus_exchange exchange, bool keeps_dead,
                                             struct err *err);

struct bus_probe {
    enum bus_exchange exchange;
    const char *routing_key;
    const char *message_id;
    struct sv body;
    bool brief; /* it expires soon where nobody takes it */
};
/* Waits for the confirmation. *ret_routed: some queue has it, if only by the alternate exchange.
 * ERR_BROKER_BLOCKED: said once; what is published after it waits for its time. */
MUST_USE enum err_code bus_inspect_publish(struct bus_inspector *inspector,
                                           const struct bus_probe *probe, bool *ret_routed,
                                           struct err *err);
/* Takes one message of an own queue, if there is one: rejects it. */
MUST_USE enum err_code bus_inspect_take(struct bus_inspector *inspector, const char *queue,
                                        bool *ret_found, struct err *err);

#endif
