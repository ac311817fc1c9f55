/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SLOTS_BODY_H
#define WORKER_SLOTS_BODY_H

/* slots_body: what slots.c (the whole), slots_work.c (who does what next) and slot.c (one of them)
 * share. Everything in here is read and written under slots.lock, but for what is said otherwise.
 * Threads: locked. */

#include "worker/ahead.h"
#include "worker/slots.h"

#include <pthread.h>

struct slot {
    struct slots *all;
    pthread_t thread;
    bool started;
    pthread_cond_t news;
    bool woken;         /* it rested and shall look for work */
    struct slot *below; /* of those that rest */
    bool busy;
    bool working; /* and counted as such; false while it finishes, or gives back */
    int64_t since_ms;
    void *adopted;
    struct bus_delivery *delivery;
    bool delivery_lost; /* or there is none */
    bool holds;         /* job is set */
    struct uuid job;
    uint64_t fence;
    unsigned mail;
    struct runner_record record;
};

struct adopted {
    void *work;
    struct uuid job;
    uint64_t fence;
};

struct waiting {
    struct bus_delivery *delivery;
    int64_t due_ms; /* it is given back then; set aside: looked at again */
};

struct slots {
    struct slots_setup setup;
    pthread_mutex_t channels_lock; /* taken before lock: keeps two set_channels in their order */
    bool told_ahead;               /* under channels_lock */
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct slot *resting; /* the last one to come is the first one to be woken */
    struct slot *watcher; /* rests, too, but looks again when something is due; woken last */
    bool receive;
    bool stop;
    unsigned busy;
    unsigned working;
    unsigned standing;       /* mail for all, also for what begins later */
    struct adopted *adopted; /* runs that wait for a thread */
    unsigned adopted_count;
    struct waiting *queue; /* a list, oldest first */
    unsigned queue_count;
    struct waiting *aside; /* a list, in order of due_ms */
    unsigned aside_count;
    struct ahead ahead;
    bool growing, grown;    /* threads for setup.ahead are being started; are there */
    bool below;             /* fewer than count deliveries are here ... */
    int64_t below_since_ms; /* ... since then */
    int64_t rest_ms;        /* how long that was the last time */
    unsigned item_count;    /* setup.threads + setup.ahead */
    struct slot *items;
};

/* slots_work.c; under the lock, but for the first two */
void *slots_thread_main(void *arg);
void slots_tell_channels(struct slots *all);
void slots_wake_one(struct slots *all);
void slots_wake_all(struct slots *all);
/* After a change of what is busy, at work or waiting. */
void slots_count(struct slots *all);
/* The slot's job does not count as one at work any more. */
void slots_make_room(struct slot *slot);

/* slots.c; under the lock: takes the item at `at` out of the list. */
struct bus_delivery *slots_take_out(struct waiting *list, unsigned *count, unsigned at);
/* slots.c: the threads from .. to - 1. */
MUST_USE enum err_code slots_start_threads(struct slots *all, unsigned from, unsigned to,
                                           struct err *err);

#endif
