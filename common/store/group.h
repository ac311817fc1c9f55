/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_GROUP_H
#define COMMON_STORE_GROUP_H

/* group: what comes while a transaction is on its way shares the next one. Whoever comes first does
 * the work for itself at once; those that come meanwhile wait, and one of them does it for all of
 * them. Where they come thick and fast the one that begins waits a moment for more: each round trip
 * that is shared costs everybody less than the moment. A transaction that takes long (a row that
 * somebody holds) keeps the later ones waiting for GROUP_PATIENCE_MS only; then they go beside it.
 * No lock is held while the work is done. Threads: locked. Memory: items are the callers'. */

#include "common/base/err.h"

#include <pthread.h>

#define GROUP_MAX 16 /* items at once */
#define GROUP_SIDE_BY_SIDE 4
#define GROUP_PATIENCE_MS 20
#define GROUP_BUSY_US 2000 /* they come closer than this, on average: it is worth waiting ... */
#define GROUP_GATHER_MS 2  /* ... at most this long for more */

struct group_item { /* first in a caller's own struct */
    struct group_item *next;
    pthread_cond_t news;
    bool waits; /* not taken yet */
    bool done;
};

/* Does the work for all of them; what came of each is written into it. */
typedef void group_fn(void *arg, struct group_item **items, size_t count);

struct group {
    group_fn *fn;
    void *arg;
    pthread_mutex_t lock;
    struct group_item *first, **end; /* those that wait */
    size_t waiting;
    struct group_item *gathers; /* will begin soon */
    int64_t came_us, apart_us;  /* the last one; how far apart they come, smoothed */
    unsigned under_way;
    int64_t began_ms; /* the last one of them */
};

void group_init(struct group *group, group_fn *fn, void *arg);
void group_done(struct group *group); /* nobody may be in it */
/* Returns when the work was done for this item, by this thread or another one. */
void group_do(struct group *group, struct group_item *item);

#endif
