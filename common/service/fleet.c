/* SPDX-License-Identifier: MIT */
#include "common/service/fleet.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/service/fleet_judge.h"
#include "common/service/fleet_wake.h"

#include <pthread.h>

struct fleet {
    struct fleet_config cfg;
    struct fleet_judge judge;
    struct bus_publisher *asker; /* publishes nothing */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool stop;
    unsigned shortest_ms, longest_ms; /* leases at the last look, ours among them */
};

static bool stopping(struct fleet *fleet)
{
    pthread_mutex_lock(&fleet->lock);
    bool stop = fleet->stop;
    pthread_mutex_unlock(&fleet->lock);
    return stop;
}

/* true: it is dead from now on. */
static bool declare(struct fleet *fleet, const struct worker_beat *worker)
{
    char id[UUID_TEXT_SIZE];
    struct err err = {0};
    enum err_code rc = worker_store_declare_dead(fleet->cfg.store, &worker->id, worker->beat, &err);
    if (rc == ERR_OK)
        log_event(LOG_WARN, "fleet.worker.dead", LOG_S("worker", uuid_text(&worker->id, id)),
                  LOG_U("beat", worker->beat),
                  LOG_U("lease_ms", worker->lease_ms > fleet->cfg.lease_ms ? worker->lease_ms
                                                                           : fleet->cfg.lease_ms));
    else /* somebody else was first, or it has beaten, or the database is away */
        fleet_judge_failed(&fleet->judge, &worker->id);
    return rc == ERR_OK;
}

static bool ask(struct fleet *fleet, const struct worker_beat *worker)
{
    char id[UUID_TEXT_SIZE];
    char queue[BUS_NAME_SIZE];
    bool held = false;
    struct err err = {0};
    (void)bus_worker_queue(uuid_text(&worker->id, id), queue);
    enum err_code rc =
        bus_queue_held(fleet->asker, queue, clock_mono_ms() + fleet->cfg.lease_ms / 4, &held, &err);
    if (rc)
        fleet_judge_failed(&fleet->judge, &worker->id);
    return rc == ERR_OK && fleet_judge_held(&fleet->judge, &worker->id, held, clock_mono_ms()) &&
           declare(fleet, worker);
}

/* Values that differ are safe, but slow: whoever dies is waited for by the larger one. */
static void compare_leases(struct fleet *fleet, const struct worker_beat *beats, size_t count)
{
    unsigned shortest_ms = fleet->cfg.lease_ms;
    unsigned longest_ms = fleet->cfg.lease_ms;
    for (size_t i = 0; i < count; i++) {
        if (beats[i].lease_ms < shortest_ms)
            shortest_ms = beats[i].lease_ms;
        if (beats[i].lease_ms > longest_ms)
            longest_ms = beats[i].lease_ms;
    }
    bool news = fleet->shortest_ms != shortest_ms || fleet->longest_ms != longest_ms;
    fleet->shortest_ms = shortest_ms;
    fleet->longest_ms = longest_ms;
    atomic_store(fleet->cfg.leases_differ, shortest_ms != longest_ms);
    if (news && shortest_ms != longest_ms)
        log_event(LOG_WARN, "fleet.lease.differs", LOG_U("lease_ms", fleet->cfg.lease_ms),
                  LOG_U("shortest_ms", shortest_ms), LOG_U("longest_ms", longest_ms));
    else if (news)
        log_event(LOG_INFO, "fleet.lease.same", LOG_U("lease_ms", fleet->cfg.lease_ms));
}

static void look(struct fleet *fleet)
{
    struct worker_beat *beats = NULL;
    size_t count = 0, dead = 0;
    struct err err = {0};
    fleet_judge_begin(&fleet->judge, clock_mono_ms());
    enum err_code rc = worker_store_beats(fleet->cfg.store, &beats, &count, &err);
    if (rc) {
        fleet_judge_failed(&fleet->judge, NULL);
        return;
    }
    compare_leases(fleet, beats, count);
    for (size_t i = 0; i < count && !stopping(fleet); i++) {
        bool silent = false;
        if (fleet_judge_beat(&fleet->judge, &beats[i], &silent, &err))
            break;
        if (silent && ask(fleet, &beats[i]))
            beats[dead++] = beats[i];
    }
    fleet_judge_forget(&fleet->judge);
    /* After all were looked at: it takes its time. What is cut short here is repaired by recovery.
     */
    for (size_t i = 0; i < dead && !stopping(fleet); i++)
        fleet_wake(&fleet->cfg, &beats[i].id);
    free(beats);
}

static void *fleet_main(void *arg)
{
    struct fleet *fleet = arg;
    while (!stopping(fleet)) {
        int64_t next_ms = clock_mono_ms() + fleet->cfg.beat_ms;
        look(fleet);
        int64_t due_ms = fleet_judge_due_ms(&fleet->judge);
        if (due_ms < next_ms) /* a lease ends before the next look: not to wait beyond it */
            next_ms = due_ms;
        pthread_mutex_lock(&fleet->lock);
        while (!fleet->stop && clock_cond_wait_until(&fleet->news, &fleet->lock, next_ms))
            ;
        pthread_mutex_unlock(&fleet->lock);
    }
    store_thread_end();
    return NULL;
}

static void fleet_free(struct fleet *fleet)
{
    bus_publisher_free(fleet->asker);
    fleet_judge_done(&fleet->judge);
    pthread_mutex_destroy(&fleet->lock);
    pthread_cond_destroy(&fleet->news);
    free(fleet);
}

enum err_code fleet_start(const struct fleet_config *cfg, struct fleet **ret_fleet, struct err *err)
{
    struct fleet *fleet = calloc(1, sizeof(*fleet));
    if (!fleet)
        return err_set(err, ERR_NOMEM, "no memory for the fleet watch");
    fleet->cfg = *cfg;
    fleet_judge_init(&fleet->judge, cfg->lease_ms);
    fleet->shortest_ms = fleet->longest_ms = cfg->lease_ms;
    pthread_mutex_init(&fleet->lock, NULL);
    clock_cond_init(&fleet->news);
    struct bus_config bus = *cfg->bus;
    bus.name = "sluice-fleet";
    enum err_code rc = bus_publisher_open(&bus, &fleet->asker, err);
    int failed = rc ? 0 : pthread_create(&fleet->thread, NULL, fleet_main, fleet);
    if (failed)
        rc = err_set_errno(err, ERR_NOMEM, failed, "cannot start the fleet watch");
    if (rc) {
        fleet_free(fleet);
        return rc;
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
    fleet_free(fleet);
}
