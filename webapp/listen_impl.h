/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_LISTEN_IMPL_H
#define WEBAPP_LISTEN_IMPL_H

/* listen_impl: the ring of events and one listener. For the files of listen only.
 * Threads: what the lock guards is said below. */

#include "common/store/feed_store.h"
#include "webapp/allowance.h"
#include "webapp/listen.h"

#include <pthread.h>

#define RING_EVENTS 8192
#define RING_BYTES ((size_t)8 * 1024 * 1024)
#define CARRY_LIMIT ((size_t)256 * 1024)
#define CARRY_ENOUGH ((size_t)16 * 1024) /* no more is prepared for a stream at once */
#define BACKLOG_ROWS 128

/* ---- the ring -------------------------------------------------------------------------------- */

struct ring_event {
    uint64_t seq;
    char tenant[TENANT_SIZE];
    char queue[QUEUE_NAME_SIZE];
    char kind[LISTEN_KIND_SIZE];
    struct uuid job;
    enum job_state to;
    char *frame; /* as it is sent */
    size_t frame_len;
};

struct ring { /* all zero at first */
    struct ring_event *events;
    size_t first; /* index of the oldest */
    size_t count;
    size_t bytes;
    uint64_t tail; /* events up to this number are not in it */
};

/* false: no memory, or an event that is too large. Older ones give way. */
MUST_USE bool ring_add(struct ring *ring, const struct feed_event *event);
void ring_clear(struct ring *ring, uint64_t tail);
void ring_done(struct ring *ring);
/* The oldest event with a higher number, as a place for ring_at(); ring->count: none. */
size_t ring_after(const struct ring *ring, uint64_t seq);
const struct ring_event *ring_at(const struct ring *ring, size_t place);

/* The event as it is sent; false: no memory. */
MUST_USE bool listen_frame(const struct feed_event *event, struct buf *out);
bool listen_matches(const struct listen_filter *filter, const struct ring_event *event);
/* What a filter looks at. */
void ring_event_of(const struct feed_event *event, struct ring_event *ret_event);

/* ---- a listener ------------------------------------------------------------------------------ */

struct listener { /* all of it: lock, except what is said to be the thread's */
    struct listener *next;
    struct listeners *all;
    struct MHD_Connection *mhd;
    struct allowance_hold hold;
    struct listen_filter filter; /* never changes */
    struct identity who;         /* never changes */
    uint64_t seq;                /* he has all up to here that he is to have */
    bool live;                   /* he takes from the ring; before that: from the database */
    bool suspended;              /* the connection waits */
    bool busy;                   /* the thread reads for him without the lock */
    bool gone;                   /* the connection has ended: free it when it is not busy */
    bool finished;               /* nothing comes behind what is carried */
    bool beat;                   /* say something though nothing happened */
    uint64_t turn;               /* when he was read for; a count */
    int64_t written_ms;
    struct buf carry; /* prepared and not sent yet; empty while he waits */
    size_t sent;      /* of carry */
};

struct listeners {
    struct web *web;
    pthread_mutex_t lock;
    pthread_cond_t wake;    /* of the thread */
    pthread_cond_t begun;   /* of those who came before the mark was known */
    struct listener *first; /* lock; the same down to counters */
    size_t count;
    struct ring ring;
    uint64_t safe; /* the ring is filled up to here; only the thread writes it */
    uint64_t turn;
    bool is_begun, roused, stopping;
    int64_t checked_ms; /* when it was seen whether tokens and keys hold */
    struct listen_counters counters;
    struct feed_mark mark; /* the thread's */
    pthread_t thread;
    bool has_thread;
};

/* Prepares something to be sent, from the ring; false: there is nothing, or it is not in the ring.
 * The lock is held. */
bool listener_fill(struct listener *listener);
void listener_resume(struct listener *listener); /* the lock is held */
void listener_free(struct listener *listener);
/* The last words. The lock is held. */
void listener_drop(struct listener *listener, const char *reason);

#endif
