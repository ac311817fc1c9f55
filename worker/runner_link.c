/* SPDX-License-Identifier: MIT */
#include "worker/runner_link.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#define REOPEN_PAUSE_MS 500

struct runner_link {
    struct runner_link_setup setup;
    pthread_rwlock_t guard;       /* read: the client is used; written: it is replaced */
    struct runner_client *client; /* NULL while lost */
    struct bus_consumer *consumer;
    _Atomic unsigned opened;
    pthread_t thread;
    bool threaded;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t news;
    bool stop;
    bool lost;
    bool hurry;   /* a witness has spoken just now: the runner is to hear it at once */
    bool granted; /* a ping of this incarnation was answered: its grant is the one that counts */
};

static void on_exit_record(void *arg, const struct runner_record *record)
{
    struct runner_link *link = arg;
    link->setup.on_exit(link->setup.arg, record);
}

static void on_lost(void *arg, const struct err *err)
{
    struct runner_link *link = arg;
    log_err("worker.runner.lost", err);
    pthread_mutex_lock(&link->lock);
    link->lost = true;
    pthread_cond_signal(&link->news);
    pthread_mutex_unlock(&link->lock);
}

static enum err_code connect_runner(struct runner_link *link, struct err *err)
{
    struct runner_callbacks callbacks = {link, on_exit_record, on_lost};
    struct runner_client *client = NULL;
    enum err_code rc = runner_client_open(&link->setup.client, &callbacks, &client, err);
    if (rc)
        return rc;
    pthread_rwlock_wrlock(&link->guard);
    link->client = client;
    pthread_rwlock_unlock(&link->guard);
    log_event(LOG_INFO, "worker.runner.connected", LOG_I("pid", runner_client_pid(client)));
    return ERR_OK;
}

/* Runs that ended while nobody listened. false: to be tried again, or their slots wait for ever. */
static bool tell_exits(struct runner_link *link)
{
    struct runner_job *jobs = NULL;
    size_t count = 0;
    struct err err = {0};
    if (runner_link_list(link, &jobs, &count, &err)) {
        log_err("worker.runner.list", &err);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].exited)
            link->setup.on_exit(link->setup.arg, &jobs[i].record);
    }
    free(jobs);
    return true;
}

/* On the pinging thread. */
static void reopen(struct runner_link *link)
{
    pthread_rwlock_wrlock(&link->guard);
    struct runner_client *former = TAKE(link->client);
    pthread_rwlock_unlock(&link->guard);
    runner_client_free(former);
    pthread_mutex_lock(&link->lock);
    link->lost = false;
    pthread_mutex_unlock(&link->lock);
    struct err err = {0};
    if (connect_runner(link, &err) != ERR_OK)
        log_err("worker.runner.failed", &err);
    else if (tell_exits(link)) {
        atomic_fetch_add(&link->opened, 1);
        return;
    }
    pthread_mutex_lock(&link->lock);
    link->lost = true;
    pthread_mutex_unlock(&link->lock);
}

static int64_t heard_ms(struct runner_link *link)
{
    uint32_t generation = bus_consumer_generation(link->consumer);
    int64_t frame_ms = bus_consumer_last_frame_ms(link->consumer);
    if (generation != bus_consumer_generation(link->consumer))
        frame_ms = 0; /* it may be of the newer connection, which no beat has seen */
    return witness_latest_ms(link->setup.witness, generation, frame_ms);
}

static enum err_code ping_once(struct runner_link *link, struct err *err)
{
    const struct runner_link_setup *setup = &link->setup;
    int64_t latest_ms = heard_ms(link);
    int64_t until_ms = latest_ms + (int64_t)setup->lease_ms * 3 / 4;
    /* TERM at five eighths of a lease at the earliest: what is away for half a lease, and is found
     * back at the next beat or probe, ends nothing. */
    int grace_ms =
        (int)(setup->grace_ms < setup->lease_ms / 8 ? setup->grace_ms : setup->lease_ms / 8);
    if (until_ms <= clock_boot_ms())
        setup->on_silence(setup->arg);
    enum err_code rc = ERR_IO;
    pthread_rwlock_rdlock(&link->guard);
    if (link->client)
        rc = runner_client_ping(link->client, until_ms, grace_ms, err);
    pthread_rwlock_unlock(&link->guard);
    pthread_mutex_lock(&link->lock);
    link->granted = link->granted || rc == ERR_OK;
    pthread_mutex_unlock(&link->lock);
    return rc;
}

static void *link_main(void *arg)
{
    struct runner_link *link = arg;
    int64_t interval_ms = link->setup.beat_ms / 4 ? link->setup.beat_ms / 4 : 1;
    pthread_mutex_lock(&link->lock);
    while (!link->stop) {
        bool lost = link->lost;
        link->hurry = false;
        pthread_mutex_unlock(&link->lock);
        if (lost)
            reopen(link);
        struct err err = {0};
        if (ping_once(link, &err) && err.code)
            log_err("worker.runner.ping", &err);
        pthread_mutex_lock(&link->lock);
        int64_t until_ms = clock_mono_ms() + (link->lost ? REOPEN_PAUSE_MS : interval_ms);
        bool was_lost = link->lost;
        while (!link->stop && link->lost == was_lost && (!link->hurry || was_lost) &&
               clock_cond_wait_until(&link->news, &link->lock, until_ms))
            ;
    }
    pthread_mutex_unlock(&link->lock);
    return NULL;
}

enum err_code runner_link_open(const struct runner_link_setup *setup, struct runner_link **ret_link,
                               struct err *err)
{
    struct runner_link *link = calloc(1, sizeof(*link));
    if (!link)
        return err_set(err, ERR_NOMEM, "no memory for the runner's link");
    link->setup = *setup;
    pthread_rwlock_init(&link->guard, NULL);
    pthread_mutex_init(&link->lock, NULL);
    clock_cond_init(&link->news);
    enum err_code rc = connect_runner(link, err);
    if (rc) {
        runner_link_close(link, false);
        return rc;
    }
    *ret_link = link;
    return ERR_OK;
}

enum err_code runner_link_ping(struct runner_link *link, struct bus_consumer *consumer,
                               struct err *err)
{
    link->consumer = consumer;
    enum err_code rc = ping_once(link, err);
    if (rc && rc != ERR_TIMEOUT && rc != ERR_IO)
        return rc;
    /* A slow runner hears it later; one that has died since it was opened is replaced soon. */
    pthread_mutex_lock(&link->lock);
    link->lost = link->lost || rc == ERR_IO;
    pthread_mutex_unlock(&link->lock);
    err_clear(err);
    int failed = pthread_create(&link->thread, NULL, link_main, link);
    link->threaded = !failed;
    if (failed)
        return err_set_errno(err, ERR_NOMEM, failed, "cannot start the runner's thread");
    return ERR_OK;
}

void runner_link_hurry(struct runner_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->hurry = true;
    pthread_cond_signal(&link->news);
    pthread_mutex_unlock(&link->lock);
}

bool runner_link_granted(struct runner_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool granted = link->granted;
    pthread_mutex_unlock(&link->lock);
    return granted;
}

/* The start time makes it unique among the processes that had this pid since the host booted. */
void runner_link_name(struct runner_link *link, const char *boot_id, char *ret_text, size_t size)
{
    BUF_AUTO struct buf stat = BUF_INIT(4096);
    char path[32];
    struct err err = {0};
    FD_AUTO int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long pid = link->client ? (long)runner_client_pid(link->client) : 0;
    ret_text[0] = 0;
    (void)snprintf(path, sizeof(path), "%ld/stat", pid);
    if (proc < 0 || pid <= 0 || fs_read(proc, path, &stat, &err) != ERR_OK)
        return;
    const char *at = strrchr(buf_text(&stat), ')'); /* the name before it may hold anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at)
        (void)snprintf(ret_text, size, "%s %ld %.*s", boot_id, pid, (int)strcspn(at + 1, " "),
                       at + 1);
}

unsigned runner_link_opened(struct runner_link *link)
{
    return atomic_load(&link->opened);
}

void runner_link_hush(struct runner_link *link)
{
    if (!link->threaded)
        return;
    pthread_mutex_lock(&link->lock);
    link->stop = true;
    pthread_cond_signal(&link->news);
    pthread_mutex_unlock(&link->lock);
    pthread_join(link->thread, NULL);
    link->threaded = false;
}

void runner_link_close(struct runner_link *link, bool stop_if_idle)
{
    if (!link)
        return;
    runner_link_hush(link);
    if (link->client) {
        runner_client_close(link->client, stop_if_idle);
    }
    pthread_rwlock_destroy(&link->guard);
    pthread_mutex_destroy(&link->lock);
    pthread_cond_destroy(&link->news);
    free(link);
}

/* The calls: on the client of now; without one ERR_STATE, so that it is known that nothing was
 * asked. */
#define ON_CLIENT(link, call)                                                                      \
    __extension__({                                                                                \
        enum err_code rc_ = ERR_IO;                                                                \
        pthread_rwlock_rdlock(&(link)->guard);                                                     \
        struct runner_client *client = (link)->client;                                             \
        rc_ = client ? (call) : err_set(err, ERR_STATE, "the runner is not connected");            \
        pthread_rwlock_unlock(&(link)->guard);                                                     \
        rc_;                                                                                       \
    })

enum err_code runner_link_list(struct runner_link *link, struct runner_job **ret_jobs,
                               size_t *ret_count, struct err *err)
{
    return ON_CLIENT(link, runner_client_list(client, ret_jobs, ret_count, err));
}

enum err_code runner_link_start(struct runner_link *link, const struct runner_start *start,
                                struct runner_job *ret_job, bool *ret_existing, struct err *err)
{
    return ON_CLIENT(link, runner_client_start(client, start, ret_job, ret_existing, err));
}

enum err_code runner_link_adopt(struct runner_link *link, const struct uuid *job,
                                uint64_t old_fence, uint64_t new_fence, struct runner_job *ret_job,
                                struct err *err)
{
    return ON_CLIENT(link, runner_client_adopt(client, job, old_fence, new_fence, ret_job, err));
}

enum err_code runner_link_kill(struct runner_link *link, const struct uuid *job, uint64_t fence,
                               int grace_ms, const char *note, struct err *err)
{
    return ON_CLIENT(link, runner_client_kill(client, job, fence, grace_ms, note, err));
}

enum err_code runner_link_forget(struct runner_link *link, const struct uuid *job, uint64_t fence,
                                 struct err *err)
{
    return ON_CLIENT(link, runner_client_forget(client, job, fence, err));
}

enum err_code runner_link_forget_soon(struct runner_link *link, const struct uuid *job,
                                      uint64_t fence, struct err *err)
{
    return ON_CLIENT(link, runner_client_forget_soon(client, job, fence, err));
}
