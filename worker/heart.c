/* SPDX-License-Identifier: MIT */
#include "worker/heart.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/service/watchdog.h"
#include "worker/stats.h"

#include <pthread.h>

#define SLACK_MS 30000 /* beyond the longest that one beat may take */

struct heart {
    struct heart_setup setup;
    struct beat *beat;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool stop;
    bool failing; /* the last beat was not written: logged once */
    struct uuid *formers;
    size_t former_count;
};

int64_t witness_latest_ms(struct witness *witness, uint32_t generation, int64_t last_frame_ms)
{
    int64_t beat_ms = atomic_load(&witness->beat_ms);
    int64_t frame_ms = atomic_load(&witness->frame_ms);
    if (generation != 0 && generation == atomic_load(&witness->beaten_generation) &&
        last_frame_ms > frame_ms) {
        frame_ms = last_frame_ms;
        atomic_store(&witness->frame_ms, frame_ms);
    }
    return beat_ms > frame_ms ? beat_ms : frame_ms;
}

/* Under the lock. */
static struct uuid *find_former(struct heart *heart, const struct uuid *former)
{
    for (size_t i = 0; i < heart->former_count; i++) {
        if (uuid_eq(&heart->formers[i], former))
            return &heart->formers[i];
    }
    return NULL;
}

/* One that is not live any more has lost its jobs, or may any time: we do not keep them. */
static enum err_code beat_formers(struct heart *heart, struct err *err)
{
    for (size_t i = 0;;) {
        pthread_mutex_lock(&heart->lock);
        bool more = i < heart->former_count;
        struct uuid former = more ? heart->formers[i] : (struct uuid){0};
        pthread_mutex_unlock(&heart->lock);
        if (!more)
            return ERR_OK;
        enum err_code rc = beat_write_former(heart->beat, &former, heart->setup.lease_ms, err);
        if (rc != ERR_OK && rc != ERR_FENCED)
            return rc;
        if (rc == ERR_OK) {
            i++;
            continue;
        }
        err_clear(err);
        pthread_mutex_lock(&heart->lock);
        if (i < heart->former_count)
            heart->formers[i] = heart->formers[--heart->former_count];
        pthread_mutex_unlock(&heart->lock);
    }
}

static enum err_code beat_once(struct heart *heart, struct err *err)
{
    const struct heart_setup *setup = &heart->setup;
    int64_t start_ms = clock_boot_ms();
    uint32_t generation = 0;
    if (bus_consumer_state(setup->consumer) != BUS_DOWN)
        generation = bus_consumer_generation(setup->consumer);
    pthread_mutex_lock(&heart->lock);
    bool alone = heart->former_count == 0;
    pthread_mutex_unlock(&heart->lock);
    enum err_code rc = beat_write(heart->beat, setup->busy(setup->arg), err);
    if (rc == ERR_OK && !alone)
        rc = beat_formers(heart, err);
    if (rc == ERR_DB_AWAY)
        store_renew(setup->pool);
    if (rc == ERR_OK) {
        atomic_store(&setup->witness->beat_ms, start_ms);
        if (generation && alone)
            atomic_store(&setup->witness->beaten_generation, generation);
        metric_count(&stat_beats, 0, 1);
        setup->beaten(setup->arg);
    }
    return rc;
}

static void log_beat(struct heart *heart, enum err_code rc, const struct err *err)
{
    if (rc == ERR_OK && heart->failing)
        log_event(LOG_INFO, "worker.beat.back");
    else if (rc != ERR_OK && !heart->failing)
        log_err("worker.beat.failed", err);
    heart->failing = rc != ERR_OK;
}

/* A database that is away, or slow, is no reason to start anew. */
static int64_t longest_turn_ms(const struct heart_setup *setup)
{
    const struct store_config *store = &setup->store;
    return (int64_t)setup->beat_ms + 2 * (int64_t)store->connect_timeout_ms +
           2 * (int64_t)store->query_timeout_ms + SLACK_MS;
}

static void *heart_main(void *arg)
{
    struct heart *heart = arg;
    struct watchdog_loop loop = {.name = "worker.heart"};
    enum err_code rc = ERR_OK;
    int64_t next_ms = clock_mono_ms();
    pthread_mutex_lock(&heart->lock);
    while (!heart->stop && rc != ERR_FENCED) {
        int64_t soon_ms = clock_mono_ms() + heart->setup.beat_ms / 4;
        next_ms += heart->setup.beat_ms;
        watchdog_turn(&loop, longest_turn_ms(&heart->setup));
        /* A beat that failed, or took longer than the interval, is not waited for that long again:
         * the runs' time runs out. */
        if (rc != ERR_OK || next_ms < soon_ms)
            next_ms = soon_ms;
        while (!heart->stop && clock_cond_wait_until(&heart->news, &heart->lock, next_ms))
            ;
        if (heart->stop)
            break;
        pthread_mutex_unlock(&heart->lock);
        struct err err = {0};
        rc = beat_once(heart, &err);
        log_beat(heart, rc, &err);
        pthread_mutex_lock(&heart->lock);
    }
    pthread_mutex_unlock(&heart->lock);
    watchdog_leave(&loop);
    if (rc == ERR_FENCED)
        heart->setup.fenced(heart->setup.arg);
    store_thread_end();
    return NULL;
}

static enum err_code take_formers(struct heart *heart, const struct heart_setup *setup,
                                  struct err *err)
{
    if (setup->former_count == 0)
        return ERR_OK;
    heart->formers = calloc(setup->former_count, sizeof(*heart->formers));
    if (!heart->formers)
        return err_set(err, ERR_NOMEM, "no memory for %zu former incarnations",
                       setup->former_count);
    memcpy(heart->formers, setup->formers, setup->former_count * sizeof(*heart->formers));
    heart->former_count = setup->former_count;
    return ERR_OK;
}

static void heart_free(struct heart *heart)
{
    pthread_mutex_destroy(&heart->lock);
    pthread_cond_destroy(&heart->news);
    beat_free(heart->beat);
    free(heart->formers);
    free(heart);
}

enum err_code heart_start(const struct heart_setup *setup, struct heart **ret_heart,
                          struct err *err)
{
    struct heart *heart = calloc(1, sizeof(*heart));
    if (!heart)
        return err_set(err, ERR_NOMEM, "no memory for the beat");
    heart->setup = *setup;
    pthread_mutex_init(&heart->lock, NULL);
    clock_cond_init(&heart->news);
    enum err_code rc = beat_open(&setup->store, &setup->worker, &heart->beat, err);
    if (rc == ERR_OK)
        rc = take_formers(heart, setup, err);
    if (rc == ERR_OK)
        rc = beat_once(heart, err);
    int failed = rc ? 0 : pthread_create(&heart->thread, NULL, heart_main, heart);
    if (failed)
        rc = err_set_errno(err, ERR_NOMEM, failed, "cannot start the beat's thread");
    if (rc)
        heart_free(heart);
    else
        *ret_heart = heart;
    return rc;
}

bool heart_keeps(struct heart *heart, const struct uuid *former)
{
    pthread_mutex_lock(&heart->lock);
    bool keeps = find_former(heart, former) != NULL;
    pthread_mutex_unlock(&heart->lock);
    return keeps;
}

void heart_release(struct heart *heart)
{
    pthread_mutex_lock(&heart->lock);
    heart->former_count = 0;
    pthread_mutex_unlock(&heart->lock);
}

void heart_stop(struct heart *heart)
{
    if (!heart)
        return;
    pthread_mutex_lock(&heart->lock);
    heart->stop = true;
    pthread_cond_signal(&heart->news);
    pthread_mutex_unlock(&heart->lock);
    pthread_join(heart->thread, NULL);
    heart_free(heart);
}
