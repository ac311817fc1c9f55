/* SPDX-License-Identifier: MIT */
/* sluice-web: the REST service. */
#include "webapp/web.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/model/ended.h"
#include "common/service/daemon.h"
#include "common/service/presence.h"
#include "common/service/servers.h"
#include "common/store/site_store.h"
#include "webapp/allowance.h"
#include "webapp/audit_note.h"
#include "webapp/follow.h"
#include "webapp/job_wait.h"
#include "webapp/listen.h"
#include "webapp/openapi.h"
#include "webapp/probe.h"
#include "webapp/share.h"
#include "webapp/sweeper.h"
#include "webapp/ui.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#define SERVICE "sluice-web"
#define METRICS_TOKEN_MIN 32
#define STOP_GRACE_MS 10000

/* ---- the parts ------------------------------------------------------------------------------- */

static enum err_code open_store(struct web *web, struct err *err)
{
    const struct store_config store = servers_store(web->cfg);
    return store_open(&store, &web->store, err);
}

/* "<tenant>.ended.<job>", or of several jobs, which are in the body then. */
static void on_event(void *arg, struct sv routing_key, struct sv body)
{
    struct web *web = arg;
    struct uuid ids[ENDED_JOBS_MAX];
    struct err err = {0};
    size_t count = 1;
    const char *dot = routing_key.len ? memrchr(routing_key.ptr, '.', routing_key.len) : NULL;
    if (!dot)
        return;
    struct sv text = {dot + 1, routing_key.len - (size_t)(dot + 1 - routing_key.ptr)};
    if (!uuid_parse(text, &ids[0]) && ended_read(body, ids, &count, &err) != ERR_OK)
        return; /* of a later version: they look by themselves, only later */
    for (size_t i = 0; i < count; i++) {
        waiters_wake(web->waiters, &ids[i]);
        followers_wake(web->followers, &ids[i]);
    }
    listeners_wake(web->listeners);
}

static enum err_code open_bus(struct web *web, struct err *err)
{
    static const char *const keys[] = {"*.ended.*"};
    const struct config *cfg = web->cfg;
    const struct bus_config bus = servers_bus(cfg, SERVICE);
    const struct bus_consumer_setup events = {
        .inbox = {.exchange = BUS_EVENTS, .keys = keys, .key_count = ARRAY_LEN(keys)},
        .arg = web,
        .on_message = on_event,
    };
    enum err_code rc = bus_publisher_open(&bus, &web->pub, err);
    if (rc == ERR_OK)
        rc = bus_consumer_open(&bus, &events, &web->events, err);
    return rc;
}

static enum err_code open_auth(struct web *web, struct err *err)
{
    const struct auth_config cfg = auth_config_of(web->cfg);
    return auth_open(&cfg, &web->auth, err);
}

static enum err_code open_outbox(struct web *web, struct err *err)
{
    const struct outbox_config cfg = {
        .store = web->store,
        .pub = web->pub,
        .age_ms = web->cfg->web_outbox_age_ms,
        .fault_confirmed = "web.confirmed",
    };
    return outbox_open(&cfg, &web->outbox, err);
}

static enum err_code open_users(struct web *web, struct err *err)
{
    const struct share_limits limits = {
        .whose = "user",
        .per_s = web->cfg->web_requests_per_s_per_user,
        .at_once = web->cfg->web_requests_per_user,
        .bytes = web->cfg->web_bytes_per_user,
    };
    return shares_open(&limits, &web->users, err);
}

static enum err_code read_networks(struct web *web, struct err *err)
{
    enum err_code rc =
        address_nets_parse(web->cfg->webhook_allow_networks, &web->hook_networks, err);
    if (rc)
        err_prefix(err, "webhook.allow_networks: ");
    return rc;
}

/* One that can be guessed is none: /metrics is open to everybody, and asked without a limit. */
static enum err_code check_metrics_token(const struct config *cfg, struct err *err)
{
    size_t length = strlen(cfg->web_metrics_token);
    if (length == 0 || length >= METRICS_TOKEN_MIN)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "web.metrics_token has %zu characters: give it %d or more, or none", length,
                   METRICS_TOKEN_MIN);
}

static enum err_code read_cursor_secret(void *arg, uint8_t *ret_secret, struct err *err)
{
    struct web *web = arg;
    return site_store_secret(web->store, "cursor", ret_secret, err);
}

static enum err_code web_open(struct web *web, struct err *err)
{
    cursor_key_init(web->cfg, read_cursor_secret, web, &web->cursor_key);
    enum err_code rc = check_metrics_token(web->cfg, err);
    if (rc == ERR_OK)
        rc = fs_open_dir(web->cfg->archive_root, true, &web->archive_fd, err);
    if (rc == ERR_OK)
        rc = read_networks(web, err);
    if (rc == ERR_OK)
        rc = ui_open(web->cfg->web_ui_dir, &web->ui, err);
    if (rc == ERR_OK)
        rc = open_auth(web, err);
    if (rc == ERR_OK)
        rc = open_store(web, err);
    if (rc == ERR_OK)
        rc = auditor_open(web->store, &web->auditor, err);
    if (rc == ERR_OK)
        rc = waiters_open(web, &web->waiters, err);
    if (rc == ERR_OK)
        rc = followers_open(web, &web->followers, err);
    if (rc == ERR_OK)
        rc = listeners_open(web, &web->listeners, err);
    if (rc == ERR_OK)
        rc = router_open(web->store, &web->router, err);
    if (rc == ERR_OK)
        rc = sweeper_open(web->store, web->cfg->limits_idempotency_hours, &web->sweeper, err);
    if (rc == ERR_OK)
        rc = presence_start(web->store, SERVICE, &web->presence, err);
    if (rc == ERR_OK)
        rc = open_bus(web, err);
    if (rc == ERR_OK)
        rc = open_outbox(web, err);
    if (rc == ERR_OK)
        rc = submitter_open(web->store, web->cfg->web_queue_max, &web->submitter, err);
    if (rc == ERR_OK)
        rc = probe_open(web->cfg, web->store, &web->probe, err);
    if (rc == ERR_OK)
        rc = open_users(web, err);
    if (rc == ERR_OK)
        rc = allowances_open(web->cfg, &web->allowances, err);
    if (rc == ERR_OK)
        rc = server_open(web, &web->server, err);
    if (rc == ERR_OK)
        web_metrics_start(web);
    return rc;
}

/* First nothing new comes in, then what is under way ends, then the parts go. */
static void web_close(struct web *web)
{
    waiters_stop(web->waiters);
    followers_stop(web->followers);
    listeners_stop(web->listeners);
    if (web->server)
        server_stop(web->server, STOP_GRACE_MS);
    submitter_stop(web->submitter);
    server_free(web->server);
    submitter_free(web->submitter);
    ui_free(web->ui);
    outbox_stop(web->outbox);
    bus_consumer_free(web->events);
    bus_publisher_free(web->pub);
    outbox_close(web->outbox);
    router_free(web->router);
    sweeper_free(web->sweeper);
    presence_stop(web->presence);
    probe_close(web->probe);
    auditor_free(web->auditor);
    shares_close(web->users);
    waiters_free(web->waiters);
    followers_free(web->followers);
    listeners_free(web->listeners);
    allowances_close(web->allowances);
    store_free(web->store);
    auth_close(web->auth);
    fd_close(&web->archive_fd);
}

/* ---- the process ----------------------------------------------------------------------------- */

struct process {
    struct web web;
    pthread_mutex_t lock;
    bool is_open; /* lock: web is whole; only then the signal thread looks at it */
    int argc;
    char **argv;
};

static void set_log_level(const struct config *cfg)
{
    enum log_level level;
    if (log_level_parse(sv_of(cfg->log_level), &level))
        log_set_level(level);
}

static void set_open(struct process *process, bool is_open)
{
    pthread_mutex_lock(&process->lock);
    process->is_open = is_open;
    pthread_mutex_unlock(&process->lock);
}

static void reload_web(struct web *web, const struct config *fresh)
{
    struct err err = {0};
    auth_rescan(web->auth);
    if (server_reload(web->server, fresh, &err) != ERR_OK)
        log_err("tls.reload.refused", &err); /* the old certificate is kept */
}

/* The log level; keys and certificates are looked at again. Other settings need a restart. */
static void on_reload(void *arg)
{
    struct process *process = arg;
    struct err err = {0};
    AUTO(config_free) struct config *fresh = NULL;
    struct config_args args = {.argc = process->argc, .argv = process->argv};
    if (config_load(&args, &fresh, &err) != ERR_OK) {
        log_err("config.reload.refused", &err);
        return;
    }
    set_log_level(fresh);
    pthread_mutex_lock(&process->lock);
    if (process->is_open)
        reload_web(&process->web, fresh);
    pthread_mutex_unlock(&process->lock);
    log_event(LOG_INFO, "config.reloaded");
}

static enum err_code serve(struct process *process, struct err *err)
{
    struct web *web = &process->web;
    enum err_code rc = web_open(web, err);
    if (rc)
        return rc;
    set_open(process, true);
    log_event(LOG_INFO, "web.listening", LOG_S("address", web->cfg->web_listen),
              LOG_U("port", server_port(web->server)), LOG_B("tls", server_is_tls(web->server)));
    struct err waited = {0};
    if (store_wait_ready(web->store, daemon_stop_flag(), &waited) == ERR_OK) {
        log_event(LOG_INFO, "web.ready");
        daemon_notify("READY=1");
    }
    daemon_wait_stop();
    return ERR_OK;
}

/* A connection each, and as many again for what they read and for ourselves. */
static void allow_descriptors(const struct config *cfg)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)cfg->web_connections_max * 2 + 256;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted)
        log_event(LOG_WARN, "web.descriptors.few", LOG_U("limit", limit.rlim_cur),
                  LOG_U("wanted", wanted));
}

static int run(struct process *process, struct err *err)
{
    const struct daemon_calls calls = {.reload = on_reload, .arg = process};
    enum err_code rc = daemon_start(&calls, err);
    if (rc == ERR_OK)
        rc = serve(process, err);
    if (rc)
        log_err("web.failed", err);
    set_open(process, false);
    web_close(&process->web);
    if (rc == ERR_OK)
        log_event(LOG_INFO, "web.stopped");
    store_thread_end();
    return rc ? 1 : 0;
}

static int say_contract(void)
{
    json_t *document = openapi_document();
    bool said = document && json_dumpf(document, stdout, JSON_INDENT(1)) == 0 && putchar('\n') > 0;
    json_decref(document);
    return said ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct config_flag flags[] = {
        {.name = "help", .letter = 'h', .doc = "say this"},
        {.name = "version", .doc = "say the version"},
        {.name = "contract", .doc = "say the contract: OpenAPI, as /v1/openapi.json"},
        {.name = NULL},
    };
    struct config_args args = {.argc = argc, .argv = argv, .flags = flags};
    struct process process = {
        .web.archive_fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER, .argc = argc, .argv = argv};
    struct err err = {0};
    log_open(SERVICE, STDOUT_FILENO, LOG_INFO);
    AUTO(config_free) struct config *cfg = NULL;
    enum err_code rc = config_load(&args, &cfg, &err);
    process.web.cfg = cfg;
    if (flags[0].count > 0) {
        printf("usage: " SERVICE " [flags]\n\n");
        config_usage(stdout, flags);
        return 0;
    }
    if (flags[1].count > 0) {
        printf(SERVICE " %s\n", SLUICE_VERSION);
        return 0;
    }
    if (flags[2].count > 0)
        return say_contract();
    if (rc || args.rest < argc) {
        (void)fprintf(stderr, SERVICE ": %s%s\n", rc ? err.text : "unexpected argument ",
                      rc ? "" : argv[args.rest]);
        return 2;
    }
    set_log_level(cfg);
    allow_descriptors(cfg);
    return run(&process, &err);
}
