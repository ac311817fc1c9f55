/* SPDX-License-Identifier: MIT */
#include "readers/common/reader.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/bus/consumer.h"
#include "common/model/retry.h"
#include "common/service/daemon.h"
#include "common/service/metrics.h"
#include "common/service/monitor.h"
#include "common/service/presence.h"
#include "common/service/program.h"
#include "common/service/servers.h"
#include "common/service/watchdog.h"
#include "readers/common/handle.h"

#include <pthread.h>
#include <stdatomic.h>

#define TURN_MS 120000 /* one try to handle a message, with a database that is away or slow */
#define POOL_MOST 4    /* connections: one message is handled at a time */
#define WAITING_MAX 16 /* one channel: more than one only after its connection was lost */

#define FAILURES_MAX 5 /* of one message, with servers that answer: then it is set aside */

static const struct retry handle_retry = {100, 5000};
static struct metric failed_tries =
    METRIC_COUNTER("sluice_dead_messages_failed_total", "Tries to handle a message that failed");

struct reader {
    const struct reader_kind *kind;
    struct config *cfg;
    struct store *store;
    struct bus_publisher *pub;
    struct bus_consumer *consumer;
    struct notify *notify;
    struct presence *presence;
    pthread_t thread;
    bool thread_runs;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bus_delivery *waiting[WAITING_MAX];
    size_t count;
    bool stop;
    struct watchdog_loop loop; /* of the handler */
    atomic_uint failures;      /* of the message that is being handled, in a row */
};

/* ---- from the bus to the handler ------------------------------------------------------------- */

static void on_delivery(void *arg, struct bus_delivery **take_delivery)
{
    struct reader *reader = arg;
    (void)pthread_mutex_lock(&reader->lock);
    bool room = !reader->stop && reader->count < WAITING_MAX;
    if (room)
        reader->waiting[reader->count++] = TAKE(*take_delivery);
    (void)pthread_cond_broadcast(&reader->changed);
    (void)pthread_mutex_unlock(&reader->lock);
    if (!room)
        bus_settle(take_delivery, BUS_REQUEUE);
}

/* NULL: the end was asked for. */
static struct bus_delivery *next_delivery(struct reader *reader)
{
    struct bus_delivery *delivery = NULL;
    (void)pthread_mutex_lock(&reader->lock);
    while (reader->count == 0 && !reader->stop)
        (void)pthread_cond_wait(&reader->changed, &reader->lock);
    if (!reader->stop) {
        delivery = reader->waiting[0];
        reader->count--;
        for (size_t i = 0; i < reader->count; i++)
            reader->waiting[i] = reader->waiting[i + 1];
    }
    (void)pthread_mutex_unlock(&reader->lock);
    return delivery;
}

/* An unreachable server comes back; any other failure is of the message, and repeats. */
static bool is_of_message(enum err_code code)
{
    switch (code) {
    case ERR_DB_AWAY:
    case ERR_BROKER_AWAY:
    case ERR_BROKER_BLOCKED:
    case ERR_OVERLOADED:
    case ERR_STOPPING:
    case ERR_TIMEOUT:
    case ERR_NOMEM:
        return false;
    default:
        return true;
    }
}

/* One try; what has failed so often is set aside, so that those behind it go on. */
static enum err_code try_handle(const struct handle *handle, const struct bus_delivery *delivery,
                                uint32_t *failures, struct err *err)
{
    enum err_code rc = handle_delivery(handle, delivery, err);
    if (rc == ERR_OK || !is_of_message(rc) || ++*failures < FAILURES_MAX)
        return rc;
    char reason[sizeof(err->text)];
    memcpy(reason, err->text, sizeof(reason));
    err_clear(err);
    return handle_set_aside(handle, delivery, reason, err);
}

/* Until it is done, however long the outage of a server lasts; false: stop was requested before. */
static bool handle_at_last(struct reader *reader, const struct bus_delivery *delivery)
{
    const struct handle handle = {.cfg = reader->cfg,
                                  .store = reader->store,
                                  .pub = reader->pub,
                                  .notify = reader->notify,
                                  .source = reader->kind->source};
    struct err err = {0};
    uint32_t failures = 0;
    bool stopped = false;
    for (uint32_t tries = 1; !stopped; tries++) {
        err_clear(&err);
        watchdog_turn(&reader->loop, TURN_MS);
        enum err_code rc = try_handle(&handle, delivery, &failures, &err);
        if (rc == ERR_OK)
            break;
        atomic_store(&reader->failures, tries);
        metric_count(&failed_tries, 0, 1);
        if (err.code != ERR_STOPPING)
            log_err("dead.message.not_stored", &err);
        stopped = daemon_sleep_until(clock_mono_ms() + retry_pause_ms(&handle_retry, tries));
    }
    if (!stopped)
        atomic_store(&reader->failures, 0);
    return !stopped;
}

static void *handler_main(void *arg)
{
    struct reader *reader = arg;
    struct bus_delivery *delivery = NULL;
    (void)pthread_setname_np(pthread_self(), "handler");
    reader->loop.name = "reader.handler";
    watchdog_rest(&reader->loop);
    while ((delivery = next_delivery(reader)) != NULL) {
        bool done = handle_at_last(reader, delivery);
        FAULT("dead.before_ack");
        bus_settle(&delivery, done ? BUS_ACK : BUS_REQUEUE);
        watchdog_rest(&reader->loop);
    }
    watchdog_leave(&reader->loop);
    store_thread_end();
    return NULL;
}

/* ---- metrics and readiness ------------------------------------------------------------------- */

/* -1 while the database cannot be asked. */
static int64_t read_open(void *arg)
{
    struct reader *reader = arg;
    struct err err = {0};
    uint64_t count = 0;
    return dead_store_count_open(reader->store, &count, &err) == ERR_OK ? (int64_t)count : -1;
}

static struct metric open_messages = METRIC_GAUGE_OF(
    "sluice_dead_messages", "Dead messages that a person should look at; -1: unknown", read_open);

static bool ready(void *arg, struct buf *reasons)
{
    struct reader *reader = arg;
    struct err err = {0};
    bool database = store_ping(reader->store, &err) == ERR_OK;
    bool broker = bus_consumer_state(reader->consumer) == BUS_UP &&
                  bus_publisher_state(reader->pub) != BUS_DOWN;
    bool handles = atomic_load(&reader->failures) < 2;
    buf_addf(reasons, "\"database\":%s,\"broker\":%s,\"handles\":%s", database ? "true" : "false",
             broker ? "true" : "false", handles ? "true" : "false");
    return database && broker && handles;
}

static enum err_code start_monitor(struct reader *reader, struct monitor **ret_monitor,
                                   struct err *err)
{
    const struct config *cfg = reader->cfg;
    bool dead = reader->kind->source == DEAD_LETTER;
    const struct monitor_config monitor = {
        .service = reader->kind->service,
        .listen = dead ? cfg->deadletter_monitor_listen : cfg->alternate_monitor_listen,
        .port = (uint16_t)(dead ? cfg->deadletter_monitor_port : cfg->alternate_monitor_port),
        .ready = ready,
        .arg = reader,
    };
    handle_metrics_add();
    metrics_add(&failed_tries);
    notify_metrics_add();
    open_messages.arg = reader;
    metrics_add(&open_messages);
    return monitor.port ? monitor_start(&monitor, ret_monitor, err) : ERR_OK;
}

/* ---- the parts ------------------------------------------------------------------------------- */

static enum err_code open_store(struct reader *reader, struct err *err)
{
    struct store_config store = servers_store(reader->cfg);
    if (store.pool_size > POOL_MOST)
        store.pool_size = POOL_MOST;
    return store_open(&store, &reader->store, err);
}

static enum err_code open_bus(struct reader *reader, struct err *err)
{
    const struct config *cfg = reader->cfg;
    const struct bus_config bus = servers_bus(cfg, reader->kind->service);
    const struct bus_consumer_setup setup = {
        .queue = bus_queue_name(reader->kind->queue),
        .queue_kind = reader->kind->queue,
        .binding_key = "",
        .arg = reader,
        .on_delivery = on_delivery,
    };
    enum err_code rc = bus_publisher_open(&bus, &reader->pub, err);
    if (rc == ERR_OK)
        rc = bus_consumer_open(&bus, &setup, &reader->consumer, err);
    return rc;
}

static enum err_code start_handler(struct reader *reader, struct err *err)
{
    int failed = pthread_create(&reader->thread, NULL, handler_main, reader);
    if (failed)
        return err_set_errno(err, ERR_NOMEM, failed, "starting the handler's thread");
    reader->thread_runs = true;
    /* One channel: of several consumers on a queue with a single active one, one gets messages. */
    bus_consumer_set_channels(reader->consumer, 1);
    return ERR_OK;
}

static void stop_handler(struct reader *reader)
{
    (void)pthread_mutex_lock(&reader->lock);
    reader->stop = true;
    (void)pthread_cond_broadcast(&reader->changed);
    (void)pthread_mutex_unlock(&reader->lock);
    if (reader->thread_runs)
        (void)pthread_join(reader->thread, NULL);
    for (size_t i = 0; i < reader->count; i++)
        bus_settle(&reader->waiting[i], BUS_REQUEUE);
    reader->count = 0;
}

static enum err_code run(struct reader *reader, struct err *err)
{
    AUTO(monitor_stop) struct monitor *monitor = NULL;
    struct err waited = {0};
    enum err_code rc = open_store(reader, err);
    if (rc == ERR_OK)
        rc = notify_open(reader->cfg, reader->kind->service, &reader->notify, err);
    if (rc == ERR_OK)
        rc = open_bus(reader, err);
    if (rc == ERR_OK)
        rc = start_monitor(reader, &monitor, err);
    if (rc == ERR_OK)
        rc = presence_start(reader->store, reader->kind->service, &reader->presence, err);
    if (rc == ERR_OK && store_wait_ready(reader->store, daemon_stop_flag(), &waited) == ERR_OK)
        rc = start_handler(reader, err);
    if (rc == ERR_OK) {
        daemon_notify("READY=1");
        daemon_wait_stop();
    }
    stop_handler(reader);
    monitor_stop(TAKE(monitor));
    bus_consumer_free(reader->consumer);
    bus_publisher_free(reader->pub);
    notify_close(reader->notify);
    presence_stop(reader->presence);
    store_free(reader->store);
    return rc;
}

/* ---- the process ----------------------------------------------------------------------------- */

static int live(struct reader *reader, struct program *program)
{
    const struct daemon_calls calls = {.reload = program_reload, .arg = program};
    struct err err = {0};
    enum err_code rc = daemon_start(&calls, &err);
    (void)pthread_mutex_init(&reader->lock, NULL);
    (void)pthread_cond_init(&reader->changed, NULL);
    if (rc == ERR_OK)
        rc = run(reader, &err);
    if (rc) {
        log_err("reader.failed", &err);
        (void)fprintf(stderr, "%s: %s\n", reader->kind->service, err.text);
    }
    log_event(LOG_INFO, "reader.ended");
    store_thread_end();
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

int reader_main(const struct reader_kind *kind, int argc, char **argv)
{
    struct program program = {.name = kind->service, .argc = argc, .argv = argv};
    static struct reader reader;
    int status = 0;
    if (!program_begin(&program, &status))
        return status;
    reader.kind = kind;
    reader.cfg = program.cfg;
    status = live(&reader, &program);
    config_free(program.cfg);
    return status;
}
