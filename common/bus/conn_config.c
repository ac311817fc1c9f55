/* SPDX-License-Identifier: MIT */
#include "common/bus/conn.h"

#include "common/base/uuid.h"

static const char *text_or(const char *text, const char *other)
{
    return text && text[0] ? text : other;
}

enum err_code conn_copy_config(struct conn *conn, const struct bus_config *from, struct err *err)
{
    struct bus_config *cfg = &conn->cfg;
    *cfg = *from;
    const struct {
        const char **slot;
        const char *text;
    } texts[] = {{&cfg->host, text_or(from->host, "127.0.0.1")},
                 {&cfg->user, text_or(from->user, "guest")},
                 {&cfg->password, text_or(from->password, "guest")},
                 {&cfg->vhost, text_or(from->vhost, "/")},
                 {&cfg->name, text_or(from->name, "sluice")},
                 {&cfg->tls_ca, text_or(from->tls_ca, "")},
                 {&cfg->tls_cert, text_or(from->tls_cert, "")},
                 {&cfg->tls_key, text_or(from->tls_key, "")}};
    size_t size = 0;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        size += strlen(texts[i].text) + 1;
    char *at = conn->texts = malloc(size);
    if (!at)
        return err_set(err, ERR_NOMEM, "no memory for a broker connection");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        size_t length = strlen(texts[i].text) + 1;
        memcpy(at, texts[i].text, length);
        *texts[i].slot = at;
        at += length;
    }
    conn->nodes = hosts_count(cfg->host);
    if (conn->nodes == 0) {
        free(TAKE(conn->texts));
        return err_set(err, ERR_CONFIG, "amqp.host = %s is no list of hosts",
                       text_or(from->host, ""));
    }
    conn->node_at = (unsigned)random_below(conn->nodes); /* a fleet spreads over the nodes */
    cfg->port = from->port > 0 ? from->port : 5672;
    cfg->heartbeat_s = from->heartbeat_s > 0 ? from->heartbeat_s : 10;
    cfg->connect_timeout_ms = from->connect_timeout_ms > 0 ? from->connect_timeout_ms : 5000;
    cfg->confirm_timeout_ms = from->confirm_timeout_ms > 0 ? from->confirm_timeout_ms : 10000;
    cfg->in_flight_max = from->in_flight_max > 0 ? from->in_flight_max : 4096;
    cfg->delivery_limit = from->delivery_limit > 0 ? from->delivery_limit : 20;
    return ERR_OK;
}
