/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BUS_CONSUMER_IMPL_H
#define COMMON_BUS_CONSUMER_IMPL_H

/* consumer_impl: what the files of the consumer share (inside bus/ only).
 * Threads: what is below `lock` is locked, the rest belongs to the consumer's thread. */

#include "common/bus/call.h"
#include "common/bus/consumer.h"

#define INBOX_KEYS_MAX 8

/* Where settlements go; deliveries keep it alive when the consumer is gone. */
struct mailbox {
    pthread_mutex_t lock;
    struct delivery *first, **end;
    int wake_fd; /* the consumer's; -1 once it is gone */
    unsigned refs;
};

struct delivery {
    struct bus_delivery pub; /* first: what the receiver knows is a pointer to it */
    struct delivery *next;
    struct mailbox *mailbox;
    enum bus_settle how;
    bool settled; /* under the mailbox's lock */
    bool lost;    /* its channel is gone */
    uint64_t tag;
    int64_t given_ms;
    char *bytes;
    size_t capacity;
    uint64_t size_due, size_read; /* while it arrives */
};

enum channel_state { CHANNEL_CLOSED, CHANNEL_OPENING, CHANNEL_READY, CHANNEL_CLOSING };

struct channel {
    enum channel_state state;
    struct delivery *arriving; /* its frames come in */
    struct delivery *held;     /* given to the receiver */
};

struct bus_consumer {
    struct conn conn;
    struct calls calls;
    pthread_t thread;
    struct bus_consumer_setup setup; /* its texts are the copies below */
    char queue[BUS_NAME_SIZE], binding_key[BUS_NAME_SIZE], inbox_name[BUS_NAME_SIZE];
    char keys[INBOX_KEYS_MAX][BUS_NAME_SIZE];
    const char *key_list[INBOX_KEYS_MAX];
    const char *queue_key;
    struct mailbox *mailbox;
    struct channel inbox;
    struct channel slots[BUS_CHANNELS_MAX];
    unsigned slots_active;  /* not CHANNEL_CLOSED and not CHANNEL_CLOSING */
    unsigned slots_opening; /* CHANNEL_OPENING */
    unsigned slots_used;    /* those from here on were never opened on this connection */
    bool told_up, inbox_ready, inbox_asked, queue_ready, queue_asked;
    bool locked_told, mismatch_told, capped_told, trouble_told;
    int64_t inbox_retry_ms, queue_retry_ms, refresh_ms;
    bool probe_asked; /* one at a time */
    int64_t probe_due_ms;
    int64_t asked_ms;   /* when the broker was last asked for the inbox: before it was sent */
    int64_t vouched_ms; /* the same, of the last question that was answered */

    atomic_uint wanted;
    atomic_int state;
    atomic_uint generation;
    _Atomic(int64_t) last_frame_ms;
    pthread_mutex_t lock;
    struct bus_stats stats;
};

/* delivery.c */
MUST_USE struct mailbox *mailbox_new(int wake_fd);
void mailbox_close(struct mailbox *mailbox); /* by the consumer: what is in it is freed */
struct delivery *mailbox_take(struct mailbox *mailbox);
MUST_USE struct delivery *delivery_new(struct mailbox *mailbox);
void delivery_free(struct delivery *delivery);
bool delivery_is_settled(struct delivery *delivery);
void delivery_set_method(struct delivery *delivery, const amqp_basic_deliver_t *method);
/* false: there is no memory for its body. */
MUST_USE bool delivery_set_header(struct delivery *delivery, const amqp_frame_t *frame);
void delivery_add_body(struct delivery *delivery, amqp_bytes_t fragment);
bool delivery_is_whole(const struct delivery *delivery);

/* consumer_channels.c; all on the consumer's thread */
void consumer_on_frame(void *arg, const amqp_frame_t *frame);
void consumer_adjust(struct bus_consumer *consumer);
void consumer_settle(struct bus_consumer *consumer);
void consumer_open_channel(struct bus_consumer *consumer, struct channel *channel,
                           const char *queue);
void consumer_drop_channels(struct bus_consumer *consumer, bool tell);

/* consumer_declare.c: the inbox and the queue: declared, and again when they vanish. */
void consumer_declare(struct bus_consumer *consumer, int64_t now_ms);
int64_t consumer_declare_due(const struct bus_consumer *consumer);
void consumer_inbox_gone(struct bus_consumer *consumer, const char *why);
void consumer_queue_gone(struct bus_consumer *consumer, const char *why);
/* Asks for the inbox when it is time; the answer is a frame like any other. */
void consumer_probe(struct bus_consumer *consumer, int64_t now_ms);

#endif
