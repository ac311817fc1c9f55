/* SPDX-License-Identifier: MIT */
#include "webapp/server.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "webapp/exchange.h"
#include "webapp/web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#define SILENCE_S 60u /* MHD closes a connection on which nothing moves for so long */
#define POOL_EXTRA_BYTES                                                                           \
    16384 /* beside the header: what MHD needs for a request and its answer                        \
           */
/* With epoll the library (0.9.75) goes round without a pause while a handshake waits for bytes. */
#define BY_POLL (MHD_USE_TLS | MHD_USE_POLL_INTERNAL_THREAD)
#define QUICK_THREADS 4
#define LISTEN_BACKLOG 1024u
#define PARAMETERS_MAX (2 * (size_t)URI_QUERY_MAX)

static struct exchange *exchange_of(struct request *req)
{
    return (struct exchange *)((char *)req - offsetof(struct exchange, req));
}

/* ---- callbacks of MHD, all on its thread ------------------------------------------------------
 */

static struct conn *conn_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct server *server = cls;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        server_conn_open(server, mhd, context);
        return;
    }
    server_conn_close(server, *context);
    *context = NULL;
}

/* MHD keeps a record of each parameter in the connection's memory and loses the request when that
 * is full: it is answered before. */
static bool has_too_many_parameters(const char *uri, struct err *err)
{
    size_t count = 0;
    for (const char *at = uri; *at; at++)
        count += *at == '&';
    if (count < PARAMETERS_MAX)
        return false;
    (void)err_set(err, ERR_MALFORMED, "more than %d query parameters", URI_QUERY_MAX);
    return true;
}

static void put_address(struct MHD_Connection *mhd, struct request *req)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    if (!address)
        return;
    const void *bytes = address->sa_family == AF_INET6
                            ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                            : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
    (void)inet_ntop(address->sa_family, bytes, req->address, sizeof(req->address));
}

/* The request line was read: the exchange begins. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct server *server = cls;
    struct conn *conn = conn_of(mhd);
    struct exchange *x = conn ? exchange_new(server, uri) : NULL;
    if (!x)
        return NULL;
    x->mhd = mhd;
    x->conn = conn;
    put_address(mhd, &x->req);
    pthread_mutex_lock(&server->lock);
    conn->x = x;
    conn->had_request = true;
    server->exchange_count++;
    struct err err = {0};
    if (has_too_many_parameters(uri, &err))
        conn_kill(server, conn, &err);
    pthread_mutex_unlock(&server->lock);
    return x;
}

/* Paths and queries are decoded by uri.c; MHD leaves them alone. */
static size_t leave_escapes(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls;
    (void)mhd;
    return strlen(text);
}

/* NOLINTNEXTLINE(readability-function-size): MHD decides */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *size, void **context)
{
    (void)cls;
    (void)mhd;
    struct exchange *x = *context;
    if (!x)
        return MHD_NO;
    const struct request_line line = {method, url, version, x->req.uri.sent};
    return exchange_step(x, line, bytes, size);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct server *server = cls;
    struct exchange *x = *context;
    (void)mhd;
    *context = NULL;
    if (!x)
        return;
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        web_request_sent(&x->req);
    conn_give_back(x);
    pthread_mutex_lock(&server->lock);
    (void)conn_take_exchange(server, x->conn);
    pthread_mutex_unlock(&server->lock);
    exchange_drop(x);
}

static void on_log(void *cls, const char *format, va_list args) PRINTF_LIKE(2, 0);
static void on_log(void *cls, const char *format, va_list args)
{
    char text[512];
    (void)cls;
    (void)vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = 0;
    log_event(LOG_DEBUG, "http.library", LOG_S("detail", text));
}

/* ---- starting and stopping ------------------------------------------------------------------- */

static enum err_code resolve(const struct config *cfg, struct addrinfo **ret_address,
                             struct err *err)
{
    char port[8];
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
    };
    (void)snprintf(port, sizeof(port), "%u", cfg->web_port);
    int rc = getaddrinfo(cfg->web_listen, port, &hints, ret_address);
    if (rc)
        return err_set(err, ERR_CONFIG, "web.listen = %s is not an IP address: %s", cfg->web_listen,
                       gai_strerror(rc));
    return ERR_OK;
}

/* Ours, not MHD's, so that its faults can be told. */
static enum err_code listen_on(const struct config *cfg, int *ret_fd, struct err *err)
{
    struct addrinfo *address = NULL;
    enum err_code rc = resolve(cfg, &address, err);
    if (rc)
        return rc;
    FD_AUTO int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
                bind(fd, address->ai_addr, address->ai_addrlen) == 0 &&
                listen(fd, LISTEN_BACKLOG) == 0;
    int why = errno;
    freeaddrinfo(address);
    if (!good)
        return err_set_errno(
            err, ERR_IO, why,
            "cannot listen on %s port %u (web.listen, web.port; 'ss -ltnp' shows who does)",
            cfg->web_listen, cfg->web_port);
    *ret_fd = fd;
    fd = -1;
    return ERR_OK;
}

/* Some more than the share of an address: those are told that they are too many. The rest is
 * closed without a word. */
static unsigned address_limit(const struct config *cfg)
{
    return cfg->web_connections_per_address + cfg->web_connections_per_address / 8 + 4;
}

static enum err_code start_daemon(struct server *server, struct err *err)
{
    const struct config *cfg = server->web->cfg;
    FD_AUTO int fd = -1;
    enum err_code rc = listen_on(cfg, &fd, err);
    if (rc)
        return rc;
    /* The header limit is checked by us, with a problem document as the answer; MHD's own limit
     * lies above it. */
    size_t memory = (size_t)cfg->web_header_max_bytes * 2 + POOL_EXTRA_BYTES;
    static char priorities[] = TLS_PRIORITIES;
    const struct MHD_OptionItem plain = {MHD_OPTION_END, 0, NULL};
    const struct MHD_OptionItem by_tls = {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities};
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_LISTEN_SOCKET, fd, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)cfg->web_connections_max, NULL},
        {MHD_OPTION_PER_IP_CONNECTION_LIMIT, (intptr_t)address_limit(cfg), NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)memory, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)SILENCE_S, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 0, NULL}, /* framing.c and uri.c are, and say why */
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, server},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, server},
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)on_uri, server},
        {MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)leave_escapes, server},
        server->tls ? by_tls : plain,
        {MHD_OPTION_END, 0, NULL},
    };
    unsigned flags = (server->tls ? BY_POLL : MHD_USE_EPOLL_INTERNAL_THREAD) |
                     MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_ARRAY, options, server->tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END,
        tls_no_certificate, MHD_OPTION_END);
    if (!server->daemon)
        return err_set(err, ERR_IO, "the HTTP server does not start");
    atomic_store(&server->door, fd);
    fd = -1;
    return ERR_OK;
}

enum err_code server_open(struct web *web, struct server **ret_server, struct err *err)
{
    struct server *server = calloc(1, sizeof(*server));
    if (!server)
        return err_set(err, ERR_NOMEM, "out of memory");
    server->web = web;
    atomic_init(&server->door, -1);
    server->deadline_ms = web->cfg->web_deadline_ms;
    pthread_mutex_init(&server->lock, NULL);
    clock_cond_init(&server->changed);
    server->line_ms = web->cfg->db_query_timeout_ms < web->cfg->web_deadline_ms
                          ? web->cfg->db_query_timeout_ms
                          : web->cfg->web_deadline_ms;
    enum err_code rc = server_addresses_open(server, err);
    if (rc == ERR_OK)
        rc = tls_open(web->cfg, &server->tls, err);
    if (rc == ERR_OK)
        rc = cors_open(web->cfg, &server->cors, err);
    if (web->cfg->web_hsts_s > 0)
        (void)snprintf(server->hsts, sizeof(server->hsts), "max-age=%u", web->cfg->web_hsts_s);
    if (rc == ERR_OK)
        rc = pool_open(web->cfg->web_threads, exchange_run, &server->pool, err);
    if (rc == ERR_OK)
        rc = pool_open(QUICK_THREADS, exchange_run, &server->quick, err);
    if (rc == ERR_OK)
        rc = server_clock_start(server, err);
    if (rc == ERR_OK)
        rc = start_daemon(server, err);
    if (rc) {
        server_free(server);
        return rc;
    }
    *ret_server = server;
    return ERR_OK;
}

uint16_t server_port(const struct server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.v6 = {0}};
    socklen_t size = sizeof(address);
    if (!info || getsockname(info->listen_fd, &address.any, &size) != 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

enum err_code server_reload(struct server *server, const struct config *cfg, struct err *err)
{
    return server->tls ? tls_reload(server->tls, cfg, err) : ERR_OK;
}

bool server_is_tls(const struct server *server)
{
    return server->tls != NULL;
}

int64_t server_tls_expires_s(const struct server *server)
{
    return server->tls ? tls_expires_s(server->tls) : 0;
}

void server_stop(struct server *server, int64_t grace_ms)
{
    int64_t deadline_ms = clock_mono_ms() + grace_ms;
    atomic_store(&server->stopping, true);
    atomic_store(&server->door, -1);
    int fd = MHD_quiesce_daemon(server->daemon);
    if (fd >= 0)
        (void)close(fd);
    pthread_mutex_lock(&server->lock);
    while (server->exchange_count > 0 &&
           clock_cond_wait_until(&server->changed, &server->lock, deadline_ms))
        continue;
    unsigned left = server->exchange_count;
    /* Those that are still suspended are resumed: MHD cannot stop with them. */
    for (struct conn *conn = server->conns; conn; conn = conn->next) {
        conn->killed = true;
        if (conn->x && (conn->x->stage == STAGE_HANDLE || conn->x->stage == STAGE_PARKED)) {
            conn->x->stage = STAGE_LATE;
            MHD_resume_connection(conn->x->mhd);
        }
    }
    pthread_mutex_unlock(&server->lock);
    if (left > 0)
        log_event(LOG_WARN, "http.stop.cut_short", LOG_U("requests", left));
}

void server_free(struct server *server)
{
    if (!server)
        return;
    server_clock_stop(server);
    pool_free(server->pool);
    pool_free(server->quick);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    tls_free(server->tls);
    cors_free(server->cors);
    server_addresses_close(server);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

/* ---- for handlers ---------------------------------------------------------------------------- */

bool server_park(struct request *req)
{
    struct exchange *x = exchange_of(req);
    pthread_mutex_lock(&x->server->lock);
    bool ours = x->stage == STAGE_HANDLE;
    if (ours)
        x->stage = STAGE_PARKED;
    pthread_mutex_unlock(&x->server->lock);
    return ours;
}

void server_resume(struct request *req, route_fn *then)
{
    struct exchange *x = exchange_of(req);
    pthread_mutex_lock(&x->server->lock);
    if (x->stage == STAGE_PARKED)
        x->stage = STAGE_HANDLE;
    x->handed_ms = clock_mono_ms();
    pthread_mutex_unlock(&x->server->lock);
    req->then = then;
    pool_push(x->server->pool, POOL_RESUMED, &x->item);
}

void server_answer(struct request *req, enum err_code rc, const struct err *err)
{
    exchange_answer(exchange_of(req), rc, err);
}

struct MHD_Connection *server_connection(struct request *req)
{
    return exchange_of(req)->mhd;
}

void server_counters(struct server *server, struct server_counters *ret_counters)
{
    pthread_mutex_lock(&server->lock);
    *ret_counters = (struct server_counters){
        .connections = server->conn_count,
        .timed_out = server->timed_out,
        .overloaded = server->overloaded,
    };
    pthread_mutex_unlock(&server->lock);
    ret_counters->waiting = pool_waiting(server->pool) + pool_waiting(server->quick);
    ret_counters->busy = pool_busy(server->pool) + pool_busy(server->quick);
}
