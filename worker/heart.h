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

/* When each witness last spoke for us, by clock_boot_ms(): a host that was suspended has been
 * silent all that time. */
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
    struct store *pool; /* renewed when a beat fails: its reads may be of a former primary */
    struct uuid worker;
    unsigned beat_ms;
    struct witness *witness;
    struct bus_consumer *consumer;
    unsigned lease_ms;
    /* Rows of former incarnations whose runs we keep, until heart_release(): each gets its beat
     * with ours, and only all together are a sign of life, for theirs is the row that others look
     * at before they take such a run. freed by the caller, after heart_start(). */
    const struct uuid *formers;
    size_t former_count;
    void *arg;
    unsigned (*busy)(void *arg);
    void (*beaten)(void *arg); /* after each beat that was written */
    /* The row is no longer live: final for this incarnation. Called once. */
    void (*fenced)(void *arg);
};

/* Writes the first beat, then starts the thread. */
MUST_USE enum err_code heart_start(const struct heart_setup *setup, struct heart **ret_heart,
                                   struct err *err);
/* Whether that former incarnation is kept alive by us: nobody else takes its jobs meanwhile. */
bool heart_keeps(struct heart *heart, const struct uuid *former);
/* The jobs of the former ones are ours by the database now. From here on the broker is a witness,
 * too: it vouches for our own row only. */
void heart_release(struct heart *heart);
void heart_stop(struct heart *heart); /* NULL is allowed */
DEFINE_AUTO(struct heart *, heart_stop)

#endif
