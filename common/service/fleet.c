/* SPDX-License-Identifier: MIT */
#include "common/service/fleet.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/service/fleet_judge.h"

#include <pthread.h>

struct fleet {
    struct fleet_config cfg;
    struct fleet_judge judge;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool stop;
};

static bool stopping(struct fleet *fleet)
{
    pthread_mutex_lock(&fleet->lock);
    bool stop = fleet->stop;
    pthread_mutex_unlock(&fleet->lock);
    return stop;
}

static void declare(struct fleet *fleet, const struct worker_beat *worker)
{
    char id[UUID_TEXT_SIZE];
    struct err err = {0};
    enum err_code rc = worker_store_declare_dead(fleet->cfg.store, &worker->id, worker->beat, &err);
    if (rc == ERR_OK)
        log_event(LOG_WARN, "fleet.worker.dead", LOG_S("worker", uuid_text(&worker->id, id)),
                  LOG_U("beat", worker->beat), LOG_U("lease_ms", fleet->cfg.lease_ms));
    else /* somebody else was first, or it has beaten, or the database is away */
        fleet_judge_failed(&fleet->judge, &worker->id);
}

static void ask(struct fleet *fleet, const struct worker_beat *worker)
{
    char id[UUID_TEXT_SIZE];
    char queue[BUS_NAME_SIZE];
    bool held = false;
    struct err err = {0};
    (void)bus_worker_queue(uuid_text(&worker->id, id), queue);
    enum err_code rc = bus_queue_held(fleet->cfg.publisher, queue,
                                      clock_mono_ms() + fleet->cfg.lease_ms / 4, &held, &err);
    if (rc)
        fleet_judge_failed(&fleet->judge, &worker->id);
    else if (fleet_judge_held(&fleet->judge, &worker->id, held, clock_mono_ms()))
        declare(fleet, worker);
}

static void look(struct fleet *fleet)
{
    struct worker_beat *beats = NULL;
    size_t count = 0;
    struct err err = {0};
    fleet_judge_begin(&fleet->judge, clock_mono_ms());
    enum err_code rc = worker_store_beats(fleet->cfg.store, &beats, &count, &err);
    if (rc) {
        fleet_judge_failed(&fleet->judge, NULL);
        return;
    }
    for (size_t i = 0; i < count && !stopping(fleet); i++) {
        bool silent = false;
        if (fleet_judge_beat(&fleet->judge, &beats[i].id, beats[i].beat, &silent, &err))
            break;
        if (silent)
            ask(fleet, &beats[i]);
    }
    fleet_judge_forget(&fleet->judge);
    free(beats);
}

static void *fleet_main(void *arg)
{
    struct fleet *fleet = arg;
    while (!stopping(fleet)) {
        int64_t next_ms = clock_mono_ms() + fleet->cfg.beat_ms;
        look(fleet);
        pthread_mutex_lock(&fleet->lock);
        while (!fleet->stop && clock_cond_wait_until(&fleet->news, &fleet->lock, next_ms))
            ;
        pthread_mutex_unlock(&fleet->lock);
    }
    store_thread_end();
    return NULL;
}

enum err_code fleet_start(const struct fleet_config *cfg, struct fleet **ret_fleet, struct err *err)
{
    struct fleet *fleet = calloc(1, sizeof(*fleet));
    if (!fleet)
        return err_set(err, ERR_NOMEM, "no memory for the fleet watch");
    fleet->cfg = *cfg;
    fleet_judge_init(&fleet->judge, cfg->lease_ms);
    pthread_mutex_init(&fleet->lock, NULL);
    clock_cond_init(&fleet->news);
    int failed = pthread_create(&fleet->thread, NULL, fleet_main, fleet);
    if (failed) {
        free(fleet);
        return err_set_errno(err, ERR_NOMEM, failed, "cannot start the fleet watch");
    }
    *ret_fleet = fleet;
    return ERR_OK;
}

void fleet_stop(struct fleet *fleet)
{
    if (!fleet)
        return;
    pthread_mutex_lock(&fleet->lock);
    fleet->stop = true;
    pthread_cond_signal(&fleet->news);
    pthread_mutex_unlock(&fleet->lock);
    pthread_join(fleet->thread, NULL);
    fleet_judge_done(&fleet->judge);
    pthread_mutex_destroy(&fleet->lock);
    pthread_cond_destroy(&fleet->news);
    free(fleet);
}
