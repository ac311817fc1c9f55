/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_POOL_H
#define COMMON_STORE_POOL_H

/* pool: what the *_store modules build on: a transaction on a pooled connection, tried again as a
 * whole. Threads: locked. For common/store only. */

#include "common/store/db.h"

struct txn {
    struct store *store;
    struct db *db;
    /* The connection was lost during the commit of an earlier try: what this try finds may be its
     * own work. */
    bool commit_unknown;
    /* Set by the function with its error: try again (a rival inserted the same key). */
    bool again;
};

/* Does the work; called once per try. An error rolls back; ERR_OK commits. It must leave in ctx
 * nothing that a further try could not write again. */
typedef enum err_code (*txn_fn)(struct txn *txn, void *ctx, struct err *err);

/* BEGIN, fn, COMMIT. Lost connections are tried again until the store's acquire timeout is over,
 * deadlocks and lock waits a bounded number of times. */
MUST_USE enum err_code store_txn(struct store *store, txn_fn fn, void *ctx, struct err *err);
/* The same without BEGIN and COMMIT, for reads and for ONE writing statement that may be repeated
 * (commit_unknown tells that it may have been done). */
MUST_USE enum err_code store_once(struct store *store, txn_fn fn, void *ctx, struct err *err);

/* A copy whose texts belong to ret_texts (also when there was no memory: false). */
#define STORE_CONFIG_TEXTS 5
MUST_USE bool store_config_copy(const struct store_config *cfg, struct store_config *ret_cfg,
                                char *ret_texts[STORE_CONFIG_TEXTS]);

void store_count_fenced(struct store *store);

#endif
