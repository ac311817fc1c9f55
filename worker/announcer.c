/* SPDX-License-Identifier: MIT */
#include "worker/announcer.h"

#include "common/base/clock.h"
#include "common/model/ended.h"
#include "worker/worker.h"

#include <pthread.h>

struct ends { /* that were not told yet */
    struct uuid jobs[ENDED_JOBS_MAX];
    enum job_state state; /* of the last one */
    size_t count;
};

struct announcer {
    struct bus_publisher *pub;
    const char *tenant;
    pthread_t thread;
    bool threaded;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t news;
    struct ends ends;
    int64_t told_ms; /* the last message */
    bool awake;      /* the thread looks again by itself when the next message may go */
    bool stop;
};

static void publish(const struct announcer *announcer, const struct ends *ends)
{
    char id[UUID_TEXT_SIZE];
    char key[BUS_NAME_SIZE];
    char body[ENDED_SIZE_MAX];
    struct err err = {0};
    bool alone = ends->count == 1;
    (void)snprintf(key, sizeof(key), "%s.ended.%s", announcer->tenant,
                   alone ? uuid_text(&ends->jobs[0], id) : ENDED_KEY);
    if (alone)
        (void)snprintf(body, sizeof(body), "{\"v\":1,\"job\":\"%s\",\"status\":\"%s\"}", id,
                       job_state_text(ends->state));
    else
        (void)ended_write(ends->jobs, ends->count, body);
    const struct bus_message message = {
        .exchange = BUS_EVENTS, .routing_key = key, .body = sv_of(body), .transient = true};
    best_effort(bus_publish(announcer->pub, &message, NULL, NULL, &err));
}

/* Under the lock, which is given up while it is sent. */
static void tell_all(struct announcer *announcer)
{
    struct ends ends = announcer->ends;
    announcer->ends.count = 0;
    announcer->told_ms = clock_mono_ms();
    pthread_mutex_unlock(&announcer->lock);
    publish(announcer, &ends);
    pthread_mutex_lock(&announcer->lock);
}

static bool is_due(const struct announcer *announcer)
{
    return announcer->ends.count == ENDED_JOBS_MAX ||
           clock_mono_ms() >= announcer->told_ms + ANNOUNCE_PACE_MS;
}

void announcer_tell(struct announcer *announcer, const struct uuid *job, enum job_state state)
{
    pthread_mutex_lock(&announcer->lock);
    struct ends *ends = &announcer->ends;
    ends->jobs[ends->count++] = *job;
    ends->state = state;
    if (is_due(announcer)) {
        tell_all(announcer);
    } else if (!announcer->awake) {
        announcer->awake = true;
        pthread_cond_signal(&announcer->news);
    }
    pthread_mutex_unlock(&announcer->lock);
}

/* Tells what nobody came to tell. */
static void *announcer_main(void *arg)
{
    struct announcer *announcer = arg; /* close joins us before it frees it */
    pthread_mutex_lock(&announcer->lock);
    while (!announcer->stop) {
        if (announcer->ends.count == 0) {
            announcer->awake = false;
            pthread_cond_wait(&announcer->news, &announcer->lock);
        } else if (is_due(announcer)) {
            tell_all(announcer);
        } else {
            announcer->awake = true;
            (void)clock_cond_wait_until(&announcer->news, &announcer->lock,
                                        announcer->told_ms + ANNOUNCE_PACE_MS);
        }
    }
    if (announcer->ends.count > 0)
        tell_all(announcer);
    pthread_mutex_unlock(&announcer->lock);
    return NULL;
}

enum err_code announcer_open(struct bus_publisher *pub, const char *tenant,
                             struct announcer **ret_announcer, struct err *err)
{
    struct announcer *announcer = calloc(1, sizeof(*announcer));
    if (!announcer)
        return err_set(err, ERR_NOMEM, "no memory for an announcer");
    announcer->pub = pub;
    announcer->tenant = tenant;
    announcer->told_ms = clock_mono_ms() - ANNOUNCE_PACE_MS;
    pthread_mutex_init(&announcer->lock, NULL);
    clock_cond_init(&announcer->news);
    int failed = pthread_create(&announcer->thread, NULL, announcer_main, announcer);
    announcer->threaded = !failed;
    if (failed) {
        announcer_close(announcer);
        return err_set_errno(err, ERR_NOMEM, failed, "cannot start the announcer's thread");
    }
    *ret_announcer = announcer;
    return ERR_OK;
}

void announcer_close(struct announcer *announcer)
{
    if (!announcer)
        return;
    pthread_mutex_lock(&announcer->lock);
    announcer->stop = true;
    pthread_cond_signal(&announcer->news);
    pthread_mutex_unlock(&announcer->lock);
    if (announcer->threaded)
        pthread_join(announcer->thread, NULL);
    pthread_cond_destroy(&announcer->news);
    pthread_mutex_destroy(&announcer->lock);
    free(announcer);
}
