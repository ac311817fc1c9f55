/* SPDX-License-Identifier: MIT */
#include "webapp/handlers.h"

#include "common/base/clock.h"
#include "common/service/daemon.h"
#include "common/service/metrics.h"
#include "common/store/job_store.h"
#include "webapp/web.h"

#define METRICS_LIMIT ((size_t)1024 * 1024)

enum err_code livez(struct request *req, struct err *err)
{
    (void)err;
    reply_json(req, MHD_HTTP_OK, json_pack("{s:s}", "status", "live"));
    return ERR_OK;
}

static const char *broker_text(enum bus_state state)
{
    switch (state) {
    case BUS_UP:
        return "up";
    case BUS_BLOCKED:
        return "blocked: it is short of memory or disk and takes no messages";
    case BUS_DOWN:
        break;
    }
    return "down: jobs are accepted and sent when it is back";
}

/* Ready is who can accept a job: the database decides. A broker that is away is told, but does not
 * make us useless: the row is the promise. One that is blocked does. */
enum err_code readyz(struct request *req, struct err *err)
{
    (void)err;
    struct err why = {0};
    enum bus_state broker = bus_publisher_state(req->web->pub);
    bool database = store_ping(req->web->store, &why) == ERR_OK;
    bool stopping = daemon_stopping();
    bool ready = database && !stopping && broker != BUS_BLOCKED;
    json_t *reasons = json_pack("{s:s,s:s,s:b}", "database", database ? "up" : why.text, "broker",
                                broker_text(broker), "stopping", stopping);
    reply_json(req, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
               json_pack("{s:s,s:o}", "status", ready ? "ready" : "not ready", "reasons", reasons));
    return ERR_OK;
}

/* Jobs that have not ended, by queue and status; left out while the database cannot be asked. Each
 * web process of a site tells the same numbers: take their maximum, not their sum. */
static void add_job_counts(struct web *web, struct buf *text)
{
    struct job_count *counts = NULL;
    size_t count = 0;
    struct err err = {0};
    if (job_store_counts(web->store, &counts, &count, &err) != ERR_OK)
        return;
    buf_add_text(text, "# HELP sluice_jobs Jobs that have not ended\n# TYPE sluice_jobs gauge\n");
    for (size_t i = 0; i < count; i++)
        buf_addf(text, "sluice_jobs{tenant=\"%s\",queue=\"%s\",status=\"%s\"} %llu\n",
                 counts[i].tenant, counts[i].queue, job_state_text(counts[i].status),
                 (unsigned long long)counts[i].jobs);
    buf_add_text(text, "# HELP sluice_oldest_age_seconds Age of the oldest job of these\n"
                       "# TYPE sluice_oldest_age_seconds gauge\n");
    for (size_t i = 0; i < count; i++)
        buf_addf(text, "sluice_oldest_age_seconds{tenant=\"%s\",queue=\"%s\",status=\"%s\"} %.3f\n",
                 counts[i].tenant, counts[i].queue, job_state_text(counts[i].status),
                 (double)(clock_wall_us() - counts[i].oldest_us) / 1e6);
    free(counts);
}

enum err_code metrics(struct request *req, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(METRICS_LIMIT);
    if (metrics_write(&text, "sluice-web"))
        add_job_counts(req->web, &text);
    if (text.failed)
        return err_set(err, ERR_NOMEM, "the metrics do not fit");
    reply_text(req, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &text);
    return ERR_OK;
}
