/* SPDX-License-Identifier: MIT */
#include "webapp/web.h"

#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/service/metrics.h"
#include "common/store/job_store.h"
#include "webapp/audit_note.h"
#include "webapp/follow.h"
#include "webapp/job_wait.h"
#include "webapp/listen.h"
#include "webapp/probe.h"

static struct metric answers =
    METRIC_COUNTER_BY("sluice_http_answers_total", "Answers by class of status", "class", "1xx",
                      "2xx", "3xx", "4xx", "5xx");
static struct metric request_seconds =
    METRIC_HISTOGRAM("sluice_http_request_seconds", "From the first byte to the answer");
static struct metric limited =
    METRIC_COUNTER_BY("sluice_http_limited_total", "Requests past the share of whoever sends them",
                      "whose", "address", "user");
static struct metric submit_seconds =
    METRIC_HISTOGRAM("sluice_submit_seconds", "From the parsed request to its commit");

static struct metric by_route = {
    .name = "sluice_http_requests_total",
    .help = "Requests by group of routes",
    .type = METRIC_IS_COUNTER,
    .label = "group",
    .values = {"jobs", "queues", "apps", "workers", "other", "none"},
};
enum group { GROUP_JOBS, GROUP_QUEUES, GROUP_APPS, GROUP_WORKERS, GROUP_OTHER, GROUP_NONE };

static int64_t read_server(void *arg, size_t which)
{
    struct web *web = arg;
    struct server_counters counters;
    server_counters(web->server, &counters);
    const int64_t values[] = {
        counters.connections,         counters.waiting, counters.busy, (int64_t)counters.timed_out,
        (int64_t)counters.overloaded,
    };
    return values[which];
}

static int64_t read_connections(void *arg)
{
    return read_server(arg, 0);
}

static int64_t read_waiting(void *arg)
{
    return read_server(arg, 1);
}

static int64_t read_busy(void *arg)
{
    return read_server(arg, 2);
}

static int64_t read_timed_out(void *arg)
{
    return read_server(arg, 3);
}

/* 0: no TLS. */
static int64_t read_tls_expires(void *arg)
{
    const struct web *web = arg;
    return server_tls_expires_s(web->server);
}

static int64_t read_overloaded(void *arg)
{
    return read_server(arg, 4);
}

/* -1 while the database cannot be asked. */
static int64_t read_outbox(void *arg)
{
    const struct web *web = arg;
    return probe_outbox_rows(web->probe);
}

static int64_t read_unserved(void *arg)
{
    const struct web *web = arg;
    return probe_unserved_queues(web->probe);
}

static int64_t read_hook_lag(void *arg)
{
    const struct web *web = arg;
    return probe_hook_lag_s(web->probe);
}

static int64_t read_broker(void *arg)
{
    const struct web *web = arg;
    return bus_publisher_state(web->pub) == BUS_UP;
}

static int64_t read_db_in_use(void *arg)
{
    const struct web *web = arg;
    struct store_counters counters;
    store_counters(web->store, &counters);
    return counters.in_use;
}

static int64_t read_waits(void *arg)
{
    const struct web *web = arg;
    return (int64_t)waiters_count(web->waiters);
}

static int64_t read_followers(void *arg)
{
    const struct web *web = arg;
    return (int64_t)followers_count(web->followers);
}

static int64_t read_listeners(void *arg)
{
    const struct web *web = arg;
    struct listen_counters counters;
    listeners_counters(web->listeners, &counters);
    return (int64_t)counters.listeners;
}

static int64_t read_listeners_dropped(void *arg)
{
    const struct web *web = arg;
    struct listen_counters counters;
    listeners_counters(web->listeners, &counters);
    return (int64_t)counters.dropped;
}

static int64_t read_audit_waiting(void *arg)
{
    const struct web *web = arg;
    return (int64_t)auditor_waiting(web->auditor);
}

static int64_t read_audit_lost(void *arg)
{
    const struct web *web = arg;
    return (int64_t)auditor_lost(web->auditor);
}

static int64_t read_auth_refused(void *arg)
{
    const struct web *web = arg;
    struct auth_trouble trouble = auth_trouble(web->auth);
    return trouble.all ? -1 : (int64_t)trouble.folders;
}

static struct metric gauges[] = {
    METRIC_GAUGE_OF("sluice_auth_folders_refused",
                    "Folders of keys that cannot be read, or are too many; -1: none can",
                    read_auth_refused),
    METRIC_GAUGE_OF("sluice_http_waits", "Requests that wait for the end of a job", read_waits),
    METRIC_GAUGE_OF("sluice_http_followers", "Streams of output", read_followers),
    METRIC_GAUGE_OF("sluice_audit_waiting", "Audit rows that are not written yet",
                    read_audit_waiting),
    METRIC_COUNTER_OF("sluice_audit_lost_total", "Audit rows that were too many and are lost",
                      read_audit_lost),
    METRIC_GAUGE_OF("sluice_http_listeners", "Streams of events", read_listeners),
    METRIC_COUNTER_OF("sluice_http_listeners_dropped_total", "Listeners who read too slowly",
                      read_listeners_dropped),
    METRIC_GAUGE_OF("sluice_tls_certificate_expires_timestamp_seconds",
                    "When the certificate of the listener ends; 0: no TLS", read_tls_expires),
    METRIC_GAUGE_OF("sluice_http_connections", "Open connections", read_connections),
    METRIC_GAUGE_OF("sluice_http_waiting", "Requests that wait for a thread", read_waiting),
    METRIC_GAUGE_OF("sluice_http_busy_threads", "Threads that handle a request", read_busy),
    METRIC_COUNTER_OF("sluice_http_timed_out_total", "Requests past their deadline",
                      read_timed_out),
    METRIC_COUNTER_OF("sluice_http_overloaded_total", "Requests refused for want of a thread",
                      read_overloaded),
    METRIC_GAUGE_OF("sluice_outbox_rows", "Messages promised and not confirmed; -1: unknown",
                    read_outbox),
    METRIC_GAUGE_OF("sluice_queues_unserved",
                    "Queues with waiting jobs that no worker takes; -1: unknown", read_unserved),
    METRIC_GAUGE_OF("sluice_webhook_lag_seconds",
                    "How long ago the oldest event was that sluice-webhook has not looked through "
                    "while somebody subscribes, or that waits while none runs; -1: unknown",
                    read_hook_lag),
    METRIC_GAUGE_OF("sluice_broker_up", "1 while the broker takes messages", read_broker),
    METRIC_GAUGE_OF("sluice_db_connections_in_use", "Database connections at work", read_db_in_use),
};

void web_metrics_start(struct web *web)
{
    metrics_add(&answers);
    metrics_add(&by_route);
    metrics_add(&limited);
    metrics_add(&request_seconds);
    metrics_add(&submit_seconds);
    for (size_t i = 0; i < ARRAY_LEN(gauges); i++) {
        gauges[i].arg = web;
        metrics_add(&gauges[i]);
    }
}

static enum group group_of(const struct route *route)
{
    static const struct {
        const char *path;
        enum group group;
    } groups[] = {
        {"/v1/jobs", GROUP_JOBS},
        {"/v1/queues", GROUP_QUEUES},
        {"/v1/apps", GROUP_APPS},
        {"/v1/workers", GROUP_WORKERS},
    };
    if (!route)
        return GROUP_NONE;
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        if (strncmp(route->path, groups[i].path, strlen(groups[i].path)) == 0)
            return groups[i].group;
    }
    return GROUP_OTHER;
}

void web_count_request(struct web *web, const struct route *route, unsigned status, int64_t took_ms)
{
    (void)web;
    metric_count(&answers, status / 100 - 1, 1);
    metric_count(&by_route, group_of(route), 1);
    metric_observe_us(&request_seconds, took_ms * 1000);
}

void web_count_limited(bool is_user)
{
    metric_count(&limited, is_user, 1);
}

void web_count_submit_us(int64_t took_us)
{
    metric_observe_us(&submit_seconds, took_us);
}

void web_request_sent(const struct request *req)
{
    if (req->route && req->route->id == ROUTE_job_submit)
        FAULT("web.answered");
}
