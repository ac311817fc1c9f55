/* SPDX-License-Identifier: MIT */
#include "common/bus/conn.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/uuid.h"
#include "common/base/wake.h"
#include "common/bus/dial.h"
#include "common/bus/secure.h"

#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS 5000
#define CLOSE_WAIT_MS 300
#define FRAME_MAX 16384 /* the library keeps as much for each channel */
#define FRAMES_PER_READ 4096
#define TELL_AGAIN_MS 30000

enum err_code conn_init(struct conn *conn, const struct bus_config *cfg, struct err *err)
{
    *conn = (struct conn){.fd = -1, .wake_fd = -1};
    enum err_code rc = conn_copy_config(conn, cfg, err);
    if (rc)
        return rc;
    conn->wake_fd = wake_open();
    if (conn->wake_fd < 0) {
        int reason = errno;
        free(TAKE(conn->texts));
        return err_set_errno(err, ERR_IO, reason, "no event descriptor for a broker connection");
    }
    (void)pthread_mutex_init(&conn->fd_lock, NULL);
    return ERR_OK;
}

void conn_done(struct conn *conn)
{
    conn_close(conn, false);
    fd_close(&conn->wake_fd);
    free(TAKE(conn->texts));
    (void)pthread_mutex_destroy(&conn->fd_lock);
}

void conn_wake(struct conn *conn)
{
    wake_raise(conn->wake_fd);
}

void conn_stop(struct conn *conn)
{
    atomic_store(&conn->stop, true);
    (void)pthread_mutex_lock(&conn->fd_lock);
    if (conn->opening && conn->fd >= 0)
        (void)shutdown(conn->fd, SHUT_RDWR); /* ends a login that the broker does not answer */
    (void)pthread_mutex_unlock(&conn->fd_lock);
    wake_raise(conn->wake_fd);
}

void conn_break(struct conn *conn, const char *text)
{
    if (conn->broken)
        return;
    conn->broken = true;
    (void)snprintf(conn->broken_text, sizeof(conn->broken_text), "%s", text);
}

static void set_fd(struct conn *conn, int fd)
{
    (void)pthread_mutex_lock(&conn->fd_lock);
    fd_close(&conn->fd);
    conn->fd = fd;
    conn->opening = fd >= 0;
    (void)pthread_mutex_unlock(&conn->fd_lock);
}

void conn_close(struct conn *conn, bool politely)
{
    if (conn->amqp) {
        const struct timeval wait = {.tv_usec = CLOSE_WAIT_MS * 1000};
        /* A blocked connection is not read by the broker: it would not answer. */
        if (politely && !conn->broken && !conn->blocked &&
            amqp_set_rpc_timeout(conn->amqp, &wait) == AMQP_STATUS_OK)
            (void)amqp_connection_close(conn->amqp, AMQP_REPLY_SUCCESS);
        (void)amqp_destroy_connection(TAKE(conn->amqp));
    }
    set_fd(conn, -1);
}

void conn_lost(struct conn *conn)
{
    log_event(LOG_WARN, "bus.disconnected", LOG_S("connection", conn->cfg.name),
              LOG_S("reason", conn->broken_text), LOG_U("generation", conn->generation));
    conn_close(conn, false);
}

static struct timeval ms_to_timeval(int ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

static void fill_text(amqp_table_entry_t *entry, const char *key, const char *text)
{
    *entry = (amqp_table_entry_t){.key = amqp_cstring_bytes(key)};
    entry->value.kind = AMQP_FIELD_KIND_UTF8;
    entry->value.value.bytes = amqp_cstring_bytes(text);
}

static enum err_code log_in(struct conn *conn, struct err *err)
{
    static const char *const can[] = {"connection.blocked", "consumer_cancel_notify", "basic.nack",
                                      "publisher_confirms", "authentication_failure_close"};
    amqp_table_entry_t flags[ARRAY_LEN(can)], properties[4];
    for (size_t i = 0; i < ARRAY_LEN(can); i++) {
        flags[i] = (amqp_table_entry_t){.key = amqp_cstring_bytes(can[i])};
        flags[i].value.kind = AMQP_FIELD_KIND_BOOLEAN;
        flags[i].value.value.boolean = true;
    }
    fill_text(&properties[0], "product", "Sluice");
    fill_text(&properties[1], "version", SLUICE_VERSION);
    fill_text(&properties[2], "connection_name", conn->cfg.name);
    properties[3] = (amqp_table_entry_t){.key = amqp_cstring_bytes("capabilities")};
    properties[3].value.kind = AMQP_FIELD_KIND_TABLE;
    properties[3].value.value.table = (amqp_table_t){ARRAY_LEN(flags), flags};
    const amqp_table_t table = {ARRAY_LEN(properties), properties};
    amqp_rpc_reply_t reply = amqp_login_with_properties(
        conn->amqp, conn->cfg.vhost, 0, FRAME_MAX, conn->cfg.heartbeat_s, &table,
        AMQP_SASL_METHOD_PLAIN, conn->cfg.user, conn->cfg.password);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL)
        return ERR_OK;
    char text[256];
    return err_set(err, ERR_BROKER_AWAY, "login of %s to vhost %s at %s port %d: %s",
                   conn->cfg.user, conn->cfg.vhost, conn->node.name, conn->node.port,
                   topology_reply_text(&reply, text, sizeof(text)));
}

static enum err_code new_connection(struct conn *conn, struct err *err)
{
    const struct timeval wait = ms_to_timeval(conn->cfg.connect_timeout_ms);
    conn->amqp = amqp_new_connection();
    if (!conn->amqp || amqp_set_handshake_timeout(conn->amqp, &wait) != AMQP_STATUS_OK ||
        amqp_set_rpc_timeout(conn->amqp, &wait) != AMQP_STATUS_OK)
        return err_set(err, ERR_NOMEM, "no memory for a broker connection");
    return ERR_OK;
}

/* The socket is the library's; ours is a duplicate, since it closes its own when it sees fit. */
static enum err_code keep_socket(struct conn *conn, int fd, struct err *err)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return err_set_errno(err, ERR_IO, errno, "duplicating a socket");
    set_fd(conn, own);
    if (atomic_load(&conn->stop)) /* conn_stop() sees the descriptor, or we see its flag */
        return err_set(err, ERR_STOPPING, "the service is stopping");
    return ERR_OK;
}

static enum err_code reach_secure(struct conn *conn, struct err *err)
{
    enum err_code rc = new_connection(conn, err);
    if (!rc)
        rc = secure_open(&conn->cfg, &conn->node, conn->amqp, err);
    if (rc)
        return rc;
    int fd = amqp_get_sockfd(conn->amqp);
    dial_tune(fd, 2000 * conn->cfg.heartbeat_s);
    return keep_socket(conn, fd, err);
}

static enum err_code reach(struct conn *conn, struct err *err)
{
    const struct dial dial = {.host = conn->node.name,
                              .port = conn->node.port,
                              .timeout_ms = conn->cfg.connect_timeout_ms,
                              .user_timeout_ms = 2000 * conn->cfg.heartbeat_s,
                              .wake_fd = conn->wake_fd,
                              .stop = &conn->stop};
    FD_AUTO int fd = -1;
    enum err_code rc = dial_tcp(&dial, &fd, err);
    if (!rc)
        rc = keep_socket(conn, fd, err);
    if (!rc)
        rc = new_connection(conn, err);
    if (rc)
        return rc;
    amqp_socket_t *socket = amqp_tcp_socket_new(conn->amqp);
    if (!socket)
        return err_set(err, ERR_NOMEM, "no memory for a broker connection");
    amqp_tcp_socket_set_sockfd(socket, fd);
    fd = -1;
    return ERR_OK;
}

static enum err_code try_open(struct conn *conn, struct err *err)
{
    if (!hosts_at(conn->cfg.host, conn->node_at, conn->cfg.port, &conn->node))
        return err_set(err, ERR_CONFIG, "amqp.host = %s is no list of hosts", conn->cfg.host);
    enum err_code rc = secure_is_wanted(&conn->cfg) ? reach_secure(conn, err) : reach(conn, err);
    if (!rc)
        rc = log_in(conn, err);
    if (!rc)
        rc = topology_declare(conn->amqp, CHANNEL_MAIN, err);
    if (rc)
        return rc;
    (void)pthread_mutex_lock(&conn->fd_lock);
    conn->opening = false;
    (void)pthread_mutex_unlock(&conn->fd_lock);
    conn->broken = false;
    conn->blocked = false;
    conn->more = false;
    conn->opened_ms = clock_mono_ms();
    conn->heard_ms = conn->empty_ms = clock_boot_ms();
    conn->told_ms = 0;
    conn->channel_max = (unsigned)amqp_get_channel_max(conn->amqp);
    conn->generation++;
    return ERR_OK;
}

static void log_waiting(const struct conn *conn, const struct err *err, int pause_ms)
{
    log_event(LOG_WARN, "bus.connect.waiting", LOG_S("connection", conn->cfg.name),
              LOG_S("reason", err->text), LOG_U("attempt", conn->attempts),
              LOG_I("next_ms", pause_ms));
}

static int backoff_ms(struct conn *conn)
{
    unsigned doublings = conn->attempts < 8 ? conn->attempts : 8;
    int64_t most = (int64_t)BACKOFF_FIRST_MS << doublings;
    if (most > BACKOFF_MOST_MS)
        most = BACKOFF_MOST_MS;
    conn->attempts++;
    /* Between half and all of it: a fleet that lost its broker does not come back as one. */
    return (int)(most / 2 + (int64_t)random_below((uint64_t)(most / 2) + 1));
}

static void pause_for(struct conn *conn, int pause_ms)
{
    int64_t deadline = clock_mono_ms() + pause_ms;
    for (int64_t left = pause_ms; left > 0 && !atomic_load(&conn->stop);
         left = deadline - clock_mono_ms()) {
        struct pollfd wake = {.fd = conn->wake_fd, .events = POLLIN};
        if (poll(&wake, 1, (int)left) > 0)
            wake_drain(conn->wake_fd);
    }
}

/* One round; *ret_err is of the node that was tried last, which is not told yet. */
static bool try_each(struct conn *conn, bool tell, struct err *ret_err)
{
    for (unsigned left = conn->nodes; !atomic_load(&conn->stop); conn->node_at++) {
        err_clear(ret_err);
        if (try_open(conn, ret_err) == ERR_OK) {
            log_event(LOG_INFO, "bus.connected", LOG_S("connection", conn->cfg.name),
                      LOG_S("host", conn->node.name), LOG_I("port", conn->node.port),
                      LOG_U("generation", conn->generation));
            return true;
        }
        conn_close(conn, false);
        if (--left == 0)
            break;
        if (tell)
            log_waiting(conn, ret_err, 0);
    }
    return false;
}

bool conn_open(struct conn *conn)
{
    if (clock_mono_ms() - conn->opened_ms > BACKOFF_MOST_MS)
        conn->attempts = 0;
    if (conn->generation > 0) {
        conn->node_at++;
        pause_for(conn, backoff_ms(conn)); /* a broker that drops us at once is not stormed */
    }
    while (!atomic_load(&conn->stop)) {
        struct err err = {0};
        int64_t now = clock_mono_ms();
        bool tell = conn->told_ms == 0 || now - conn->told_ms >= TELL_AGAIN_MS;
        if (try_each(conn, tell, &err))
            return true;
        conn->node_at++;
        if (tell)
            conn->told_ms = now;
        int pause_ms = backoff_ms(conn);
        if (tell && !atomic_load(&conn->stop))
            log_waiting(conn, &err, pause_ms);
        pause_for(conn, pause_ms);
    }
    return false;
}

bool conn_writable(struct conn *conn)
{
    struct pollfd out = {.fd = conn->fd, .events = POLLOUT};
    return poll(&out, 1, 0) > 0 && (out.revents & POLLOUT);
}

bool conn_wait(struct conn *conn, int timeout_ms, bool want_write)
{
    int tick_ms = conn->cfg.heartbeat_s * 1000 / 8; /* heartbeats flow in conn_read() only */
    struct pollfd polls[] = {
        {.fd = conn->fd, .events = (short)(POLLIN | (want_write ? POLLOUT : 0))},
        {.fd = conn->wake_fd, .events = POLLIN}};
    if (timeout_ms < 0 || timeout_ms > tick_ms)
        timeout_ms = tick_ms;
    if (amqp_frames_enqueued(conn->amqp) || amqp_data_in_buffer(conn->amqp) || conn->more ||
        conn->broken)
        timeout_ms = 0;
    if (poll(polls, ARRAY_LEN(polls), timeout_ms) <= 0)
        return false;
    if (polls[1].revents)
        wake_drain(conn->wake_fd);
    /* Bytes are a sign of life even if they are but a heartbeat, which the library keeps to
     * itself. They may have come at any time since the socket was seen empty: a process that was
     * stopped must not take what waited for it as heard now. */
    if (polls[0].revents & POLLIN)
        conn->heard_ms = conn->empty_ms;
    return polls[0].revents & POLLOUT;
}

static void on_connection_frame(struct conn *conn, const amqp_frame_t *frame)
{
    if (frame->frame_type != AMQP_FRAME_METHOD)
        return;
    const amqp_method_t *method = &frame->payload.method;
    if (method->id == AMQP_CONNECTION_CLOSE_METHOD) {
        const amqp_connection_close_t *close = method->decoded;
        char text[200];
        (void)snprintf(text, sizeof(text), "closed by the broker: %u %.*s", close->reply_code,
                       (int)close->reply_text.len, (const char *)close->reply_text.bytes);
        amqp_connection_close_ok_t close_ok = {0};
        conn_send(conn, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &close_ok);
        conn_break(conn, text);
    } else if (method->id == AMQP_CONNECTION_BLOCKED_METHOD) {
        const amqp_connection_blocked_t *blocked = method->decoded;
        const struct sv reason = {blocked->reason.bytes, blocked->reason.len};
        conn->blocked = true;
        log_event(LOG_WARN, "bus.blocked", LOG_S("connection", conn->cfg.name),
                  LOG_V("reason", reason));
    } else if (method->id == AMQP_CONNECTION_UNBLOCKED_METHOD) {
        conn->blocked = false;
        log_event(LOG_INFO, "bus.unblocked", LOG_S("connection", conn->cfg.name));
    }
}

void conn_read(struct conn *conn, conn_frame_fn *fn, void *arg)
{
    conn->more = true;
    for (int i = 0; i < FRAMES_PER_READ && !conn->broken; i++) {
        const struct timeval now = {0};
        amqp_frame_t frame;
        int64_t before_ms = clock_boot_ms();
        int status = amqp_simple_wait_frame_noblock(conn->amqp, &frame, &now);
        if (status == AMQP_STATUS_TIMEOUT) {
            conn->empty_ms = before_ms;
            conn->more = false;
            return;
        }
        if (status != AMQP_STATUS_OK) {
            conn_break(conn, amqp_error_string2(status));
            return;
        }
        if (frame.channel == 0)
            on_connection_frame(conn, &frame);
        else
            fn(arg, &frame);
        amqp_maybe_release_buffers_on_channel(conn->amqp, frame.channel);
    }
}

void conn_send(struct conn *conn, amqp_channel_t channel, amqp_method_number_t id, void *method)
{
    if (conn->broken)
        return;
    int status = amqp_send_method(conn->amqp, channel, id, method);
    if (status != AMQP_STATUS_OK)
        conn_break(conn, amqp_error_string2(status));
}

void conn_close_channel(struct conn *conn, amqp_channel_t channel)
{
    amqp_channel_close_t close = {.reply_code = AMQP_REPLY_SUCCESS,
                                  .reply_text = amqp_cstring_bytes("done")};
    conn_send(conn, channel, AMQP_CHANNEL_CLOSE_METHOD, &close);
}
