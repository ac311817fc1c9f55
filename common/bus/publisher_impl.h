/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BUS_PUBLISHER_IMPL_H
#define COMMON_BUS_PUBLISHER_IMPL_H

/* publisher_impl: what the files of the publisher share (inside bus/ only).
 * Threads: what is below `lock` is locked, the rest belongs to the publisher's thread. */

#include "common/bus/call.h"
#include "common/bus/publisher.h"

#define KNOWN_BUCKETS 256

/* A message from bus_publish() until its end; its texts follow it in the same allocation. */
struct outgoing {
    struct outgoing *next;
    enum bus_exchange exchange;
    char routing_key[BUS_NAME_SIZE];
    char *message_id, *traceparent; /* or NULL */
    char *body;
    size_t body_bytes;
    bool transient, declare_queue;
    enum bus_queue_type queue_type;
    unsigned defer_s;
    int64_t deadline_ms;
    bus_confirm_fn *done;
    void *arg;
};

struct outgoing_list {
    struct outgoing *first, **end;
};

/* A queue that this publisher declares before it publishes to it. */
struct known_queue {
    struct known_queue *next;
    char name[BUS_NAME_SIZE];
    const char *key;   /* its binding key */
    uint32_t declared; /* the generation of the connection that declared it; 0: none */
    int64_t refresh_ms;
    bool asked, mismatch_told;
    struct bus_publisher *pub;
};

/* A call that some thread waits for. */
struct question {
    struct question *next;
    struct call call;
    const char *key;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    unsigned refs; /* of the asker and of the publisher's thread */
    bool done;
    struct call_result result;
    char text[256];
};

struct bus_publisher {
    struct conn conn;
    struct calls calls;
    pthread_t thread;
    struct known_queue *known[KNOWN_BUCKETS];
    struct outgoing_list ready; /* not sent yet */
    struct outgoing **sent;     /* by delivery tag, modulo sent_size; NULL: confirmed */
    uint64_t oldest_tag, next_tag;
    size_t sent_size;
    bool told_up, want_write;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* state */
    enum bus_state state;
    struct outgoing_list given;
    unsigned in_flight; /* from bus_publish() until done */
    struct question *questions;
    void (*on_up)(void *arg);
    void *on_up_arg;
    bool on_up_new;
    struct bus_stats stats;
};

/* publisher_send.c; all on the publisher's thread */
void publisher_send(struct bus_publisher *pub);
void publisher_finish(struct bus_publisher *pub, struct outgoing *message, enum err_code rc);
void publisher_fail_ready(struct bus_publisher *pub, enum err_code rc);
void publisher_fail_sent(struct bus_publisher *pub, enum err_code rc);
void publisher_on_confirm(struct bus_publisher *pub, const amqp_method_t *method);
/* Ends what is too old; returns the next deadline, or INT64_MAX. */
int64_t publisher_tick(struct bus_publisher *pub, int64_t now_ms);

/* publisher_known.c: true if what the message goes to is declared; if not, sees to it. */
bool publisher_is_declared(struct bus_publisher *pub, const struct outgoing *message);
void publisher_forget_queue(struct bus_publisher *pub, const char *name);
void publisher_free_known(struct bus_publisher *pub);

/* publisher_ask.c */
void publisher_start_questions(struct bus_publisher *pub);
void publisher_refuse_questions(struct bus_publisher *pub, enum err_code rc);

#endif
