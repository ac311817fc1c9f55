/* SPDX-License-Identifier: MIT */
#include "webapp/exchange.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/spare.h"
#include "common/service/watchdog.h"
#include "webapp/problem.h"
#include "webapp/web.h"

#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>

#define TICK_MS 100
#define TRIM_MS 1000
#define TURN_MS 10000     /* the clock comes round within this, or something is very wrong */
#define UNSENT_TICKS 100  /* MHD takes an answer within so many, or its thread hangs */
#define INSTANCE_MAX 128u /* bytes of a path that such an answer repeats */
#define READ_FACTOR 4     /* an answer is to be read within so many deadlines */
#define IDLE_MS 60000     /* a kept-alive connection may be silent so long */
#define CROWDED_IDLE_MS 1000
#define SHUT_OUT_TICKS 10 /* somebody waits for so long to be taken: MHD takes nobody */
#define STREAM_ENDS_TICKS 50
#define CROWDED_SHARE 8 /* of the deadline is left to requests that arrive */

/* Of TLS the session is MHD's: only the end can be told. */
static void tell(const struct conn *conn, const struct err *err)
{
    char answer[2048];
    char id[REQUEST_ID_SIZE] = "";
    struct uuid fresh = uuid_v7();
    (void)snprintf(id, sizeof(id), "%s", conn->x ? conn->x->req.id : "");
    if (!id[0]) /* its head has not come */
        (void)uuid_text(&fresh, id);
    const struct uri *uri = conn->x ? &conn->x->req.uri : NULL;
    bool told = uri && uri->raw && uri->path_length <= INSTANCE_MAX;
    json_t *root = problem_of(err, told ? uri->raw : "/", told ? uri->path_length : 1, id);
    char *text = root ? spare_text(json_dumps(root, JSON_COMPACT)) : NULL;
    int length = snprintf(answer, sizeof(answer),
                          "HTTP/1.1 %d %s\r\nContent-Type: " PROBLEM_TYPE "\r\n"
                          "Content-Length: %zu\r\nX-Request-Id: %s\r\nConnection: close\r\n\r\n%s",
                          err_http(err->code), err_title(err->code), text ? strlen(text) : 0, id,
                          text ? text : "");
    if (length > 0 && (size_t)length < sizeof(answer))
        (void)send(conn->fd, answer, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
    free(text);
    json_decref(root);
}

void conn_kill(struct server *server, struct conn *conn, const struct err *err)
{
    conn->killed = true;
    if (!server->tls)
        tell(conn, err);
    (void)shutdown(conn->fd, SHUT_RDWR);
}

/* MHD that found no descriptor free takes nobody until a connection ends, though there may be
 * enough by then. */
static void look_at_door(struct server *server)
{
    struct pollfd door = {.fd = atomic_load(&server->door), .events = POLLIN};
    bool waits = door.fd >= 0 && poll(&door, 1, 0) > 0 && (door.revents & POLLIN);
    server->shut_out = waits ? server->shut_out + 1 : 0;
}

/* MHD takes no connection beyond the limit, so those who hold many idle ones would keep all others
 * out: close to the limit there is less patience. */
static bool is_crowded(const struct server *server)
{
    unsigned most = server->web->cfg->web_connections_max;
    return server->conn_count >= most - most / 8 || server->shut_out >= SHUT_OUT_TICKS;
}

/* A connection without a request, or with one that is still arriving. */
static void check_arrival(struct server *server, struct conn *conn, int64_t now_ms)
{
    const struct exchange *x = conn->x;
    bool crowded = is_crowded(server);
    int64_t patience_ms = crowded ? server->deadline_ms / CROWDED_SHARE : server->deadline_ms;
    if (!x && conn->had_request) {
        if (now_ms - conn->since_ms <= (crowded ? CROWDED_IDLE_MS : IDLE_MS))
            return;
        conn->killed = true; /* nobody waits for an answer */
        (void)shutdown(conn->fd, SHUT_RDWR);
        return;
    }
    if (now_ms - (x ? x->began_ms : conn->since_ms) <= patience_ms)
        return;
    struct err err = {0};
    (void)err_set(&err, ERR_REQUEST_TIMEOUT,
                  "the request did not arrive within %lld ms (web.deadline_ms, less in a crowd)",
                  (long long)patience_ms);
    server->timed_out++;
    conn_kill(server, conn, &err);
}

/* Why this request is not waited for any longer; false: it is. */
static bool is_late(const struct server *server, struct exchange *x, int64_t now_ms,
                    struct err *err)
{
    int64_t waited_ms = now_ms - x->handed_ms;
    bool nobody_came = waited_ms > server->line_ms && atomic_exchange(&x->in_line, false);
    if (nobody_came)
        (void)err_set(err, ERR_OVERLOADED,
                      "no handler thread came free within %lld ms (db.query_timeout_ms)",
                      (long long)server->line_ms);
    else if (waited_ms > server->deadline_ms)
        (void)err_set(err, ERR_TIMEOUT, "there was no answer within %lld ms (web.deadline_ms)",
                      (long long)server->deadline_ms);
    return err->code != ERR_OK;
}

/* Answers in the stead of a handler that takes too long, or never came: its own answer is dropped
 * then. The lock is held: nothing is logged here. */
static bool give_up(struct server *server, struct exchange *x, int64_t now_ms)
{
    struct err err = {0};
    if (!is_late(server, x, now_ms, &err))
        return false;
    struct request fake = {.uri = x->req.uri}; /* the handler owns the real one */
    memcpy(fake.id, x->req.id, sizeof(fake.id));
    reply_problem(&fake, &err, problem_of(&err, fake.uri.raw, fake.uri.path_length, fake.id));
    x->late = fake.reply;
    x->stage = STAGE_LATE;
    server->timed_out++;
    return true;
}

/* Answers are held in memory until they are read: a reader that takes a byte now and then is not
 * waited for. */
static void check_reader(struct server *server, struct conn *conn, int64_t now_ms)
{
    if (conn->x->is_stream && server->shut_out >= STREAM_ENDS_TICKS) { /* it can be resumed */
        server->shut_out = 0;
        conn->killed = true;
        (void)shutdown(conn->fd, SHUT_RDWR);
        return;
    }
    if (conn->x->is_stream || now_ms - conn->x->sent_ms <= READ_FACTOR * server->deadline_ms)
        return;
    server->timed_out++;
    conn->killed = true;
    const struct linger none = {.l_onoff = 1}; /* nor shall the system keep what is not read */
    (void)setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    (void)shutdown(conn->fd, SHUT_RDWR);
}

/* Nobody reads the answer that a parked request waits for. */
static bool has_left(const struct conn *conn)
{
    char byte;
    struct pollfd end = {.fd = conn->fd, .events = POLLRDHUP};
    if (conn->tls) /* a word of farewell comes before the end, and only MHD can read it */
        return poll(&end, 1, 0) > 0 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR));
    return recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void check_parked(struct conn *conn)
{
    if (!has_left(conn))
        return;
    conn->x->stage = STAGE_LATE; /* without a reply: MHD closes the connection */
    MHD_resume_connection(conn->x->mhd);
}

/* false: MHD's thread does nothing. */
static bool check_conn(struct server *server, struct conn *conn, int64_t now_ms)
{
    if (conn->killed)
        return true;
    enum stage stage = conn->x ? conn->x->stage : STAGE_HEAD;
    if (stage <= STAGE_CHECKED)
        check_arrival(server, conn, now_ms);
    else if (stage == STAGE_HANDLE && give_up(server, conn->x, now_ms))
        MHD_resume_connection(conn->x->mhd);
    else if (stage == STAGE_PARKED)
        check_parked(conn);
    else if (stage == STAGE_SENT)
        check_reader(server, conn, now_ms);
    bool waits = stage == STAGE_ANSWERED || stage == STAGE_LATE;
    if (conn->x)
        conn->x->unsent = waits ? conn->x->unsent + 1 : 0;
    return !waits || conn->x->unsent < UNSENT_TICKS;
}

/* malloc keeps what many threads have freed, for each of its arenas: after a burst of large
 * requests that was most of the process. The lock is not held. */
static void give_memory_back(struct server *server, int64_t now_ms)
{
    if (now_ms - server->trimmed_ms < TRIM_MS || !atomic_exchange(&server->freed_much, false))
        return;
    server->trimmed_ms = now_ms;
    (void)malloc_trim(0);
}

static void *clock_main(void *arg)
{
    struct server *server = arg;
    struct watchdog_loop loop = {.name = "web.clock"};
    pthread_mutex_lock(&server->lock);
    while (!server->stop_clock) {
        int64_t now_ms = clock_mono_ms();
        bool moves = true;
        look_at_door(server);
        for (struct conn *conn = server->conns; conn; conn = conn->next)
            moves = check_conn(server, conn, now_ms) && moves;
        if (moves)
            watchdog_turn(&loop, TURN_MS);
        pthread_mutex_unlock(&server->lock);
        give_memory_back(server, now_ms);
        pthread_mutex_lock(&server->lock);
        while (!server->stop_clock &&
               clock_cond_wait_until(&server->changed, &server->lock, now_ms + TICK_MS))
            continue;
    }
    pthread_mutex_unlock(&server->lock);
    watchdog_leave(&loop);
    return NULL;
}

enum err_code server_clock_start(struct server *server, struct err *err)
{
    int rc = pthread_create(&server->clock, NULL, clock_main, server);
    if (rc)
        return err_set_errno(err, ERR_NOMEM, rc, "cannot start the clock thread");
    server->has_clock = true;
    return ERR_OK;
}

void server_clock_stop(struct server *server)
{
    if (!server->has_clock)
        return;
    pthread_mutex_lock(&server->lock);
    server->stop_clock = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    (void)pthread_join(server->clock, NULL);
    server->has_clock = false;
}
