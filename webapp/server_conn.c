/* SPDX-License-Identifier: MIT */
#include "webapp/exchange.h"

#include "common/base/clock.h"
#include "webapp/share.h"
#include "webapp/web.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

/* ---- addresses --------------------------------------------------------------------------------
 */

enum err_code server_addresses_open(struct server *server, struct err *err)
{
    const struct config *cfg = server->web->cfg;
    const struct share_limits limits = {
        .whose = "address",
        .per_s = cfg->web_requests_per_s_per_address,
        .at_once = UINT32_MAX, /* one for each connection */
        .bytes = cfg->web_bytes_per_address,
    };
    return shares_open(&limits, &server->addresses, err);
}

void server_addresses_close(struct server *server)
{
    shares_close(server->addresses);
}

/* What counts as one address: of IPv6 the network, since a host has all of it. */
static struct sv address_key(const struct sockaddr *address)
{
    static const unsigned char mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    if (address && address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        return (struct sv){(const char *)&v4->sin_addr, sizeof(v4->sin_addr)};
    }
    if (!address || address->sa_family != AF_INET6)
        return SV("?");
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    const char *bytes = (const char *)&v6->sin6_addr;
    if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
        return (struct sv){bytes + sizeof(mapped), 4};
    return (struct sv){bytes, 8};
}

static struct share *share_of(struct server *server, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return share_get(server->addresses, address_key(info ? info->client_addr : NULL));
}

enum err_code conn_take_turn(struct exchange *x, struct err *err)
{
    struct server *server = x->server;
    unsigned most = server->web->cfg->web_connections_per_address;
    enum err_code rc = ERR_OK;
    if (x->req.route && x->req.route->is_public)
        return ERR_OK;
    if (share_holders(server->addresses, x->conn->share) > most) {
        x->must_close = true;
        rc = err_set(err, ERR_RATE, "more than %u connections from one address", most);
    }
    if (rc == ERR_OK)
        rc = share_enter(server->addresses, x->conn->share, 0, err);
    x->has_share = rc == ERR_OK;
    if (rc)
        web_count_limited(false);
    return rc;
}

bool conn_hold_bytes(struct exchange *x, size_t count)
{
    if (!x->has_share)
        return true;
    if (share_hold(x->server->addresses, x->conn->share, count, &x->refusal) != ERR_OK) {
        web_count_limited(false);
        return false;
    }
    x->share_bytes += count;
    return true;
}

/* ---- connections ------------------------------------------------------------------------------
 */

/* A handshake is several small writes: the next would wait for the client's delayed word that he
 * has the one before. */
static void send_at_once(int fd)
{
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void server_conn_open(struct server *server, struct MHD_Connection *mhd, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct conn *conn = calloc(1, sizeof(*conn));
    *context = conn; /* without one, its requests are refused */
    if (!conn)
        return;
    conn->fd = info ? info->connect_fd : -1;
    conn->since_ms = clock_mono_ms();
    conn->share = share_of(server, mhd);
    conn->tls = server->tls ? tls_begin(server->tls, mhd) : NULL;
    if (conn->tls)
        send_at_once(conn->fd);
    pthread_mutex_lock(&server->lock);
    conn->next = server->conns;
    if (conn->next)
        conn->next->prev = conn;
    server->conns = conn;
    server->conn_count++;
    pthread_mutex_unlock(&server->lock);
}

void conn_give_back(struct exchange *x)
{
    if (x->has_share)
        share_leave(x->server->addresses, x->conn->share, x->share_bytes);
    x->has_share = false;
}

struct exchange *conn_take_exchange(struct server *server, struct conn *conn)
{
    struct exchange *x = conn->x;
    if (!x)
        return NULL;
    conn->x = NULL;
    conn->since_ms = clock_mono_ms();
    server->exchange_count--;
    if (atomic_load(&server->stopping))
        pthread_cond_broadcast(&server->changed);
    return x;
}

void server_conn_close(struct server *server, struct conn *conn)
{
    if (!conn)
        return;
    pthread_mutex_lock(&server->lock);
    /* MHD does not complete a request whose head it could not store. */
    struct exchange *x = conn_take_exchange(server, conn);
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        server->conns = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    server->conn_count--;
    pthread_mutex_unlock(&server->lock);
    if (x) {
        conn_give_back(x);
        exchange_drop(x);
    }
    share_put(server->addresses, conn->share);
    if (conn->tls)
        tls_put(server->tls, conn->tls);
    free(conn);
}
