/* SPDX-License-Identifier: MIT */
#include "webapp/exchange.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "webapp/audit_note.h"
#include "webapp/framing.h"
#include "webapp/web.h"

#include <errno.h>

#define SMALL_BODY_BYTES 16384u /* up to this a body is taken before its token is checked */
#define LARGE_BYTES 32768u      /* what such a request took is given back to the system */

struct exchange *exchange_new(struct server *server, const char *uri)
{
    struct exchange *x = calloc(1, sizeof(*x));
    if (!x)
        return NULL;
    x->server = server;
    x->refs = 1;
    x->began_ms = clock_mono_ms();
    x->req.web = server->web;
    x->req.body = BUF_INIT(server->web->cfg->web_body_max_bytes);
    x->refusal.code = uri_parse(uri, &x->req.uri, &x->refusal);
    return x;
}

void exchange_drop(struct exchange *x)
{
    if (atomic_fetch_sub(&x->refs, 1) != 1)
        return;
    struct server *server = x->server;
    bool large = x->req.body.len + x->req.reply.bytes >= LARGE_BYTES;
    request_done(&x->req);
    if (x->late.response)
        MHD_destroy_response(x->late.response);
    free(x);
    if (large) /* not before: the clock's thread could give back what is not free yet */
        atomic_store(&server->freed_much, true);
}

bool exchange_advance(struct exchange *x, enum stage stage)
{
    pthread_mutex_lock(&x->server->lock);
    bool alive = !x->conn->killed;
    if (alive)
        x->stage = stage;
    pthread_mutex_unlock(&x->server->lock);
    return alive;
}

/* ---- the head -------------------------------------------------------------------------------- */

static void read_headers(struct exchange *x)
{
    static const char *const names[] = {
#define HEADER(id, name) name,
#include "webapp/header.def"
#undef HEADER
    };
    for (size_t i = 0; i < HEADER_COUNT; i++) {
        const char *value = MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, names[i]);
        x->req.header[i] = value ? strdup(value) : NULL;
        if (value && !x->req.header[i]) /* without it, it would be another request */
            (void)err_set(&x->refusal, ERR_NOMEM, "out of memory for the header");
    }
    request_set_id(&x->req, x->req.header[HEADER_REQUEST_ID]);
    request_set_trace(&x->req, x->req.header[HEADER_TRACEPARENT]);
}

static enum err_code check_head(struct exchange *x, const char *method, struct err *err)
{
    struct request *req = &x->req;
    const union MHD_ConnectionInfo *head =
        MHD_get_connection_info(x->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (head && head->header_size > req->web->cfg->web_header_max_bytes)
        return err_set(err, ERR_HEADERS,
                       "the header has %zu bytes; the limit is %llu (web.header_max_bytes)",
                       head->header_size, (unsigned long long)req->web->cfg->web_header_max_bytes);
    if (atomic_load(&x->server->stopping))
        return err_set(err, ERR_STOPPING, "this process is stopping: ask again");
    if (err->code)
        return err->code; /* the URI */
    route_find(&req->uri, method, &req->match);
    req->route = req->match.route;
    if (!req->uri.path_is_text && !(req->route && route_takes_bytes(req->route)))
        return err_set(err, ERR_MALFORMED, "the path is not UTF-8");
    if (!req->match.allow[0])
        return err_set(err, ERR_NOT_FOUND, "there is nothing at this path");
    if (!req->route)
        return err_set(err, ERR_METHOD, "this path takes %s", req->match.allow);
    req->body.limit = route_body_max(req->route, req->web->cfg->web_body_max_bytes);
    return ERR_OK;
}

/* These hold no thread for long, whatever becomes of the database. */
static bool is_quick(const struct route *route)
{
    return route->id == ROUTE_readyz || route->id == ROUTE_metrics || route->id == ROUTE_whoami ||
           route->id == ROUTE_openapi;
}

/* Suspends the connection and gives the request to a handler thread. */
static enum MHD_Result hand_over(struct exchange *x, bool check_only)
{
    struct server *server = x->server;
    struct pool *pool = is_quick(x->req.route) ? server->quick : server->pool;
    if (pool_waiting(pool) >= server->web->cfg->web_queue_max) {
        pthread_mutex_lock(&server->lock);
        server->overloaded++;
        pthread_mutex_unlock(&server->lock);
        (void)err_set(
            &x->refusal, ERR_OVERLOADED,
            "all handler threads are busy, and %u requests wait for one (web.threads = %u, "
            "web.queue_max): try again soon",
            pool_waiting(pool), server->web->cfg->web_threads);
        return MHD_NO;
    }
    x->handed_ms = clock_mono_ms();
    x->check_only = check_only;
    atomic_store(&x->in_line, true);
    if (!exchange_advance(x, check_only ? STAGE_CHECK : STAGE_HANDLE))
        return MHD_NO;
    atomic_fetch_add(&x->refs, 1);
    MHD_suspend_connection(x->mhd);
    pool_push(pool, POOL_NEW, &x->item);
    return MHD_YES;
}

/* Of what is no page nothing is to be shown as one, however a browser came by it. */
#define NO_DOCUMENT "default-src 'none'; frame-ancestors 'none'; sandbox"

static void log_answer(const struct exchange *x, const struct reply *reply)
{
    const struct request *req = &x->req;
    bool is_late = reply == &x->late; /* a handler thread may write to the request still */
    log_event(LOG_DEBUG, "http.answer", LOG_S("id", req->id),
              LOG_S("route", req->route ? req->route->name : NULL),
              LOG_V("path", ((struct sv){req->uri.raw, req->uri.path_length})),
              LOG_U("status", reply->status), LOG_S("tenant", is_late ? NULL : req->who.tenant),
              LOG_S("user", is_late ? NULL : req->who.user),
              LOG_I("ms", clock_mono_ms() - x->began_ms));
}

static void put_headers(const struct exchange *x, struct MHD_Response *response)
{
    const struct server *server = x->server;
    (void)MHD_add_response_header(response, "X-Request-Id", x->req.id);
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (!MHD_get_response_header(response, "Content-Security-Policy"))
        (void)MHD_add_response_header(response, "Content-Security-Policy", NO_DOCUMENT);
    if (!MHD_get_response_header(response, "Cache-Control"))
        (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    if (x->req.trace[0])
        (void)MHD_add_response_header(response, "traceparent", x->req.trace);
    if (server->tls && server->hsts[0])
        (void)MHD_add_response_header(response, "Strict-Transport-Security", server->hsts);
    cors_answer(server->cors, x->req.header[HEADER_ORIGIN], response);
    if (atomic_load(&server->stopping) || x->must_close)
        (void)MHD_add_response_header(response, "Connection", "close");
}

static enum MHD_Result send_reply(struct exchange *x, struct reply *reply)
{
    x->sent_ms = clock_mono_ms(); /* nobody looks at these before the stage says so */
    x->is_stream = reply->is_stream;
    if (!exchange_advance(x, STAGE_SENT) || !reply->response)
        return MHD_NO;
    struct MHD_Response *response = reply->response;
    reply->response = NULL;
    put_headers(x, response);
    log_answer(x, reply);
    web_count_request(x->req.web, x->req.route, reply->status, clock_mono_ms() - x->began_ms);
    enum MHD_Result result = MHD_queue_response(x->mhd, reply->status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct exchange *x)
{
    reply_error(&x->req, &x->refusal);
    audit_answered(&x->req, x->req.reply.status, &x->refusal);
    return send_reply(x, &x->req.reply);
}

/* The client waits for our word, or would send much for nothing: MHD closes the connection behind
 * the answer. Else the body is taken and dropped: who still sends might not read the answer. */
static bool is_better_refused_now(const struct exchange *x, uint64_t size)
{
    return x->refusal.code && size > 0 &&
           (x->req.header[HEADER_EXPECT] || (size != UINT64_MAX && size > DISCARD_MAX_BYTES));
}

static enum MHD_Result on_checked(struct exchange *x)
{
    if (is_better_refused_now(x, exchange_body_size(x)))
        return refuse(x);
    return exchange_advance(x, STAGE_BODY) ? MHD_YES : MHD_NO;
}

static enum MHD_Result on_head(struct exchange *x, const struct request_line *line)
{
    struct request *req = &x->req;
    struct err framing = {0};
    read_headers(x);
    x->is_head = strcmp(line->method, "HEAD") == 0;
    x->must_close = framing_check(x->mhd, line, &framing) != ERR_OK;
    if (x->must_close) {
        x->refusal = framing;
        return refuse(x);
    }
    if (check_head(x, line->method, &x->refusal) == ERR_OK)
        (void)conn_take_turn(x, &x->refusal);
    if (x->must_close)
        return refuse(x);
    uint64_t size = exchange_body_size(x);
    if (x->refusal.code == ERR_OK && size > 0 && route_has_body(req->route))
        x->refusal.code = exchange_check_body(x, size, &x->refusal);
    x->ignore_body = x->refusal.code != ERR_OK || !route_has_body(req->route);
    if (is_better_refused_now(x, size))
        return refuse(x);
    if (!exchange_advance(x, STAGE_BODY))
        return MHD_NO;
    if (!x->ignore_body && size > SMALL_BODY_BYTES && hand_over(x, true) != MHD_YES)
        x->ignore_body = true;
    return MHD_YES;
}

/* ---- behind the body --------------------------------------------------------------------------
 */

static enum MHD_Result answer_options(struct exchange *x)
{
    reply_empty(&x->req, MHD_HTTP_NO_CONTENT);
    reply_header(&x->req, "Allow", x->req.match.allow);
    if (x->req.reply.response)
        cors_preflight(x->server->cors, x->req.header[HEADER_ORIGIN], x->req.match.allow,
                       x->req.reply.response);
    return send_reply(x, &x->req.reply);
}

static enum MHD_Result on_end(struct exchange *x, const char *method)
{
    if (x->refusal.code == ERR_METHOD && strcmp(method, "OPTIONS") == 0)
        return answer_options(x);
    if (x->refusal.code)
        return refuse(x);
    if (x->req.route->id == ROUTE_livez) { /* answered however busy the handler threads are */
        enum err_code rc = request_check(&x->req, &x->refusal);
        if (rc == ERR_OK)
            rc = x->req.route->handler(&x->req, &x->refusal);
        return rc ? refuse(x) : send_reply(x, &x->req.reply);
    }
    if (hand_over(x, false) == MHD_YES)
        return MHD_YES;
    return x->refusal.code ? refuse(x) : MHD_NO;
}

enum MHD_Result exchange_step(struct exchange *x, struct request_line line, const char *bytes,
                              size_t *size)
{
    pthread_mutex_lock(&x->server->lock);
    enum stage stage = x->stage;
    bool killed = x->conn->killed;
    pthread_mutex_unlock(&x->server->lock);
    if (killed)
        return MHD_NO;
    if (stage == STAGE_HEAD)
        return on_head(x, &line);
    if (stage == STAGE_ANSWERED)
        return send_reply(x, &x->req.reply);
    if (stage == STAGE_LATE) {
        if (x->late.response)
            log_event(LOG_WARN, "http.late", LOG_S("id", x->req.id),
                      LOG_S("route", x->req.route->name), LOG_U("status", x->late.status));
        return send_reply(x, &x->late);
    }
    if (stage == STAGE_CHECKED && *size == 0)
        return on_checked(x);
    if (stage != STAGE_BODY && stage != STAGE_CHECKED)
        return MHD_YES;
    return *size > 0 ? exchange_on_bytes(x, bytes, size) : on_end(x, line.method);
}

/* ---- on a handler thread --------------------------------------------------------------------- */

static void resume_as(struct exchange *x, enum stage from, enum stage to)
{
    pthread_mutex_lock(&x->server->lock);
    bool ours = x->stage == from; /* else the clock was first */
    if (ours)
        x->stage = to;
    pthread_mutex_unlock(&x->server->lock);
    if (ours)
        MHD_resume_connection(x->mhd);
}

static enum err_code handle(struct request *req, struct err *err)
{
    if (!req->is_checked) {
        enum err_code rc = request_check(req, err);
        if (rc)
            return rc;
    }
    struct audit_entry entry;
    audit_begin(req, &entry);
    enum err_code rc = req->then ? req->then(req, err) : req->route->handler(req, err);
    if (rc == REQUEST_PARKED) /* it is somebody else's now; no act parks before it has committed */
        (void)audit_disarm();
    else
        audit_end(req);
    /* Descriptors come back when other requests end: it is worth asking again. */
    if (rc == ERR_IO && (err->sys_errno == EMFILE || err->sys_errno == ENFILE))
        rc = err->code = ERR_OVERLOADED;
    return rc;
}

void exchange_answer(struct exchange *x, enum err_code rc, const struct err *err)
{
    struct err unread = {0};
    if (rc == ERR_OK && request_hold_answer(&x->req, &unread) != ERR_OK) {
        rc = unread.code;
        err = &unread;
    }
    if (rc)
        reply_error(&x->req, err);
    audit_answered(&x->req, x->req.reply.status, err);
    resume_as(x, STAGE_HANDLE, STAGE_ANSWERED);
    exchange_drop(x);
}

void exchange_run(struct pool_item *item)
{
    struct exchange *x = (struct exchange *)item;
    struct err err = {0};
    if (!atomic_exchange(&x->in_line, false) && !x->req.then) { /* the clock gave it up */
        exchange_drop(x);
        return;
    }
    log_set_request(x->req.id);
    if (x->check_only) {
        x->refusal.code = request_check(&x->req, &x->refusal);
        resume_as(x, STAGE_CHECK, STAGE_CHECKED);
        exchange_drop(x);
    } else {
        err.list = &x->req.faults;
        enum err_code rc = handle(&x->req, &err);
        if (rc != REQUEST_PARKED)
            exchange_answer(x, rc, &err);
    }
    log_set_request(NULL);
}
