/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_POOL_H
#define WEBAPP_POOL_H

/* pool: threads that handle requests, and two lines before them, which take turns: however many
 * parked requests are resumed at once, new ones get every second thread.
 * Threads: locked. Memory: the lines lend items to the threads; they never free one. */

#include "common/base/err.h"

struct pool;

struct pool_item { /* the first member of what is queued */
    struct pool_item *next;
};

enum pool_line { POOL_NEW, POOL_RESUMED, POOL_LINE_COUNT };

/* run is called on a thread of the pool for each item. */
MUST_USE enum err_code pool_open(unsigned threads, void (*run)(struct pool_item *item),
                                 struct pool **ret_pool, struct err *err);
/* The caller bounds the line: new work is refused when pool_waiting() says enough. */
void pool_push(struct pool *pool, enum pool_line line, struct pool_item *item);
unsigned pool_waiting(struct pool *pool); /* new items; the resumed were let in long ago */
unsigned pool_busy(struct pool *pool);    /* threads at work */
/* Ends the threads; each finishes its item, those in line are run too. NULL is allowed. */
void pool_free(struct pool *pool);

#endif
