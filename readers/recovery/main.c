/* SPDX-License-Identifier: MIT */

/* sluice-recovery: holds blocked jobs until what they wait for has come about, repairs what should
 * never be, and removes what is old. One process serves all tenants, or those of recovery.tenants;
 * further ones stand by. Exit codes: 0 stopped as asked, 1 cannot run (said on stderr), 2 usage. */

#include "common/base/log.h"
#include "common/model/policy.h"
#include "common/service/daemon.h"
#include "common/service/fleet.h"
#include "common/service/monitor.h"
#include "common/service/presence.h"
#include "common/service/program.h"
#include "common/service/servers.h"
#include "readers/recovery/keeper.h"
#include "readers/recovery/reconcile.h"
#include "readers/recovery/stats.h"

#define SERVICE "sluice-recovery"

struct process {
    struct program program;
    struct bus_config bus;
    struct store *store;
    struct bus_publisher *publisher;
    struct outbox *outbox;
    struct fleet *fleet;
    atomic_bool leases_differ;
    struct monitor *monitor;
    struct handle_site site;
    struct desk *desk;
    struct reconcile *reconcile;
    struct keeper *keeper;
    struct presence *presence;
};

static enum err_code open_store(struct process *process, struct err *err)
{
    const struct store_config store = servers_store(process->program.cfg);
    return store_open(&store, &process->store, err);
}

static enum err_code open_bus(struct process *process, struct err *err)
{
    const struct config *cfg = process->program.cfg;
    process->bus = servers_bus(cfg, SERVICE);
    enum err_code rc = bus_publisher_open(&process->bus, &process->publisher, err);
    if (rc)
        return rc;
    const struct outbox_config outbox = {.store = process->store,
                                         .pub = process->publisher,
                                         .age_ms = cfg->recovery_outbox_age_ms,
                                         .fault_confirmed = "recovery.confirmed"};
    return outbox_open(&outbox, &process->outbox, err);
}

static bool ready(void *arg, struct buf *reasons)
{
    struct process *process = arg;
    struct err err = {0};
    bool database = store_ping(process->store, &err) == ERR_OK;
    bool broker = bus_publisher_state(process->publisher) == BUS_UP;
    buf_addf(reasons, "\"database\":%s,\"broker\":%s,\"leading\":%lld,\"leases_differ\":%s",
             database ? "true" : "false", broker ? "true" : "false",
             (long long)metric_value(&stat_leading, 0),
             atomic_load(&process->leases_differ) ? "true" : "false");
    return database && broker;
}

static enum err_code start_monitor(struct process *process, struct err *err)
{
    const struct monitor_config cfg = {.service = SERVICE,
                                       .listen = process->program.cfg->recovery_monitor_listen,
                                       .port =
                                           (uint16_t)process->program.cfg->recovery_monitor_port,
                                       .ready = ready,
                                       .arg = process};
    return cfg.port ? monitor_start(&cfg, &process->monitor, err) : ERR_OK;
}

static enum err_code start_work(struct process *process, struct err *err)
{
    const struct config *cfg = process->program.cfg;
    struct address_nets networks;
    enum err_code rc = address_nets_parse(cfg->recovery_test_networks, &networks, err);
    if (rc)
        return rc;
    process->site = (struct handle_site){.cfg = cfg,
                                         .test = {.store = process->store,
                                                  .publisher = process->publisher,
                                                  .timeout_ms = cfg->recovery_test_timeout_ms,
                                                  .networks = networks,
                                                  .link_local = cfg->worker_input_link_local},
                                         .outbox = process->outbox};
    const struct fleet_config fleet = {.store = process->store,
                                       .bus = &process->bus,
                                       .publisher = process->publisher,
                                       .beat_ms = cfg->fleet_beat_ms,
                                       .lease_ms = cfg->fleet_lease_ms,
                                       .leases_differ = &process->leases_differ};
    const struct desk_config desk = {
        .site = &process->site, .bus = &process->bus, .publisher = process->publisher};
    rc = fleet_start(&fleet, &process->fleet, err);
    if (rc == ERR_OK)
        rc = desk_open(&desk, &process->desk, err);
    if (rc)
        return rc;
    const struct reconcile_config reconcile = {.site = &process->site, .desk = process->desk};
    rc = reconcile_start(&reconcile, &process->reconcile, err);
    return rc ? rc : keeper_start(process->store, cfg, &process->keeper, err);
}

static enum err_code serve(struct process *process, struct err *err)
{
    struct err waited = {0};
    enum err_code rc = test_start(err);
    if (rc == ERR_OK)
        rc = open_store(process, err);
    if (rc == ERR_OK)
        rc = open_bus(process, err);
    if (rc == ERR_OK)
        rc = start_monitor(process, err);
    if (rc == ERR_OK)
        rc = presence_start(process->store, SERVICE, &process->presence, err);
    if (rc == ERR_OK && store_wait_ready(process->store, daemon_stop_flag(), &waited) != ERR_OK)
        return ERR_OK; /* the end was asked for before the database came */
    if (rc == ERR_OK)
        rc = start_work(process, err);
    if (rc)
        return rc;
    log_event(LOG_INFO, "recovery.ready");
    daemon_notify("READY=1");
    daemon_wait_stop();
    return ERR_OK;
}

static void end(struct process *process)
{
    keeper_stop(process->keeper);
    reconcile_stop(process->reconcile);
    desk_close(process->desk);
    fleet_stop(process->fleet);
    monitor_stop(process->monitor);
    outbox_stop(process->outbox);
    bus_publisher_free(process->publisher);
    outbox_close(process->outbox);
    presence_stop(process->presence);
    store_free(process->store);
    test_end();
}

static int run(struct process *process, struct err *err)
{
    const struct daemon_calls calls = {.reload = program_reload, .arg = &process->program};
    stats_add();
    keeper_metrics_add();
    enum err_code rc = daemon_start(&calls, err);
    if (rc == ERR_OK)
        rc = serve(process, err);
    if (rc)
        log_err("recovery.ended", err);
    end(process);
    log_event(LOG_INFO, "recovery.stopped");
    store_thread_end();
    if (rc)
        (void)fprintf(stderr, SERVICE ": %s\n", err->text);
    return rc ? 1 : 0;
}

/* What cannot be read is said at the start, not when the first job waits. */
static enum err_code check_settings(const struct config *cfg, struct err *err)
{
    struct address_nets networks;
    const char *const texts[] = {
#define CAUSE(condition, tester, setting) cfg->recovery_##setting,
#include "common/service/cause.def"
#undef CAUSE
    };
    struct policy policy;
    enum err_code rc = address_nets_parse(cfg->recovery_test_networks, &networks, err);
    for (size_t i = 0; i < ARRAY_LEN(texts) && rc == ERR_OK; i++)
        rc = policy_parse(texts[i], &policy, err);
    return rc;
}

int main(int argc, char **argv)
{
    struct process process = {.program = {.name = SERVICE, .argc = argc, .argv = argv}};
    struct err err = {0};
    int status = 0;
    if (!program_begin(&process.program, &status))
        return status;
    status = check_settings(process.program.cfg, &err) ? program_refuse(&process.program, &err)
                                                       : run(&process, &err);
    config_free(process.program.cfg);
    return status;
}
