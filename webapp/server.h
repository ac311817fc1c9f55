/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_SERVER_H
#define WEBAPP_SERVER_H

/* server: HTTP by libmicrohttpd. One thread of it moves bytes; each request is handled by a thread
 * of a bounded pool while its connection is suspended. A clock thread ends what takes too long:
 * a request has web.deadline_ms from its beginning to its last byte (408), as long again for its
 * answer (504), and four times as long until that is read (closed; streams are not limited).
 * Handlers may park a request and have it resumed later. Threads: locked. Memory: server_free()
 * frees. */

#include "common/base/err.h"
#include "webapp/request.h"

struct server;

/* Listens at once. web must outlive the server. */
MUST_USE enum err_code server_open(struct web *web, struct server **ret_server, struct err *err);
uint16_t server_port(const struct server *server);
/* Connections that begin from now on are shown the certificate that cfg names; on a fault the old
 * one is kept. */
MUST_USE enum err_code server_reload(struct server *server, const struct config *cfg,
                                     struct err *err);
bool server_is_tls(const struct server *server);
int64_t server_tls_expires_s(const struct server *server); /* 0: no TLS */
/* No new connections; requests under way may take up to grace_ms. Parked ones must have been
 * resumed, and streams ended, by their owners. */
void server_stop(struct server *server, int64_t grace_ms);
void server_free(struct server *server); /* NULL is allowed */

/* To be called by a handler before it gives the request away: it has no deadline from now on.
 * false: the clock has answered it already; the handler returns any error then. */
MUST_USE bool server_park(struct request *req);
/* Gives a parked request to a handler thread, which calls then(req). */
void server_resume(struct request *req, route_fn *then);
/* For a handler that gave the request away without parking it (REQUEST_PARKED; its deadline goes
 * on): whoever has it makes the answer and ends with this; rc is not ERR_OK: with err's. The
 * request is gone then. */
void server_answer(struct request *req, enum err_code rc, const struct err *err);
/* For streams: the connection that the answer goes to. */
struct MHD_Connection *server_connection(struct request *req);

struct server_counters {
    unsigned connections;
    unsigned waiting; /* requests in the queue */
    unsigned busy;    /* handler threads at work */
    uint64_t timed_out;
    uint64_t overloaded;
};
void server_counters(struct server *server, struct server_counters *ret_counters);

#endif
