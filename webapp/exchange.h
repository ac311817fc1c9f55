/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_EXCHANGE_H
#define WEBAPP_EXCHANGE_H

/* exchange: a request on its connection, as the server sees it; the server's files only.
 * Threads: what the lock guards is said below; the rest is the MHD thread's.
 * Memory: an exchange is held by MHD (until the request is completed) and by whoever handles it. */

#include "webapp/cors.h"
#include "webapp/framing.h"
#include "webapp/pool.h"
#include "webapp/server.h"
#include "webapp/tls.h"

#include <pthread.h>
#include <stdatomic.h>

enum stage {
    STAGE_HEAD,     /* its head arrives */
    STAGE_BODY,     /* its body arrives */
    STAGE_CHECK,    /* suspended: a handler thread checks the token before the body is taken */
    STAGE_CHECKED,  /* resumed: MHD calls for the head once more, then comes the body */
    STAGE_HANDLE,   /* suspended: in the queue or handled */
    STAGE_PARKED,   /* suspended: answered later, without a deadline */
    STAGE_ANSWERED, /* resumed: req.reply is to be sent */
    STAGE_LATE,     /* resumed: the clock gave up on its handler, `late` is to be sent */
    STAGE_SENT,
};

struct exchange {
    struct pool_item item; /* first: the pool's link */
    struct request req;
    struct server *server;
    struct MHD_Connection *mhd;
    struct conn *conn;
    atomic_uint refs;
    enum stage stage;    /* lock */
    bool is_head;        /* HEAD, or GET */
    bool check_only;     /* the handler thread shall only check */
    atomic_bool in_line; /* no thread has begun it; whoever sets it to false has it */
    bool ignore_body;
    bool must_close;    /* what follows on the connection is not to be trusted */
    struct err refusal; /* found before a handler was asked */
    uint64_t discarded; /* bytes of a body that is not wanted */
    unsigned unsent;    /* lock: ticks of the clock since MHD was to send the answer */
    int64_t began_ms;
    int64_t handed_ms; /* lock: when a handler was asked */
    int64_t sent_ms;   /* lock: when the answer was given to MHD */
    bool is_stream;    /* lock: that answer is one */
    bool has_share;    /* of the address */
    uint64_t share_bytes;
    struct reply late;
};

struct conn {
    struct conn *next, *prev; /* lock */
    struct exchange *x;       /* lock: the request under way, or NULL */
    int fd;
    struct tls_set *tls; /* NULL: plain HTTP */
    struct share *share; /* of the address */
    bool killed;         /* lock: the clock closed it; nothing more may be sent */
    bool had_request;    /* lock */
    int64_t since_ms;    /* lock: opened, or last request completed */
};

struct server {
    struct web *web;
    struct MHD_Daemon *daemon;
    struct pool *pool;
    struct pool *quick; /* for what must be answered though all threads of the other are held up */
    struct shares *addresses;
    struct tls *tls;   /* NULL: plain HTTP */
    struct cors *cors; /* NULL: none */
    char hsts[32];     /* "": none */
    pthread_mutex_t lock;
    pthread_cond_t changed;  /* stop was asked, or an exchange has ended */
    struct conn *conns;      /* lock */
    unsigned conn_count;     /* lock */
    unsigned exchange_count; /* lock */
    bool stop_clock;         /* lock */
    atomic_int door;         /* where MHD listens; -1: nowhere */
    unsigned shut_out;       /* of the clock: ticks for which somebody has waited to be taken */
    uint64_t timed_out;      /* lock */
    uint64_t overloaded;     /* lock */
    atomic_bool stopping;
    atomic_bool freed_much; /* a large request has ended since memory was given back */
    int64_t trimmed_ms;     /* of the clock: when that was */
    pthread_t clock;
    bool has_clock;
    int64_t deadline_ms;
    int64_t line_ms; /* longest wait for a handler thread */
};

/* exchange.c: what becomes of one request */
struct exchange *exchange_new(struct server *server, const char *uri);
void exchange_drop(struct exchange *x);
enum MHD_Result exchange_step(struct exchange *x, struct request_line line, const char *bytes,
                              size_t *size);
void exchange_run(struct pool_item *item); /* on a handler thread */
/* Ends the work on a request with the answer in req.reply, or with err's; drops the reference. */
void exchange_answer(struct exchange *x, enum err_code rc, const struct err *err);
/* false: the clock closed the connection. */
MUST_USE bool exchange_advance(struct exchange *x, enum stage stage);

/* exchange_body.c */
#define DISCARD_MAX_BYTES ((uint64_t)8 * 1024 * 1024)  /* of a body that is not wanted */
uint64_t exchange_body_size(const struct exchange *x); /* UINT64_MAX: not known yet (chunked) */
MUST_USE enum err_code exchange_check_body(const struct exchange *x, uint64_t size,
                                           struct err *err);
enum MHD_Result exchange_on_bytes(struct exchange *x, const char *bytes, size_t *size);

/* server_conn.c: connections and the shares of their addresses, on MHD's thread */
MUST_USE enum err_code server_addresses_open(struct server *server, struct err *err);
void server_addresses_close(struct server *server);
void server_conn_open(struct server *server, struct MHD_Connection *mhd, void **context);
void server_conn_close(struct server *server, struct conn *conn); /* NULL is allowed */
/* The request of a connection has ended; the lock is held. NULL: there is none. */
struct exchange *conn_take_exchange(struct server *server, struct conn *conn);
/* Its turn among the requests of its address: ERR_RATE. Those that need no token have it always. */
enum err_code conn_take_turn(struct exchange *x, struct err *err);
/* false: its address holds too many; x->refusal says so. */
MUST_USE bool conn_hold_bytes(struct exchange *x, size_t count);
void conn_give_back(struct exchange *x);

/* server_clock.c */
MUST_USE enum err_code server_clock_start(struct server *server, struct err *err);
void server_clock_stop(struct server *server);
/* Sends an answer past MHD (of TLS: none) and closes; the lock is held. */
void conn_kill(struct server *server, struct conn *conn, const struct err *err);

#endif
