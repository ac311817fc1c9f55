/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_POOL_H
#define WEBAPP_POOL_H

/* pool: threads that handle requests, and a queue before them.
 * Threads: locked. Memory: the queue lends items to the threads; it never frees one. */

#include "common/base/err.h"

struct pool;

struct pool_item { /* the first member of what is queued */
    struct pool_item *next;
};

/* run is called on a thread of the pool for each item. */
MUST_USE enum err_code pool_open(unsigned threads, void (*run)(struct pool_item *item),
                                 struct pool **ret_pool, struct err *err);
/* The caller bounds the queue: new work is refused when pool_waiting() says enough. */
void pool_push(struct pool *pool, struct pool_item *item);
unsigned pool_waiting(struct pool *pool); /* items in the queue */
unsigned pool_busy(struct pool *pool);    /* threads at work */
/* Ends the threads; each finishes its item, those in the queue are run too. NULL is allowed. */
void pool_free(struct pool *pool);

#endif
