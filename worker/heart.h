/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HEART_H
#define WORKER_HEART_H

/* heart: the worker's beat, and how long its jobs may live without a further sign of life.
 *
 * Two witnesses say that nobody may take our jobs: our beat changes in the database, and the broker
 * holds our exclusive queue. The beat thread writes the one and notes when (witness); the thread
 * that pings the runner reads those notes only, so it hangs on neither (docs/ownership.md).
 * Threads: locked. */

#include "common/bus/consumer.h"
#include "common/store/worker_store.h"

#include <stdatomic.h>

/* When each witness last spoke for us, on the monotonic clock. */
struct witness {
    _Atomic int64_t beat_ms;            /* start of the last beat that was committed; 0: none */
    _Atomic uint32_t beaten_generation; /* of the broker connection that stood at that beat */
    _Atomic int64_t frame_ms;           /* last frame on a connection that saw a beat */
};

/* The later of both: a frame counts only if a beat was committed since its connection opened, so
 * that a connection which flaps between two looks of the fleet watch grants nothing. */
int64_t witness_latest_ms(struct witness *witness, uint32_t generation, int64_t last_frame_ms);

struct heart;

struct heart_setup {
    struct store_config store;
    struct uuid worker;
    unsigned beat_ms;
    struct witness *witness;
    struct bus_consumer *consumer;
    void *arg;
    unsigned (*busy)(void *arg);
    /* The row is no longer live: final for this incarnation. Called once. */
    void (*fenced)(void *arg);
};

/* Writes the first beat, then starts the thread. */
MUST_USE enum err_code heart_start(const struct heart_setup *setup, struct heart **ret_heart,
                                   struct err *err);
void heart_stop(struct heart *heart); /* NULL is allowed */
DEFINE_AUTO(struct heart *, heart_stop)

#endif
