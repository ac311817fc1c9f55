/* SPDX-License-Identifier: MIT */
#include "webapp/follow.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/job_store.h"
#include "webapp/follow_impl.h"

#define LOOK_MS 100                           /* how often files are looked at */
#define CHECK_MS 1000                         /* how often it is seen whether tokens hold */
#define ASK_MS 500                            /* how often states are read */
#define ASK_MAX 256u                          /* of so many at once */
#define EVENT_LIMIT ((size_t)8 * 1024 * 1024) /* the end event holds the job's request */
#define BLOCK_BYTES ((size_t)64 * 1024)       /* what MHD asks for at once */
#define EVENTS_TYPE "text/event-stream"

static void follower_free(struct follower *follower)
{
    buf_done(&follower->event);
    fd_close(&follower->fd);
    allowance_return(&follower->hold);
    free(follower);
}

/* ---- on MHD's thread --------------------------------------------------------------------------
 */

static ssize_t on_read(void *cls, uint64_t position, char *bytes, size_t room)
{
    struct follower *follower = cls;
    struct followers *all = follower->all;
    ssize_t count = 0;
    (void)position;
    pthread_mutex_lock(&all->lock);
    size_t left = follower->ended ? 0 : follower->event.len - follower->sent;
    if (left > 0) {
        count = (ssize_t)(left < room ? left : room);
        memcpy(bytes, follower->event.ptr + follower->sent, (size_t)count);
        follower->sent += (size_t)count;
    } else if (follower->finished || follower->ended || all->stopping) {
        count = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        follower->suspended = true;
        MHD_suspend_connection(follower->mhd);
        all->roused = true;
        pthread_cond_signal(&all->wake);
    }
    pthread_mutex_unlock(&all->lock);
    return count;
}

static void on_free(void *cls)
{
    struct follower *follower = cls;
    struct followers *all = follower->all;
    pthread_mutex_lock(&all->lock);
    struct follower **at = &all->first;
    while (*at != follower)
        at = &(*at)->next;
    *at = follower->next;
    all->count--;
    bool busy = follower->busy;
    follower->gone = true;
    pthread_mutex_unlock(&all->lock);
    if (!busy)
        follower_free(follower);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Those whose connection waits; the lock is held. */
static size_t take_waiting(struct followers *all, struct follower **ret_list)
{
    size_t count = 0;
    for (struct follower *f = all->first; f && count < FOLLOWERS_MAX; f = f->next) {
        if (!f->suspended)
            continue;
        f->busy = true;
        buf_clear(&f->event);
        f->sent = 0;
        ret_list[count++] = f;
    }
    return count;
}

static void give_back(struct followers *all, struct follower *follower, bool last)
{
    pthread_mutex_lock(&all->lock);
    bool gone = follower->gone;
    follower->busy = false;
    follower->finished = follower->finished || last || follower->event.failed;
    if (!gone && (follower->event.len > 0 || follower->finished)) {
        follower->suspended = false;
        MHD_resume_connection(follower->mhd);
    }
    pthread_mutex_unlock(&all->lock);
    if (gone)
        follower_free(follower);
}

/* Reads the states of those that are followed and marks which have ended. */
static void ask_states(struct followers *all, struct follower **list, size_t count)
{
    struct uuid ids[ASK_MAX];
    enum job_state states[ASK_MAX];
    struct err err = {0};
    for (size_t i = 0; i < count; i++)
        ids[i] = list[i]->job.id;
    if (job_store_states(all->web->store, ids, count, states, &err) != ERR_OK)
        return; /* the files are still followed; the end is seen later */
    for (size_t i = 0; i < count; i++) {
        AUTO(job_free) struct job *job = NULL;
        if (states[i] == JOB_STATE_COUNT || list[i]->has_ended || !job_state_ends(states[i]))
            continue;
        struct err why = {0};
        if (job_store_get(all->web->store, list[i]->job.tenant, &ids[i], &job, &why) != ERR_OK)
            continue;
        list[i]->job.status = job->status;
        list[i]->job.run_fence = job->run_fence;
        list[i]->next_run_look_ms = 0;
        list[i]->has_ended = true;
    }
}

static bool any_hinted(struct follower **list, size_t count)
{
    bool hinted = false;
    for (size_t i = 0; i < count; i++) {
        hinted = hinted || list[i]->hinted;
        list[i]->hinted = false;
    }
    return hinted;
}

/* Ends the streams whose token has expired or whose key is gone. They can be taken up again with
 * another one. The lock is held, and nobody is busy. */
static void end_unheld(struct followers *all)
{
    for (struct follower *f = all->first; f; f = f->next) {
        const char *why = f->ended ? NULL : auth_ended(all->web->auth, &f->who);
        if (!why)
            continue;
        log_event(LOG_INFO, "output.follower.ended", LOG_S("tenant", f->who.tenant),
                  LOG_S("user", f->who.user), LOG_S("reason", why));
        f->ended = true;
        if (f->suspended)
            MHD_resume_connection(f->mhd);
        f->suspended = false;
    }
}

/* One look at everybody; the lock is held and released meanwhile. */
static void round_of_work(struct followers *all, int64_t *next_ask_ms)
{
    struct follower *list[FOLLOWERS_MAX];
    if (all->count > 0 && clock_mono_ms() - all->checked_ms >= CHECK_MS) {
        all->checked_ms = clock_mono_ms();
        pthread_mutex_unlock(&all->lock);
        auth_look(all->web->auth);
        pthread_mutex_lock(&all->lock);
        end_unheld(all);
    }
    size_t count = take_waiting(all, list);
    bool ask = any_hinted(list, count) || clock_mono_ms() >= *next_ask_ms;
    all->roused = false;
    pthread_mutex_unlock(&all->lock);
    if (count > 0 && ask) {
        *next_ask_ms = clock_mono_ms() + ASK_MS;
        for (size_t at = 0; at < count; at += ASK_MAX)
            ask_states(all, list + at, count - at < ASK_MAX ? count - at : ASK_MAX);
    }
    for (size_t i = 0; i < count; i++)
        give_back(all, list[i], follower_work(list[i]));
    pthread_mutex_lock(&all->lock);
}

static void *followers_main(void *arg)
{
    struct followers *all = arg;
    int64_t next_ask_ms = 0;
    pthread_mutex_lock(&all->lock);
    while (!all->stopping) {
        round_of_work(all, &next_ask_ms);
        int64_t until_ms = clock_mono_ms() + LOOK_MS;
        while (!all->stopping && (!all->roused || all->count == 0) &&
               clock_cond_wait_until(&all->wake, &all->lock, until_ms + (all->count == 0) * ASK_MS))
            continue;
    }
    for (struct follower *f = all->first; f; f = f->next) {
        if (f->suspended) {
            f->suspended = false;
            MHD_resume_connection(f->mhd);
        }
    }
    pthread_mutex_unlock(&all->lock);
    store_thread_end();
    return NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static enum err_code admit(struct followers *all, struct follower *follower, struct err *err)
{
    pthread_mutex_lock(&all->lock);
    bool room = !all->stopping;
    if (room) {
        follower->next = all->first;
        all->first = follower;
        all->count++;
    }
    pthread_mutex_unlock(&all->lock);
    return room ? ERR_OK : err_set(err, ERR_STOPPING, "this process is stopping: ask again");
}

enum err_code follow_start(struct request *req, const struct job *job, const char *stream,
                           uint64_t offset, struct err *err)
{
    struct followers *all = req->web->followers;
    struct follower *follower = calloc(1, sizeof(*follower));
    if (!follower)
        return err_set(err, ERR_NOMEM, "out of memory");
    follower->all = all;
    follower->mhd = server_connection(req);
    follower->event = BUF_INIT(EVENT_LIMIT);
    follower->who = req->who;
    follower->job = *job;
    follower->job.request = NULL;
    follower->job.tags = NULL;
    follower->stream = stream;
    follower->offset = offset;
    follower->fd = -1;
    follower->has_ended = job_state_ends(job->status);
    follower->written_ms = clock_mono_ms();
    enum err_code rc = allowance_take(all->web->allowances, ALLOWANCE_FOLLOWERS, &req->who, 1,
                                      &follower->hold, err);
    if (rc == ERR_OK)
        rc = admit(all, follower, err);
    if (rc) {
        follower_free(follower);
        return rc;
    }
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
                                                                      on_read, follower, on_free);
    if (!response) {
        on_free(follower);
        return err_set(err, ERR_NOMEM, "out of memory");
    }
    reply_response(req, MHD_HTTP_OK, response);
    reply_header(req, "Content-Type", EVENTS_TYPE);
    return ERR_OK;
}

void followers_wake(struct followers *followers, const struct uuid *id)
{
    pthread_mutex_lock(&followers->lock);
    for (struct follower *f = followers->first; f; f = f->next) {
        if (!uuid_eq(&f->job.id, id))
            continue;
        f->hinted = true;
        followers->roused = true;
    }
    pthread_cond_signal(&followers->wake);
    pthread_mutex_unlock(&followers->lock);
}

enum err_code followers_open(struct web *web, struct followers **ret_followers, struct err *err)
{
    struct followers *all = calloc(1, sizeof(*all));
    if (!all)
        return err_set(err, ERR_NOMEM, "out of memory");
    all->web = web;
    pthread_mutex_init(&all->lock, NULL);
    clock_cond_init(&all->wake);
    int rc = pthread_create(&all->thread, NULL, followers_main, all);
    if (rc) {
        followers_free(all);
        return err_set_errno(err, ERR_NOMEM, rc, "cannot start the followers' thread");
    }
    all->has_thread = true;
    *ret_followers = all;
    return ERR_OK;
}

size_t followers_count(struct followers *followers)
{
    pthread_mutex_lock(&followers->lock);
    size_t count = followers->count;
    pthread_mutex_unlock(&followers->lock);
    return count;
}

void followers_stop(struct followers *followers)
{
    if (!followers)
        return;
    pthread_mutex_lock(&followers->lock);
    followers->stopping = true;
    pthread_cond_broadcast(&followers->wake);
    pthread_mutex_unlock(&followers->lock);
    if (followers->has_thread)
        (void)pthread_join(followers->thread, NULL);
    followers->has_thread = false;
}

void followers_free(struct followers *followers)
{
    if (!followers)
        return;
    followers_stop(followers);
    pthread_cond_destroy(&followers->wake);
    pthread_mutex_destroy(&followers->lock);
    free(followers);
}
