/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_STORE_H
#define COMMON_STORE_STORE_H

/* store: the database behind a bounded pool of connections. Every call of the *_store modules
 * borrows one connection for its transaction and retries the whole transaction when the server
 * was lost before the commit, or on a deadlock or a lock wait timeout (bounded, with jitter). When
 * the connection is lost during a commit the outcome is unknown: each call says what it does then.
 *
 * Threads: locked (any thread may call; each ends with store_thread_end()).
 * Errors of every call, besides its own: ERR_DB_AWAY (the server cannot be reached, takes no
 * writes, or no connection came free, within the deadline), ERR_DB (the server refused a
 * statement), ERR_STOPPING (store_stop was called). */

#include "common/base/err.h"

struct store;

struct store_config {
    const char *host;
    const char *user;
    const char *password;
    const char *name;   /* of the database */
    const char *tls_ca; /* "" for none; else TLS is required and verified against this file */
    uint16_t port;
    uint32_t pool_size;
    uint32_t connect_timeout_ms;
    /* Socket read and write timeout of a statement; the server ends one after nine tenths of it. */
    uint32_t query_timeout_ms;
    uint32_t acquire_timeout_ms; /* most that a call waits for a connection or for the server */
};

/* Does not need the server: connections are opened when they are wanted. */
MUST_USE enum err_code store_open(const struct store_config *cfg, struct store **ret_store,
                                  struct err *err);
void store_free(struct store *store); /* no call may be under way */
/* Calls under way and later ones end soon with ERR_STOPPING. */
void store_stop(struct store *store);
/* The connections that are open now are used for no further call: what they lead to may answer
 * reads though it is no longer the primary. */
void store_renew(struct store *store);
/* On a pooled connection: whether the server takes writes, and the schema is the one we know. */
MUST_USE enum err_code store_ping(struct store *store, struct err *err);
/* Waits until store_ping succeeds, with one log line per change of the reason; ERR_STOPPING when
 * *stop becomes true. */
MUST_USE enum err_code store_wait_ready(struct store *store, const volatile bool *stop,
                                        struct err *err);
/* What a change expects of the version of the row that it finds: this one, or one of these. */
#define EXPECT_ANY 0                 /* also that there is none */
#define EXPECT_NONE UINT32_MAX       /* there is none */
#define EXPECT_SOME (UINT32_MAX - 1) /* there is one */

struct name_page {     /* of what is listed in the order of its names */
    const char *after; /* "": from the first on */
    uint32_t limit;
};

/* Must be the last call of every thread that used the store. */
void store_thread_end(void);

struct store_counters {
    uint64_t transactions;
    uint64_t retries;
    uint64_t reconnects;
    uint64_t fenced_writes;
    uint32_t in_use;
    uint32_t open;
};
void store_counters(struct store *store, struct store_counters *ret_counters);

DEFINE_AUTO(struct store *, store_free)

#endif
