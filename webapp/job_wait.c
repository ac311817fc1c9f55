/* SPDX-License-Identifier: MIT */
#include "webapp/job_wait.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "webapp/allowance.h"
#include "webapp/jobs.h"

#include <pthread.h>

#define BUCKETS 1024u
#define SWEEP_MS 1000 /* events may be lost: the states of all are read so often */
#define TICK_MS 200   /* and so often it is seen whose time is over */
#define ASK_MAX 256u

struct waiter {
    struct waiter *next;
    struct request *req;
    struct allowance_hold hold;
    struct uuid id;
    int64_t deadline_ms;
    bool is_new; /* not looked at since it came: the job may have ended before */
};

struct waiters {
    struct web *web;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct waiter *buckets[BUCKETS]; /* lock; and all below */
    size_t count;
    bool has_new, stopping;
    pthread_t thread;
    bool has_thread;
};

static unsigned bucket_of(const struct uuid *id)
{
    return (id->bytes[14] * 256u + id->bytes[15]) % BUCKETS;
}

/* ---- answering ------------------------------------------------------------------------------- */

static enum err_code answer(struct request *req, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    enum err_code rc = job_store_get(req->web->store, req->who.tenant, &req->subject, &job, err);
    if (rc)
        return rc;
    unsigned status = job_state_ends(job->status) ? MHD_HTTP_OK : MHD_HTTP_ACCEPTED;
    return reply_job(req, status, &req->subject, err);
}

static void let_go(struct waiter *waiter)
{
    struct request *req = waiter->req;
    allowance_return(&waiter->hold);
    free(waiter);
    server_resume(req, answer);
}

enum err_code job_wait(struct request *req, const struct uuid *id, unsigned seconds,
                       struct allowance_hold *take_hold, struct err *err)
{
    struct waiters *waiters = req->web->waiters;
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    if (!waiter)
        return err_set(err, ERR_NOMEM, "out of memory");
    *waiter = (struct waiter){
        .req = req,
        .hold = *take_hold,
        .id = *id,
        .deadline_ms = clock_mono_ms() + (int64_t)seconds * 1000,
        .is_new = true,
    };
    *take_hold = (struct allowance_hold){0};
    req->subject = *id;
    if (!server_park(req)) {
        allowance_return(&waiter->hold);
        free(waiter);
        return err_set(err, ERR_TIMEOUT, "too late to wait");
    }
    pthread_mutex_lock(&waiters->lock);
    bool stopping = waiters->stopping;
    if (!stopping) {
        struct waiter **bucket = &waiters->buckets[bucket_of(id)];
        waiter->next = *bucket;
        *bucket = waiter;
        waiters->count++;
        waiters->has_new = true;
        pthread_cond_signal(&waiters->wake);
    }
    pthread_mutex_unlock(&waiters->lock);
    if (stopping)
        let_go(waiter);
    return REQUEST_PARKED;
}

void waiters_wake(struct waiters *waiters, const struct uuid *id)
{
    struct waiter *woken = NULL;
    pthread_mutex_lock(&waiters->lock);
    struct waiter **at = &waiters->buckets[bucket_of(id)];
    while (*at) {
        struct waiter *waiter = *at;
        if (!uuid_eq(&waiter->id, id)) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        waiter->next = woken;
        woken = waiter;
        waiters->count--;
    }
    pthread_mutex_unlock(&waiters->lock);
    while (woken) {
        struct waiter *next = woken->next;
        let_go(woken);
        woken = next;
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Ids to ask for, from the bucket at *at on; the lock is held. What is over the room in one bucket
 * waits for its event or the next sweep. */
static size_t collect(struct waiters *waiters, bool all, size_t *at, struct uuid *ret_ids,
                      size_t room)
{
    size_t count = 0;
    for (; *at < BUCKETS && count < room; (*at)++) {
        for (struct waiter *waiter = waiters->buckets[*at]; waiter; waiter = waiter->next) {
            if ((all || waiter->is_new) && count < room)
                ret_ids[count++] = waiter->id;
            waiter->is_new = false;
        }
    }
    return count;
}

static void look(struct waiters *waiters, bool all)
{
    struct uuid ids[ASK_MAX];
    enum job_state states[ASK_MAX];
    size_t at = 0;
    while (at < BUCKETS) {
        struct err err = {0};
        pthread_mutex_lock(&waiters->lock);
        size_t count = collect(waiters, all, &at, ids, ASK_MAX);
        pthread_mutex_unlock(&waiters->lock);
        if (count == 0)
            break;
        if (job_store_states(waiters->web->store, ids, count, states, &err) != ERR_OK)
            return;
        for (size_t i = 0; i < count; i++) {
            if (states[i] == JOB_STATE_COUNT || job_state_ends(states[i]))
                waiters_wake(waiters, &ids[i]);
        }
    }
}

/* Takes those out of a bucket whose time is over, or all; the lock is held. */
static void take_late(struct waiters *waiters, size_t bucket, int64_t now_ms, struct waiter **late)
{
    struct waiter **at = &waiters->buckets[bucket];
    while (*at) {
        struct waiter *waiter = *at;
        if (waiter->deadline_ms > now_ms) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        waiter->next = *late;
        *late = waiter;
        waiters->count--;
    }
}

/* The lock is held, and released meanwhile. */
static void let_late_go(struct waiters *waiters, int64_t now_ms)
{
    struct waiter *late = NULL;
    for (size_t i = 0; i < BUCKETS && waiters->count > 0; i++)
        take_late(waiters, i, now_ms, &late);
    pthread_mutex_unlock(&waiters->lock);
    while (late) {
        struct waiter *next = late->next;
        let_go(late);
        late = next;
    }
    pthread_mutex_lock(&waiters->lock);
}

static void *waiters_main(void *arg)
{
    struct waiters *waiters = arg;
    int64_t next_sweep_ms = 0;
    pthread_mutex_lock(&waiters->lock);
    while (!waiters->stopping) {
        bool sweep = clock_mono_ms() >= next_sweep_ms;
        if (sweep)
            next_sweep_ms = clock_mono_ms() + SWEEP_MS;
        if (waiters->count > 0 && (sweep || waiters->has_new)) {
            waiters->has_new = false;
            pthread_mutex_unlock(&waiters->lock);
            look(waiters, sweep);
            pthread_mutex_lock(&waiters->lock);
        }
        let_late_go(waiters, clock_mono_ms());
        int64_t tick_ms = clock_mono_ms() + (waiters->count > 0 ? TICK_MS : SWEEP_MS);
        while (!waiters->stopping && !waiters->has_new &&
               clock_cond_wait_until(&waiters->wake, &waiters->lock, tick_ms))
            continue;
    }
    let_late_go(waiters, INT64_MAX);
    pthread_mutex_unlock(&waiters->lock);
    store_thread_end();
    return NULL;
}

enum err_code waiters_open(struct web *web, struct waiters **ret_waiters, struct err *err)
{
    struct waiters *waiters = calloc(1, sizeof(*waiters));
    if (!waiters)
        return err_set(err, ERR_NOMEM, "out of memory");
    waiters->web = web;
    pthread_mutex_init(&waiters->lock, NULL);
    clock_cond_init(&waiters->wake);
    int rc = pthread_create(&waiters->thread, NULL, waiters_main, waiters);
    if (rc) {
        waiters_free(waiters);
        return err_set_errno(err, ERR_NOMEM, rc, "cannot start the waiters' thread");
    }
    waiters->has_thread = true;
    *ret_waiters = waiters;
    return ERR_OK;
}

size_t waiters_count(struct waiters *waiters)
{
    pthread_mutex_lock(&waiters->lock);
    size_t count = waiters->count;
    pthread_mutex_unlock(&waiters->lock);
    return count;
}

void waiters_stop(struct waiters *waiters)
{
    if (!waiters)
        return;
    pthread_mutex_lock(&waiters->lock);
    waiters->stopping = true;
    pthread_cond_broadcast(&waiters->wake);
    pthread_mutex_unlock(&waiters->lock);
    if (waiters->has_thread)
        (void)pthread_join(waiters->thread, NULL);
    waiters->has_thread = false;
}

void waiters_free(struct waiters *waiters)
{
    if (!waiters)
        return;
    waiters_stop(waiters);
    pthread_cond_destroy(&waiters->wake);
    pthread_mutex_destroy(&waiters->lock);
    free(waiters);
}
