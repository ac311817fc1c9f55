/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BUS_CONN_H
#define COMMON_BUS_CONN_H

/* conn: one connection to the broker, made again and again (inside bus/ only). Writing never
 * reports: a connection that failed is `broken`, further writes do nothing, and the thread's loop
 * sees it once per turn.
 * Threads: owner; conn_wake() and conn_stop() any. Memory: the configuration is copied. */

#include "common/base/hosts.h"
#include "common/bus/topology.h"

#include <pthread.h>
#include <stdatomic.h>

/* Channels: one of the owner's, those of calls (call.h), those of deliveries. */
#define CHANNEL_MAIN 1
#define CHANNEL_CALLS 2
#define CHANNEL_CALLS_COUNT 32
#define CHANNEL_SLOTS (CHANNEL_CALLS + CHANNEL_CALLS_COUNT)

struct conn {
    struct bus_config cfg;
    char *texts;                  /* what the pointers of cfg point at */
    struct host node;             /* of cfg.host, the one that is tried or connected */
    amqp_connection_state_t amqp; /* NULL: not connected */
    int fd;                       /* a duplicate of the socket, ours to poll and to shut down */
    pthread_mutex_t fd_lock;      /* fd and opening, against conn_stop() */
    bool opening;                 /* not logged in yet: conn_stop() may cut it */
    int wake_fd;
    atomic_bool stop; /* not beside flags of the thread: these may be read as one word */
    int64_t heard_ms; /* clock_boot_ms() when the broker was surely heard: not later than it was */
    int64_t empty_ms; /* clock_boot_ms() when the socket was seen empty last */
    int64_t told_ms;  /* when the log was told last that we wait; 0: not yet */
    int64_t opened_ms;
    unsigned attempts, channel_max;
    unsigned nodes, node_at; /* how many there are; counts those that were tried */
    uint32_t generation;     /* counts connections */
    bool broken, blocked;
    bool more; /* not all that has come was read; TLS may hold it where poll() does not see it */
    char broken_text[256];
};

typedef void conn_frame_fn(void *arg, const amqp_frame_t *frame);

MUST_USE enum err_code conn_init(struct conn *conn, const struct bus_config *cfg, struct err *err);
/* conn_config.c: the part of conn_init() that takes its texts along, in conn->texts. */
MUST_USE enum err_code conn_copy_config(struct conn *conn, const struct bus_config *from,
                                        struct err *err);
void conn_done(struct conn *conn);
/* Tries until it is connected, logged in, and the topology is declared; false: stop was asked. */
MUST_USE bool conn_open(struct conn *conn);
/* politely: what was written before is sure to be read. */
void conn_close(struct conn *conn, bool politely);
/* A broken one: logs why, and closes it. */
void conn_lost(struct conn *conn);
/* Waits for bytes, a wake, timeout_ms, and (want_write) room for a batch; true: there is room. */
bool conn_wait(struct conn *conn, int timeout_ms, bool want_write);
bool conn_writable(struct conn *conn);
/* Hands every frame that has arrived to fn; the connection's own are handled here. */
void conn_read(struct conn *conn, conn_frame_fn *fn, void *arg);
void conn_send(struct conn *conn, amqp_channel_t channel, amqp_method_number_t id, void *method);
void conn_close_channel(struct conn *conn, amqp_channel_t channel);
void conn_break(struct conn *conn, const char *text);
void conn_wake(struct conn *conn);
void conn_stop(struct conn *conn);

#endif
