/* SPDX-License-Identifier: MIT */

/* sluice-webhook: tells those who subscribed what happens to jobs. One process sends; further ones
 * stand by. Exit codes: 0 stopped as asked, 1 cannot run (said on stderr), 2 usage, 75 another
 * process sends (a supervisor starts this one again, and it stands by). */

#include "common/base/log.h"
#include "common/service/daemon.h"
#include "common/service/monitor.h"
#include "common/service/presence.h"
#include "common/service/program.h"
#include "common/service/servers.h"
#include "readers/webhook/sender.h"
#include "readers/webhook/stats.h"

#define SERVICE "sluice-webhook"
#define EXIT_FENCED 75 /* EX_TEMPFAIL */

struct process {
    struct program program;
    struct store *store;
    struct monitor *monitor;
    struct presence *presence;
    struct post_site site;
    struct sender *sender;
};

static bool ready(void *arg, struct buf *reasons)
{
    struct process *process = arg;
    struct err err = {0};
    bool database = store_ping(process->store, &err) == ERR_OK;
    buf_addf(reasons, "\"database\":%s,\"leading\":%s", database ? "true" : "false",
             metric_value(&stat_leading, 0) ? "true" : "false");
    return database;
}

static enum err_code start_monitor(struct process *process, struct err *err)
{
    const struct monitor_config cfg = {.service = SERVICE,
                                       .listen = process->program.cfg->webhook_monitor_listen,
                                       .port = (uint16_t)process->program.cfg->webhook_monitor_port,
                                       .ready = ready,
                                       .arg = process};
    return cfg.port ? monitor_start(&cfg, &process->monitor, err) : ERR_OK;
}

static enum err_code serve(struct process *process, struct err *err)
{
    const struct store_config store = servers_store(process->program.cfg);
    struct err waited = {0};
    enum err_code rc = post_start(err);
    if (rc == ERR_OK)
        rc = store_open(&store, &process->store, err);
    if (rc)
        return rc;
    stats_add(process->store);
    rc = start_monitor(process, err);
    if (rc == ERR_OK)
        rc = presence_start(process->store, SERVICE, &process->presence, err);
    if (rc == ERR_OK && store_wait_ready(process->store, daemon_stop_flag(), &waited) != ERR_OK)
        return ERR_OK; /* the end was asked for before the database came */
    const struct sender_config sender = {process->program.cfg, process->store, &process->site};
    if (rc == ERR_OK)
        rc = sender_open(&sender, &process->sender, err);
    if (rc)
        return rc;
    log_event(LOG_INFO, "webhook.ready");
    daemon_notify("READY=1");
    return sender_run(process->sender, err);
}

static void end(struct process *process)
{
    sender_free(process->sender);
    monitor_stop(process->monitor);
    presence_stop(process->presence);
    store_free(process->store);
    post_end();
}

static int run(struct process *process, struct err *err)
{
    const struct daemon_calls calls = {.reload = program_reload, .arg = &process->program};
    enum err_code rc = daemon_start(&calls, err);
    if (rc == ERR_OK)
        rc = serve(process, err);
    if (rc)
        log_err("webhook.ended", err);
    end(process);
    log_event(LOG_INFO, "webhook.stopped", LOG_B("fenced", rc == ERR_FENCED));
    store_thread_end();
    if (rc)
        (void)fprintf(stderr, SERVICE ": %s\n", err->text);
    return rc == ERR_FENCED ? EXIT_FENCED : rc != ERR_OK;
}

static enum err_code read_networks(struct process *process, struct err *err)
{
    enum err_code rc = address_nets_parse(process->program.cfg->webhook_allow_networks,
                                          &process->site.allowed, err);
    if (rc)
        err_prefix(err, "webhook.allow_networks: ");
    process->site.cfg = process->program.cfg;
    return rc;
}

int main(int argc, char **argv)
{
    struct process process = {.program = {.name = SERVICE, .argc = argc, .argv = argv}};
    struct err err = {0};
    int status = 0;
    if (!program_begin(&process.program, &status))
        return status;
    status = read_networks(&process, &err) ? program_refuse(&process.program, &err)
                                           : run(&process, &err);
    config_free(process.program.cfg);
    return status;
}
