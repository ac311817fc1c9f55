/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_FOLLOW_IMPL_H
#define WEBAPP_FOLLOW_IMPL_H

/* follow_impl: one follower of an output. For the files of follow only.
 * Threads: what the lock guards is said below. */

#include "webapp/allowance.h"
#include "webapp/follow.h"

#include <pthread.h>

struct follower {
    struct follower *next; /* lock */
    struct followers *all;
    struct MHD_Connection *mhd;
    struct allowance_hold hold;
    /* lock: */
    bool suspended; /* the connection waits for an event */
    bool busy;      /* the thread works on it without the lock */
    bool gone;      /* the connection has ended: free it when it is not busy */
    bool finished;  /* nothing comes behind this event */
    bool hinted;    /* an event said that the job has ended */
    bool ended;     /* its token has expired, or the key is gone */
    struct buf event;
    size_t sent;
    struct identity who; /* never changes */
    /* the thread's, while it is busy: */
    struct job job; /* without its texts */
    const char *stream;
    uint64_t offset;
    uint64_t run;
    int fd;
    bool has_ended;
    int64_t written_ms;
    int64_t next_run_look_ms;
};

struct followers {
    struct web *web;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct follower *first; /* lock; and the next */
    size_t count;
    bool roused, stopping;
    int64_t checked_ms; /* when it was seen whether tokens and keys hold */
    pthread_t thread;
    bool has_thread;
};

/* Fills the event if there is something to say; true if that was the last. For the thread, while
 * the follower is busy. */
bool follower_work(struct follower *follower);

#endif
