/* SPDX-License-Identifier: MIT */
#include "webapp/handlers.h"

#include "common/base/openssl.h"
#include "common/service/daemon.h"
#include "common/service/metrics.h"
#include "webapp/probe.h"
#include "webapp/web.h"

#include <openssl/crypto.h>
#include <strings.h>

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

static const char *keys_text(struct auth_trouble trouble)
{
    if (trouble.all)
        return "down: the folders of keys cannot be read, and nobody is let in; the log of this "
               "process has the reason";
    return trouble.folders > 0 ? "up, but for folders of keys that cannot be read: the log of this "
                                 "process has which"
                               : "up";
}

/* Ready is who can accept a job: the database decides, and whether anybody could be let in. A
 * broker that is away is told, but does not make us useless: the row is the promise. One that is
 * blocked does. */
enum err_code readyz(struct request *req, struct err *err)
{
    (void)err;
    struct err why = {0};
    enum bus_state broker = bus_publisher_state(req->web->pub);
    bool database = probe_database(req->web->probe, &why) == ERR_OK;
    bool stopping = daemon_stopping();
    struct auth_trouble keys = auth_trouble(req->web->auth);
    bool ready = database && !stopping && !keys.all && broker != BUS_BLOCKED;
    json_t *reasons =
        json_pack("{s:s,s:s,s:s,s:b}", "database",
                  database ? "up" : "down: the log of this process has the reason", "broker",
                  broker_text(broker), "keys", keys_text(keys), "stopping", stopping);
    reply_json(req, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
               json_pack("{s:s,s:o}", "status", ready ? "ready" : "not ready", "reasons", reasons));
    return ERR_OK;
}

/* Anybody may ask. What names tenants and queues is for who watches the site; that somebody asks
 * from this host says nothing behind a proxy. */
static bool may_see_tenants(const struct request *req)
{
    static const char scheme[] = "Bearer ";
    struct sv token = sv_of(req->web->cfg->web_metrics_token);
    struct sv sent = request_header(req, HEADER_AUTHORIZATION);
    return token.len > 0 && sent.len == strlen(scheme) + token.len &&
           strncasecmp(sent.ptr, scheme, strlen(scheme)) == 0 &&
           CRYPTO_memcmp(sent.ptr + strlen(scheme), token.ptr, token.len) == 0;
}

enum err_code metrics(struct request *req, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(METRICS_LIMIT);
    probe_count(req->web->probe);
    bool written = metrics_write(&text, "sluice-web");
    if (written && may_see_tenants(req))
        probe_write_jobs(req->web->probe, &text);
    if (text.failed)
        return err_set(err, ERR_NOMEM, "the metrics do not fit");
    reply_text(req, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &text);
    return ERR_OK;
}
