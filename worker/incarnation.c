/* SPDX-License-Identifier: MIT */
#include "worker/incarnation.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/service/daemon.h"
#include "common/store/queue_store.h"
#include "worker/adopt.h"
#include "worker/ahead.h"
#include "worker/home.h"
#include "worker/outcome.h"
#include "worker/receive.h"
#include "worker/stats.h"
#include "worker/sweep.h"

#include <unistd.h>

#define BROKER_WAIT_MS 1000 /* at most: running jobs wait to be claimed */
#define AWAY_PAUSE_MS 200
#define ASIDE_MOST 64 /* deliveries of jobs that others run, while the broker takes no copy */

/* ---- callbacks ----------------------------------------------------------------------------- */

static void work(void *arg, struct slot *slot, void *adopted)
{
    struct worker *w = arg;
    atomic_fetch_add(&w->busy, 1);
    if (adopted)
        adopt_drive(w, slot, adopted);
    else
        receive_delivery(w, slot);
    atomic_fetch_sub(&w->busy, 1);
}

static void set_channels(void *arg, unsigned wanted)
{
    struct worker *w = arg;
    if (w->consumer)
        bus_consumer_set_channels(w->consumer, wanted);
}

static void on_delivery(void *arg, struct bus_delivery **take_delivery)
{
    struct worker *w = arg;
    slots_offer(w->slots, take_delivery);
}

static void on_lost(void *arg, struct bus_delivery *delivery)
{
    struct worker *w = arg;
    slots_lose(w->slots, delivery);
}

static void on_message(void *arg, struct sv routing_key, struct sv body)
{
    struct worker *w = arg;
    struct commands *commands = w->commands;
    (void)routing_key;
    (void)body;
    if (commands)
        commands_wake(commands);
}

static void on_state(void *arg, enum bus_state state, uint32_t generation)
{
    (void)arg;
    log_event(LOG_INFO, state == BUS_DOWN ? "worker.broker.away" : "worker.broker.up",
              LOG_U("generation", generation));
}

static void on_exit_record(void *arg, const struct runner_record *record)
{
    struct worker *w = arg;
    struct slots *slots = w->slots;
    if (slots)
        (void)slots_post_exit(slots, record);
}

static void on_silence(void *arg)
{
    struct worker *w = arg;
    if (atomic_load(&w->busy) > 0 && !atomic_exchange(&w->fenced, true))
        log_event(LOG_ERROR, "worker.silent", LOG_S("worker", w->id_text));
}

static void on_fenced(void *arg)
{
    struct worker *w = arg;
    if (!atomic_exchange(&w->fenced, true))
        log_event(LOG_ERROR, "worker.fenced", LOG_S("worker", w->id_text));
}

static void on_beaten(void *arg)
{
    struct worker *w = arg;
    runner_link_hurry(w->runner);
}

static unsigned count_busy(void *arg)
{
    struct worker *w = arg;
    return slots_working(w->slots);
}

/* ---- the parts ----------------------------------------------------------------------------- */

static enum err_code find_runner(struct worker *w, struct err *err)
{
    struct runner_link_setup setup = {
        .client = {.work_dir = w->work_dir,
                   .worker_name = w->cfg->worker_name,
                   .runner_path = w->runner_path,
                   .worker_id = w->id,
                   .confine = &w->confinement.confine},
        .witness = &w->witness,
        .beat_ms = w->cfg->fleet_beat_ms,
        .lease_ms = w->cfg->fleet_lease_ms,
        .grace_ms = w->cfg->worker_grace_ms,
        .arg = w,
        .on_exit = on_exit_record,
        .on_silence = on_silence,
    };
    return runner_link_open(&setup, &w->runner, err);
}

static enum err_code make_slots(struct worker *w, size_t found, struct err *err)
{
    unsigned count = w->cfg->worker_slots;
    struct slots_setup setup = {
        .count = count,
        .threads = found > count ? (unsigned)found : count,
        .ahead = ahead_most(count, BUS_CHANNELS_MAX),
        .aside = ASIDE_MOST,
        .arg = w,
        .work = work,
        .set_channels = set_channels,
        .give_back = receive_give_back,
        .counted = stats_count_slots,
    };
    struct slots *slots = NULL;
    enum err_code rc = slots_open(&setup, &slots, err);
    w->slots = slots;
    return rc;
}

/* Tries a step again while the database is away. */
static enum err_code patiently(struct worker *w,
                               enum err_code (*step)(struct worker *w, struct err *err),
                               struct err *err)
{
    for (;;) {
        err_clear(err);
        enum err_code rc = store_wait_ready(w->store, daemon_stop_flag(), err);
        if (rc == ERR_OK)
            rc = step(w, err);
        if (rc != ERR_DB_AWAY)
            return rc;
        if (daemon_sleep_until(clock_mono_ms() + AWAY_PAUSE_MS))
            return err_set(err, ERR_STOPPING, "stopped while waiting for the database");
    }
}

static enum err_code register_row(struct worker *w, struct err *err)
{
    struct worker_row row = {.id = w->id,
                             .home = w->home,
                             .pid = (uint32_t)getpid(),
                             .slots = w->cfg->worker_slots,
                             .lease_ms = w->cfg->fleet_lease_ms,
                             .state = WORKER_LIVE};
    (void)snprintf(row.tenant, sizeof(row.tenant), "%s", w->cfg->worker_tenant);
    (void)snprintf(row.queue, sizeof(row.queue), "%s", w->cfg->worker_queue);
    (void)snprintf(row.name, sizeof(row.name), "%s", w->cfg->worker_name);
    (void)snprintf(row.host, sizeof(row.host), "%s", w->host);
    (void)snprintf(row.boot_id, sizeof(row.boot_id), "%s", w->boot_id);
    (void)snprintf(row.version, sizeof(row.version), "%s", SLUICE_VERSION);
    (void)snprintf(row.runner, sizeof(row.runner), "%s", w->runner_text);
    return worker_store_register(w->store, &row, err);
}

/* As its row says; what the configuration says if there is none. */
static enum bus_queue_type queue_type(struct worker *w)
{
    struct job_queue queue = {0};
    struct err err = {0};
    enum bus_queue_type type = BUS_QUORUM;
    enum err_code rc =
        queue_store_get(w->store, w->cfg->worker_tenant, w->cfg->worker_queue, &queue, &err);
    const char *text = rc ? w->cfg->amqp_queue_type : queue.queue_type;
    if (!bus_queue_type_parse(sv_of(text), &type))
        type = BUS_QUORUM;
    if (rc == ERR_OK)
        job_queue_done(&queue);
    return type;
}

static enum err_code join_broker(struct worker *w, struct err *err)
{
    char inbox[BUS_NAME_SIZE];
    char queue_key[BUS_NAME_SIZE];
    const char *keys[] = {w->id_text, queue_key, "all"};
    struct bus_consumer_setup setup = {
        .queue = w->queue,
        .inbox = {.exchange = BUS_COMMAND,
                  .name = bus_worker_queue(w->id_text, inbox),
                  .keys = keys,
                  .key_count = ARRAY_LEN(keys)},
        /* A database that is away leaves the broker as the only witness: its own heartbeats are
         * too rare for the grant. */
        .probe_ms = w->cfg->fleet_beat_ms / 4,
        .arg = w,
        .on_delivery = on_delivery,
        .on_lost = on_lost,
        .on_message = on_message,
        .on_state = on_state,
    };
    (void)snprintf(queue_key, sizeof(queue_key), "queue.%s", w->cfg->worker_queue);
    setup.queue_type = queue_type(w);
    return bus_consumer_open(&w->bus_cfg, &setup, &w->consumer, err);
}

static enum err_code begin_beats(struct worker *w, struct err *err)
{
    struct heart_setup setup = {
        .store = w->store_cfg,
        .pool = w->store,
        .worker = w->id,
        .beat_ms = w->cfg->fleet_beat_ms,
        .lease_ms = w->cfg->fleet_lease_ms,
        .witness = &w->witness,
        .consumer = w->consumer,
        .arg = w,
        .busy = count_busy,
        .beaten = on_beaten,
        .fenced = on_fenced,
    };
    struct uuid *formers = NULL;
    enum err_code rc = adopt_formers(w, &formers, &setup.former_count, err);
    setup.formers = formers;
    if (rc == ERR_OK)
        rc = heart_start(&setup, &w->heart, err);
    free(formers);
    return rc;
}

/* The broker may be away: then the beat alone is our witness. */
static void await_broker(struct worker *w)
{
    int64_t until_ms = clock_mono_ms() + BROKER_WAIT_MS;
    while (bus_consumer_state(w->consumer) == BUS_DOWN && clock_mono_ms() < until_ms &&
           !daemon_sleep_until(clock_mono_ms() + 20))
        ;
}

static enum err_code begin_work(struct worker *w, struct err *err)
{
    struct commands *commands = NULL;
    struct fleet_config watch = {.store = w->store,
                                 .bus = &w->bus_cfg,
                                 .publisher = w->publisher,
                                 .beat_ms = w->cfg->fleet_beat_ms,
                                 .lease_ms = w->cfg->fleet_lease_ms,
                                 .leases_differ = &w->leases_differ};
    struct commands_setup told = {.store = w->store,
                                  .worker = w->id,
                                  .slots = w->slots,
                                  .beat_ms = w->cfg->fleet_beat_ms,
                                  .lease_ms = w->cfg->fleet_lease_ms,
                                  .draining = &w->told_to_drain};
    heart_release(w->heart);
    enum err_code rc = patiently(w, adopt_replace, err);
    if (rc == ERR_OK)
        rc = fleet_start(&watch, &w->fleet, err);
    if (rc)
        return rc;
    slots_receive(w->slots, true);
    atomic_store(&w->draining, false);
    rc = commands_start(&told, &commands, err);
    w->commands = commands;
    return rc;
}

/* What a former incarnation noted says nothing for this one. */
static void begin_anew(struct worker *w)
{
    w->id = uuid_v7();
    (void)uuid_text(&w->id, w->id_text);
    atomic_store(&w->witness.beat_ms, 0);
    atomic_store(&w->witness.frame_ms, 0);
    atomic_store(&w->witness.beaten_generation, 0); /* generations begin at 1 with each consumer */
    atomic_store(&w->fenced, false);
    atomic_store(&w->left, 0);
}

/* The list is complete: the worker that was before us can ask its runner for nothing more. */
static enum err_code look_at_runner(struct worker *w, struct err *err)
{
    enum err_code rc = find_runner(w, err);
    if (rc)
        return rc;
    runner_link_name(w->runner, w->boot_id, w->runner_text, sizeof(w->runner_text));
    rc = runner_link_list(w->runner, &w->found, &w->found_count, err);
    if (rc == ERR_OK)
        sweep_run_dirs(w, w->found, w->found_count);
    return rc;
}

/* A slip in its name: no job will come. The default queue is made when its tenant is first seen. */
static void warn_of_missing_queue(const struct worker *w)
{
    const struct config *cfg = w->cfg;
    struct job_queue_list list = {0};
    struct err err = {0};
    BUF_AUTO struct buf there = BUF_INIT(512);
    bool found = strcmp(cfg->worker_queue, QUEUE_DEFAULT) == 0;
    if (found || queue_store_list(w->store, cfg->worker_tenant, &list, &err) != ERR_OK)
        return;
    for (size_t i = 0; i < list.count; i++) {
        found = found || strcmp(list.items[i].name, cfg->worker_queue) == 0;
        (void)buf_addf(&there, "%s%s", i > 0 ? ", " : "", list.items[i].name);
    }
    job_queue_list_done(&list);
    if (!found)
        log_event(LOG_WARN, "worker.queue.missing", LOG_S("tenant", cfg->worker_tenant),
                  LOG_S("queue", cfg->worker_queue), LOG_S("there", buf_text(&there)),
                  LOG_S("cure", "no job comes to it: make the queue with 'sluice queue put', or "
                                "correct worker.queue"));
}

enum err_code incarnation_start(struct worker *w, struct err *err)
{
    begin_anew(w);
    enum err_code rc = patiently(w, home_check, err);
    if (rc == ERR_OK)
        rc = look_at_runner(w, err);
    if (rc == ERR_OK)
        rc = make_slots(w, w->found_count, err);
    if (rc == ERR_OK)
        rc = patiently(w, register_row, err);
    if (rc == ERR_OK)
        rc = join_broker(w, err);
    if (rc == ERR_OK) {
        await_broker(w); /* a connection counts as a witness from the first beat after it */
        rc = patiently(w, begin_beats, err);
    }
    /* Others took us for dead before our first beat: dropped as if a later one had found it out. */
    if (rc == ERR_FENCED) {
        err_clear(err);
        on_fenced(w);
        return ERR_OK;
    }
    if (rc == ERR_OK)
        rc = adopt_end_strangers(w, err);
    if (rc == ERR_OK)
        rc = runner_link_ping(w->runner, w->consumer, err);
    if (rc == ERR_OK)
        rc = adopt_all(w, err);
    /* A fenced one replaces nobody: what it did not adopt still runs, and is ended first. */
    bool goes_on = rc == ERR_OK && !atomic_load(&w->fenced);
    if (goes_on)
        rc = begin_work(w, err);
    if (goes_on && rc == ERR_OK)
        log_event(LOG_INFO, "worker.ready", LOG_S("worker", w->id_text),
                  LOG_S("name", w->cfg->worker_name), LOG_S("tenant", w->cfg->worker_tenant),
                  LOG_S("queue", w->cfg->worker_queue), LOG_U("slots", w->cfg->worker_slots),
                  LOG_U("found", w->found_count));
    if (goes_on && rc == ERR_OK)
        warn_of_missing_queue(w);
    return rc;
}
