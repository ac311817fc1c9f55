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

static enum err_code beat_once(struct heart *heart, struct err *err)
{
    const struct heart_setup *setup = &heart->setup;
    int64_t start_ms = clock_mono_ms();
    uint32_t generation = 0;
    if (bus_consumer_state(setup->consumer) != BUS_DOWN)
        generation = bus_consumer_generation(setup->consumer);
    enum err_code rc = beat_write(heart->beat, setup->busy(setup->arg), err);
    if (rc == ERR_OK) {
        atomic_store(&setup->witness->beat_ms, start_ms);
        if (generation)
            atomic_store(&setup->witness->beaten_generation, generation);
        metric_count(&stat_beats, 0, 1);
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
        next_ms += heart->setup.beat_ms;
        watchdog_turn(&loop, longest_turn_ms(&heart->setup));
        if (next_ms < clock_mono_ms()) /* a beat took longer than the interval */
            next_ms = clock_mono_ms() + heart->setup.beat_ms / 4;
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

enum err_code heart_start(const struct heart_setup *setup, struct heart **ret_heart,
                          struct err *err)
{
    struct heart *heart = calloc(1, sizeof(*heart));
    if (!heart)
        return err_set(err, ERR_NOMEM, "no memory for the beat");
    heart->setup = *setup;
    enum err_code rc = beat_open(&setup->store, &setup->worker, &heart->beat, err);
    if (rc == ERR_OK)
        rc = beat_once(heart, err);
    if (rc != ERR_OK) {
        if (heart->beat)
            beat_free(heart->beat);
        free(heart);
        return rc;
    }
    pthread_mutex_init(&heart->lock, NULL);
    clock_cond_init(&heart->news);
    int failed = pthread_create(&heart->thread, NULL, heart_main, heart);
    if (failed) {
        beat_free(heart->beat);
        free(heart);
        return err_set_errno(err, ERR_NOMEM, failed, "cannot start the beat's thread");
    }
    *ret_heart = heart;
    return ERR_OK;
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
    pthread_mutex_destroy(&heart->lock);
    pthread_cond_destroy(&heart->news);
    beat_free(heart->beat);
    free(heart);
}
