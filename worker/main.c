/* SPDX-License-Identifier: MIT */

/* sluice-worker: serves one submission queue of a tenant with N slots. One per name and host (a
 * lock in its folder). It waits for the database and the broker, runs what comes, and drains on
 * SIGTERM; what still runs after worker.drain_ms is left to its runner, for the next worker of the
 * same name. Exit codes: 0 stopped as asked, 1 cannot run (said on stderr), 2 usage. */

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/service/daemon.h"
#include "common/service/monitor.h"
#include "common/service/servers.h"
#include "worker/fetch.h"
#include "worker/home.h"
#include "worker/incarnation.h"
#include "worker/stats.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_FILE "worker.lock"
#define LOOK_MS 100
#define FENCED_PAUSE_MS 500

static struct worker worker = {.work_fd = -1, .archive_fd = -1, .draining = true};

enum { FLAG_TENANT, FLAG_QUEUE, FLAG_SLOTS, FLAG_NAME, FLAG_HELP, FLAG_COUNT };
static struct config_flag flags[] = {
    [FLAG_TENANT] = {.name = "tenant", .letter = 't', .argument = "TENANT", .doc = "worker.tenant"},
    [FLAG_QUEUE] = {.name = "queue", .letter = 'q', .argument = "QUEUE", .doc = "worker.queue"},
    [FLAG_SLOTS] = {.name = "slots", .letter = 'n', .argument = "N", .doc = "worker.slots"},
    [FLAG_NAME] = {.name = "name", .argument = "NAME", .doc = "worker.name"},
    [FLAG_HELP] = {.name = "help", .letter = 'h', .doc = "this text"},
    [FLAG_COUNT] = {.name = NULL},
};

static enum err_code take_text(const struct config_flag *flag, char **slot, struct err *err)
{
    if (!flag->value)
        return ERR_OK;
    char *copy = strdup(flag->value);
    if (!copy)
        return err_set(err, ERR_NOMEM, "no memory for a flag");
    free(*slot);
    *slot = copy;
    return ERR_OK;
}

static enum err_code take_flags(struct config *cfg, struct err *err)
{
    uint64_t slots = cfg->worker_slots;
    enum err_code rc = take_text(&flags[FLAG_TENANT], &cfg->worker_tenant, err);
    if (rc == ERR_OK)
        rc = take_text(&flags[FLAG_QUEUE], &cfg->worker_queue, err);
    if (rc == ERR_OK)
        rc = take_text(&flags[FLAG_NAME], &cfg->worker_name, err);
    if (rc == ERR_OK && flags[FLAG_SLOTS].value &&
        (!sv_u64(sv_of(flags[FLAG_SLOTS].value), SLOTS_MAX, &slots) || slots == 0))
        rc = err_set(err, ERR_INVALID, "--slots: a number from 1 to %d is wanted", SLOTS_MAX);
    cfg->worker_slots = (unsigned)slots;
    return rc;
}

/* A name that is a folder's and a queue's: letters, digits and . _ -, no '.' first. */
static bool is_word(const char *text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return text[0] && text[0] != '.' && strlen(text) < QUEUE_NAME_SIZE &&
           text[strspn(text, allowed)] == 0;
}

static enum err_code check_config(const struct config *cfg, struct err *err)
{
    const struct {
        const char *key;
        const char *value;
        const char *set_by;
    } names[] = {
        {"worker.tenant", cfg->worker_tenant, "--tenant, or SLUICE_WORKER_TENANT"},
        {"worker.queue", cfg->worker_queue, "--queue, or SLUICE_WORKER_QUEUE"},
        {"worker.name", cfg->worker_name, "--name, or SLUICE_WORKER_NAME"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!names[i].value[0])
            return err_set(err, ERR_CONFIG, "%s is not set: set it by %s", names[i].key,
                           names[i].set_by);
        if (!is_word(names[i].value))
            return err_set(err, ERR_CONFIG,
                           "%s is '%.100s'; 1 to 63 letters, digits and . _ - are wanted, not "
                           "beginning with a dot: set it by %s",
                           names[i].key, names[i].value, names[i].set_by);
    }
    if (cfg->fleet_lease_ms < cfg->fleet_beat_ms * 3)
        return err_set(err, ERR_CONFIG,
                       "fleet.lease_ms is %u; it must be at least three times fleet.beat_ms (%u)",
                       cfg->fleet_lease_ms, cfg->fleet_beat_ms);
    return ERR_OK;
}

/* ---- the folder ---------------------------------------------------------------------------- */

static enum err_code lock_folder(struct worker *w, struct err *err)
{
    static int lock_fd = -1; /* held open, and locked, until the process ends */
    const struct config *cfg = w->cfg;
    int length = snprintf(w->work_dir, sizeof(w->work_dir), "%s/%s", cfg->worker_work_root,
                          cfg->worker_name);
    if (length < 0 || (size_t)length > sizeof(w->work_dir) - 128)
        return err_set(err, ERR_CONFIG, "worker.work_root is too long");
    enum err_code rc = fs_open_dir(w->work_dir, true, &w->work_fd, err);
    if (rc == ERR_OK)
        rc = fs_open_dir(cfg->archive_root, true, &w->archive_fd, err);
    if (rc == ERR_OK)
        rc = fs_open_beneath(w->work_fd, LOCK_FILE, O_RDWR | O_CREAT, 0600, &lock_fd, err);
    if (rc)
        return rc;
    if (flock(lock_fd, LOCK_EX | LOCK_NB) == 0)
        return ERR_OK;
    return err_set(err, ERR_IN_USE,
                   "another worker with the name '%s' runs on this host (lock %s/" LOCK_FILE
                   "); give this one another worker.name",
                   cfg->worker_name, w->work_dir);
}

static void read_host(struct worker *w)
{
    BUF_AUTO struct buf boot = BUF_INIT(64);
    FD_AUTO int proc = open("/proc/sys/kernel/random", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err err = {0};
    if (gethostname(w->host, sizeof(w->host) - 1) != 0)
        (void)snprintf(w->host, sizeof(w->host), "localhost");
    if (proc >= 0 && fs_read(proc, "boot_id", &boot, &err) == ERR_OK)
        (void)snprintf(w->boot_id, sizeof(w->boot_id), "%.36s", buf_text(&boot));
}

static void find_runner_program(struct worker *w)
{
    char self[WORKER_PATH_SIZE];
    assert(w->cfg);
    if (w->cfg->worker_runner[0]) {
        (void)snprintf(w->runner_path, sizeof(w->runner_path), "%s", w->cfg->worker_runner);
        return;
    }
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = 0;
    (void)snprintf(w->runner_path, sizeof(w->runner_path), "%.900s/sluice-runner", dirname(self));
}

/* ---- the services --------------------------------------------------------------------------- */

/* The broker is our second witness (docs/ownership.md): it has to be heard several times in the
 * three quarters of a lease that each word of it grants, also when nothing else is sent. */
static int heartbeat_s(const struct config *cfg)
{
    unsigned most = cfg->fleet_lease_ms / 4000;
    if (most == 0)
        most = 1;
    return (int)(cfg->amqp_heartbeat_s < most ? cfg->amqp_heartbeat_s : most);
}

static enum err_code open_services(struct worker *w, struct err *err)
{
    const struct config *cfg = w->cfg;
    w->store_cfg = servers_store(cfg);
    w->bus_cfg = servers_bus(cfg, "sluice-worker");
    w->bus_cfg.heartbeat_s = heartbeat_s(cfg);
    (void)bus_submit_queue(cfg->worker_tenant, cfg->worker_queue, w->queue);
    enum err_code rc = fetch_start(err);
    if (rc == ERR_OK)
        rc = store_open(&w->store_cfg, &w->store, err);
    if (rc == ERR_OK)
        rc = job_writer_open(w->store, &w->writer, err);
    if (rc == ERR_OK)
        rc = bus_publisher_open(&w->bus_cfg, &w->publisher, err);
    if (rc == ERR_OK)
        rc = announcer_open(w->publisher, cfg->worker_tenant, &w->announcer, err);
    return rc;
}

static bool ready(void *arg, struct buf *reasons)
{
    struct worker *w = arg;
    int64_t beat_ms = atomic_load(&w->witness.beat_ms);
    bool database = beat_ms && clock_boot_ms() - beat_ms < w->cfg->fleet_lease_ms;
    bool broker = bus_publisher_state(w->publisher) == BUS_UP;
    bool draining = atomic_load(&w->draining) || atomic_load(&w->told_to_drain);
    buf_addf(reasons, "\"database\":%s,\"broker\":%s,\"receiving\":%s,\"leases_differ\":%s",
             database ? "true" : "false", broker ? "true" : "false", draining ? "false" : "true",
             atomic_load(&w->leases_differ) ? "true" : "false");
    return database && broker && !draining;
}

static enum err_code start_monitor(struct worker *w, struct monitor **ret_monitor, struct err *err)
{
    struct monitor_config cfg = {.service = "sluice-worker",
                                 .listen = w->cfg->worker_monitor_listen,
                                 .port = (uint16_t)w->cfg->worker_monitor_port,
                                 .ready = ready,
                                 .arg = w};
    return cfg.port ? monitor_start(&cfg, ret_monitor, err) : ERR_OK;
}

static void serve(struct worker *w)
{
    while (!atomic_load(&w->fenced) && !daemon_sleep_until(clock_mono_ms() + LOOK_MS))
        ;
    if (!atomic_load(&w->fenced)) {
        incarnation_drain(w);
        return;
    }
    FAULT("worker.fenced");
    incarnation_drop(w);
}

/* One incarnation after the other, until the end is asked for. */
static enum err_code live(struct worker *w, struct err *err)
{
    enum err_code rc = ERR_OK;
    while (rc == ERR_OK && !daemon_stopping()) {
        rc = incarnation_start(w, err);
        if (rc == ERR_OK) {
            daemon_notify("READY=1");
            serve(w);
        }
        incarnation_end(w);
        if (atomic_load(&w->fenced))
            (void)daemon_sleep_until(clock_mono_ms() + FENCED_PAUSE_MS);
    }
    return rc == ERR_STOPPING ? ERR_OK : rc;
}

/* Only the level of the log can change while jobs run. */
static void reload(void *arg)
{
    AUTO(config_free) struct config *cfg = NULL;
    struct err err = {0};
    enum log_level level = LOG_INFO;
    if (config_load(arg, &cfg, &err))
        log_err("worker.reload.refused", &err);
    else if (log_level_parse(sv_of(cfg->log_level), &level))
        log_set_level(level);
}

static enum err_code run_worker(struct worker *w, struct config_args *args, struct err *err)
{
    AUTO(monitor_stop) struct monitor *monitor = NULL;
    struct daemon_calls calls = {.reload = reload, .arg = args};
    enum err_code rc = lock_folder(w, err);
    if (rc == ERR_OK)
        rc = home_open(w, err);
    if (rc == ERR_OK)
        rc = confinement_make(w->cfg, &w->confinement, err);
    if (rc == ERR_OK)
        rc = confinement_let_in(&w->confinement, w->work_dir, w->work_fd, err);
    if (rc == ERR_OK)
        rc = daemon_start(&calls, err);
    if (rc)
        return rc;
    read_host(w);
    find_runner_program(w);
    stats_add();
    metric_set(&stat_slots, w->cfg->worker_slots);
    rc = open_services(w, err);
    if (rc == ERR_OK)
        rc = start_monitor(w, &monitor, err);
    if (rc == ERR_OK)
        rc = live(w, err);
    announcer_close(w->announcer);
    bus_publisher_free(w->publisher);
    monitor_stop(TAKE(monitor));
    job_writer_free(w->writer);
    store_free(w->store);
    confinement_done(&w->confinement);
    log_event(LOG_INFO, "worker.ended");
    return rc;
}

int main(int argc, char **argv)
{
    AUTO(config_free) struct config *cfg = NULL;
    struct config_args args = {.argc = argc, .argv = argv, .flags = flags};
    struct err err = {0};
    enum log_level level = LOG_INFO;
    enum err_code rc = config_load(&args, &cfg, &err);
    if (flags[FLAG_HELP].count) {
        (void)printf("usage: sluice-worker [--tenant T] [--queue Q] [--slots N] [--name NAME]\n");
        config_usage(stdout, flags);
        return 0;
    }
    if (rc == ERR_OK && args.rest != argc)
        rc = err_set(&err, ERR_INVALID, "'%.100s' is not a flag", argv[args.rest]);
    if (rc == ERR_OK)
        rc = take_flags(cfg, &err);
    if (rc == ERR_OK)
        rc = check_config(cfg, &err);
    if (rc) {
        (void)fprintf(stderr, "sluice-worker: %s\n", err.text);
        return rc == ERR_INVALID ? 2 : 1;
    }
    if (log_level_parse(sv_of(cfg->log_level), &level))
        log_open("sluice-worker", STDOUT_FILENO, level);
    worker.cfg = cfg;
    rc = run_worker(&worker, &args, &err);
    if (rc) {
        log_err("worker.failed", &err);
        (void)fprintf(stderr, "sluice-worker: %s\n", err.text);
    }
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
