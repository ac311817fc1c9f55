/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SLOTS_BODY_H
#define WORKER_SLOTS_BODY_H

/* slots_body: what slots.c (the whole) and slot.c (one of them) share. Everything in here is read
 * and written under slots.lock, but for what is said otherwise.
 * Threads: locked. */

#include "worker/slots.h"

#include <pthread.h>

struct slot {
    struct slots *all;
    pthread_t thread;
    bool started;
    pthread_cond_t news;
    bool busy;
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

struct slots {
    struct slots_setup setup;
    pthread_mutex_t channels_lock; /* taken before lock: keeps two set_channels in their order */
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t idle;
    bool receive;
    bool stop;
    unsigned busy;
    unsigned standing;       /* mail for all, also for what begins later */
    struct adopted *adopted; /* runs that wait for a thread */
    unsigned adopted_count;
    struct bus_delivery **queue; /* at most count of them; a list, oldest first */
    unsigned queue_count;
    struct slot *items;
};

#endif
