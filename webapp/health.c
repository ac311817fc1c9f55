/* SPDX-License-Identifier: MIT */
#include "webapp/handlers.h"

#include "common/service/daemon.h"
#include "common/service/metrics.h"
#include "webapp/probe.h"
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
    bool database = probe_database(req->web->probe, &why) == ERR_OK;
    bool stopping = daemon_stopping();
    bool ready = database && !stopping && broker != BUS_BLOCKED;
    json_t *reasons = json_pack("{s:s,s:s,s:b}", "database", database ? "up" : why.text, "broker",
                                broker_text(broker), "stopping", stopping);
    reply_json(req, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
               json_pack("{s:s,s:o}", "status", ready ? "ready" : "not ready", "reasons", reasons));
    return ERR_OK;
}

enum err_code metrics(struct request *req, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(METRICS_LIMIT);
    probe_count(req->web->probe);
    if (metrics_write(&text, "sluice-web"))
        probe_write_jobs(req->web->probe, &text);
    if (text.failed)
        return err_set(err, ERR_NOMEM, "the metrics do not fit");
    reply_text(req, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &text);
    return ERR_OK;
}
