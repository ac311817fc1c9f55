/* SPDX-License-Identifier: MIT */
#include "worker/discard.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "worker/outcome.h"
#include "worker/worker.h"

#include <assert.h>
#include <pthread.h>

#define FIRST_LOOK_MS 20 /* doubled up to: */
#define LAST_LOOK_MS 1000

struct discard {
    struct runner_link *link;
    int work_fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news, empty;
    bool stop;
    bool added;
    struct runner_job *runs;
    size_t count, most;
};

/* Kills again each time: a call that was lost may have killed nothing. true: it is gone. */
static bool end_run(struct discard *discard, const struct runner_job *run)
{
    char id[UUID_TEXT_SIZE];
    char dir[RUNNER_DIR_SIZE];
    struct err err = {0};
    FAULT("worker.discard");
    if (!run->exited)
        best_effort(
            runner_link_kill(discard->link, &run->job, run->fence, 0, KILL_NOTE_FENCED, &err));
    err_clear(&err);
    enum err_code rc = runner_link_forget(discard->link, &run->job, run->fence, &err);
    if (rc != ERR_OK && rc != ERR_NOT_FOUND && rc != ERR_FENCED)
        return false;
    /* ERR_FENCED: another run of this job is in its place, which says that this one is gone. */
    err_clear(&err);
    if (fs_remove_tree(discard->work_fd, runner_job_dir(&run->job, run->run, dir), &err))
        log_err("worker.dir.kept", &err);
    log_event(LOG_INFO, "worker.run.removed", LOG_S("job", uuid_text(&run->job, id)),
              LOG_U("fence", run->fence));
    return true;
}

/* One round; the lock is held, but not while the runner is asked. */
static void end_runs(struct discard *discard)
{
    for (size_t i = 0; i < discard->count && !discard->stop;) {
        struct runner_job run = discard->runs[i];
        pthread_mutex_unlock(&discard->lock);
        bool gone = end_run(discard, &run);
        pthread_mutex_lock(&discard->lock);
        if (!gone) {
            i++;
            continue;
        }
        discard->count--; /* only this thread removes; what was added meanwhile is behind it */
        memmove(&discard->runs[i], &discard->runs[i + 1],
                (discard->count - i) * sizeof(*discard->runs));
        pthread_cond_broadcast(&discard->empty);
    }
}

static void *discard_main(void *arg)
{
    struct discard *discard = arg;
    int64_t pause_ms = FIRST_LOOK_MS;
    pthread_mutex_lock(&discard->lock);
    while (!discard->stop) {
        if (discard->added)
            pause_ms = FIRST_LOOK_MS;
        discard->added = false;
        end_runs(discard);
        int64_t until_ms = discard->count ? clock_mono_ms() + pause_ms : INT64_MAX / 2;
        pause_ms = pause_ms * 2 < LAST_LOOK_MS ? pause_ms * 2 : LAST_LOOK_MS;
        while (!discard->stop && !discard->added &&
               clock_cond_wait_until(&discard->news, &discard->lock, until_ms))
            ;
    }
    for (size_t i = 0; i < discard->count; i++) {
        char id[UUID_TEXT_SIZE];
        log_event(LOG_WARN, "worker.run.kept", LOG_S("job", uuid_text(&discard->runs[i].job, id)),
                  LOG_U("fence", discard->runs[i].fence));
    }
    pthread_mutex_unlock(&discard->lock);
    return NULL;
}

enum err_code discard_start(struct runner_link *link, int work_fd, size_t most,
                            struct discard **ret_discard, struct err *err)
{
    struct discard *discard = calloc(1, sizeof(*discard));
    struct runner_job *runs = calloc(most + 1, sizeof(*runs));
    if (!discard || !runs) {
        free(discard);
        free(runs);
        return err_set(err, ERR_NOMEM, "no memory to discard %zu runs", most);
    }
    *discard = (struct discard){.link = link, .work_fd = work_fd, .runs = runs, .most = most};
    pthread_mutex_init(&discard->lock, NULL);
    clock_cond_init(&discard->news);
    clock_cond_init(&discard->empty);
    int failed = pthread_create(&discard->thread, NULL, discard_main, discard);
    if (failed) {
        free(discard->runs);
        free(discard);
        return err_set_errno(err, ERR_NOMEM, failed, "cannot start the thread that discards runs");
    }
    *ret_discard = discard;
    return ERR_OK;
}

void discard_add(struct discard *discard, const struct runner_job *run)
{
    pthread_mutex_lock(&discard->lock);
    assert(discard->count < discard->most);
    discard->runs[discard->count++] = *run;
    discard->added = true;
    pthread_cond_signal(&discard->news);
    pthread_mutex_unlock(&discard->lock);
}

bool discard_wait(struct discard *discard, int64_t deadline_ms)
{
    bool in_time = true;
    pthread_mutex_lock(&discard->lock);
    while (discard->count > 0 && in_time)
        in_time = clock_cond_wait_until(&discard->empty, &discard->lock, deadline_ms);
    bool gone = discard->count == 0;
    pthread_mutex_unlock(&discard->lock);
    return gone;
}

void discard_stop(struct discard *discard)
{
    if (!discard)
        return;
    pthread_mutex_lock(&discard->lock);
    discard->stop = true;
    pthread_cond_signal(&discard->news);
    pthread_mutex_unlock(&discard->lock);
    pthread_join(discard->thread, NULL);
    pthread_mutex_destroy(&discard->lock);
    pthread_cond_destroy(&discard->news);
    pthread_cond_destroy(&discard->empty);
    free(discard->runs);
    free(discard);
}
