/* SPDX-License-Identifier: MIT */
#include "webapp/probe.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/service/presence.h"
#include "common/service/servers.h"
#include "common/store/hook_send.h"
#include "common/store/job_store.h"
#include "common/store/outbox_store.h"
#include "common/store/overview_store.h"
#include "common/store/process_store.h"
#include "common/store/retention_store.h"

#include <pthread.h>

#define ANSWER_MS 1000      /* so long somebody waits who asks */
#define PING_MS 700         /* so long a database that cannot be reached is tried */
#define COST_FACTOR 20      /* counting may take a twentieth of the time */
#define COUNTS_OLD_MS 60000 /* older ones are not told any more */
#define CHEAP_MS 50         /* where counting takes longer, nobody waits for it */

struct look { /* something that a thread of its own finds out */
    struct probe *probe;
    void (*find)(struct probe *probe);
    pthread_t thread;
    bool has_thread;
    bool wanted;      /* lock; and all below */
    int64_t asked_ms; /* when the last look that has ended began; 0: none has */
    int64_t cost_ms;
};

struct probe {
    struct store *store;
    struct store *own; /* one connection, which nobody else can keep busy */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping; /* lock; and all below */
    struct look ping, count;
    struct err database;
    struct job_count *jobs;
    size_t job_count;
    int64_t unserved;
    int64_t outbox_rows;
    int64_t hook_lag_s;
    int64_t counted_ms; /* 0: never */
};

/* ---- the looks: each on its thread, without the lock ------------------------------------------
 */

static void find_database(struct probe *probe)
{
    struct err err = {0};
    err.code = store_ping(probe->own, &err);
    pthread_mutex_lock(&probe->lock);
    bool changed = strcmp(probe->database.text, err.text) != 0;
    probe->database = err;
    pthread_mutex_unlock(&probe->lock);
    if (changed && err.code) /* /readyz is open to everybody, and has other words */
        log_err("web.database.away", &err);
    else if (changed)
        log_event(LOG_INFO, "web.database.back");
}

static enum err_code find_sender(struct store *store, bool *ret_runs, struct err *err)
{
    struct process_row *rows = NULL;
    size_t count = 0;
    enum err_code rc = process_store_list(store, PRESENCE_MS, &rows, &count, err);
    *ret_runs = false;
    for (size_t i = 0; rc == ERR_OK && i < count; i++)
        *ret_runs = *ret_runs || strcmp(rows[i].service, "sluice-webhook") == 0;
    free(rows);
    return rc;
}

/* While somebody sends, that a delivery waits is its receiver's doing. */
static enum err_code find_hook_lag(struct store *store, int64_t *ret_us, struct err *err)
{
    struct retention_row row = {0};
    uint64_t waiting = 0;
    int64_t due_us = 0;
    bool runs = false;
    enum err_code rc = retention_store_get(store, &row, err);
    if (rc == ERR_OK)
        rc = find_sender(store, &runs, err);
    if (rc == ERR_OK && !runs)
        rc = hook_waiting(store, &waiting, &due_us, err);
    int64_t unseen_us = row.hook_us > 0 ? row.now_us - row.hook_us : 0;
    *ret_us = unseen_us > due_us ? unseen_us : due_us;
    return rc;
}

static bool is_taken(const struct job_count *jobs, const struct queue_taker *takers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(takers[i].tenant, jobs->tenant) == 0 &&
            strcmp(takers[i].queue, jobs->queue) == 0)
            return true;
    }
    return false;
}

static enum err_code count_unserved(struct store *store, const struct job_count *jobs, size_t count,
                                    int64_t *ret_queues, struct err *err)
{
    struct queue_taker *takers = NULL;
    size_t taker_count = 0;
    enum err_code rc = overview_store_takers(store, &takers, &taker_count, err);
    *ret_queues = 0;
    for (size_t i = 0; rc == ERR_OK && i < count; i++)
        *ret_queues += jobs[i].status == JOB_PENDING && !is_taken(&jobs[i], takers, taker_count);
    free(takers);
    return rc;
}

static void find_counts(struct probe *probe)
{
    struct job_count *jobs = NULL;
    size_t count = 0;
    uint64_t rows = 0;
    int64_t lag_us = 0;
    int64_t unserved = 0;
    struct err err = {0};
    if (outbox_store_count(probe->store, &rows, &err) != ERR_OK ||
        find_hook_lag(probe->store, &lag_us, &err) != ERR_OK ||
        job_store_counts(probe->store, &jobs, &count, &err) != ERR_OK)
        return;
    if (count_unserved(probe->store, jobs, count, &unserved, &err)) {
        free(jobs);
        return;
    }
    pthread_mutex_lock(&probe->lock);
    struct job_count *old = probe->jobs;
    probe->jobs = jobs;
    probe->job_count = count;
    probe->unserved = unserved;
    probe->outbox_rows = (int64_t)rows;
    probe->hook_lag_s = lag_us / 1000000;
    probe->counted_ms = clock_mono_ms();
    pthread_mutex_unlock(&probe->lock);
    free(old);
}

static void *look_main(void *arg)
{
    struct look *look = arg;
    struct probe *probe = look->probe;
    pthread_mutex_lock(&probe->lock);
    while (!probe->stopping) {
        if (!look->wanted) {
            pthread_cond_wait(&probe->changed, &probe->lock);
            continue;
        }
        look->wanted = false;
        pthread_mutex_unlock(&probe->lock);
        int64_t began_ms = clock_mono_ms();
        look->find(probe);
        pthread_mutex_lock(&probe->lock);
        look->asked_ms = began_ms;
        look->cost_ms = clock_mono_ms() - began_ms;
        pthread_cond_broadcast(&probe->changed);
    }
    pthread_mutex_unlock(&probe->lock);
    store_thread_end();
    return NULL;
}

/* Has it looked at, and waits for the answer; the lock is held. false: none came in time. */
static bool ask(struct probe *probe, struct look *look)
{
    int64_t now_ms = clock_mono_ms();
    look->wanted = true;
    pthread_cond_broadcast(&probe->changed);
    while (look->asked_ms < now_ms && !probe->stopping) {
        if (!clock_cond_wait_until(&probe->changed, &probe->lock, now_ms + ANSWER_MS))
            return look->asked_ms >= now_ms;
    }
    return !probe->stopping;
}

/* ---- life -------------------------------------------------------------------------------------
 */

static enum err_code start(struct probe *probe, struct look *look, void (*find)(struct probe *),
                           struct err *err)
{
    look->probe = probe;
    look->find = find;
    int rc = pthread_create(&look->thread, NULL, look_main, look);
    if (rc)
        return err_set_errno(err, ERR_NOMEM, rc, "cannot start a thread of the probe");
    look->has_thread = true;
    return ERR_OK;
}

enum err_code probe_open(const struct config *cfg, struct store *store, struct probe **ret_probe,
                         struct err *err)
{
    struct store_config own = servers_store(cfg);
    struct probe *probe = calloc(1, sizeof(*probe));
    if (!probe)
        return err_set(err, ERR_NOMEM, "out of memory");
    probe->store = store;
    probe->outbox_rows = -1;
    pthread_mutex_init(&probe->lock, NULL);
    clock_cond_init(&probe->changed);
    own.pool_size = 1;
    own.acquire_timeout_ms = PING_MS;
    enum err_code rc = store_open(&own, &probe->own, err);
    if (rc == ERR_OK)
        rc = start(probe, &probe->ping, find_database, err);
    if (rc == ERR_OK)
        rc = start(probe, &probe->count, find_counts, err);
    if (rc) {
        probe_close(probe);
        return rc;
    }
    *ret_probe = probe;
    return ERR_OK;
}

void probe_close(struct probe *probe)
{
    if (!probe)
        return;
    pthread_mutex_lock(&probe->lock);
    probe->stopping = true;
    pthread_cond_broadcast(&probe->changed);
    pthread_mutex_unlock(&probe->lock);
    if (probe->ping.has_thread)
        (void)pthread_join(probe->ping.thread, NULL);
    if (probe->count.has_thread)
        (void)pthread_join(probe->count.thread, NULL);
    store_free(probe->own);
    free(probe->jobs);
    pthread_cond_destroy(&probe->changed);
    pthread_mutex_destroy(&probe->lock);
    free(probe);
}

/* ---- questions --------------------------------------------------------------------------------
 */

enum err_code probe_database(struct probe *probe, struct err *err)
{
    pthread_mutex_lock(&probe->lock);
    bool answered = ask(probe, &probe->ping);
    struct err found = probe->database;
    pthread_mutex_unlock(&probe->lock);
    if (!answered)
        return err_set(err, ERR_DB_AWAY, "the database has not answered within %d ms", ANSWER_MS);
    if (found.code)
        *err = found;
    return found.code;
}

/* The lock is held. The numbers of the last time are told where counting anew takes long. */
static void renew(struct probe *probe)
{
    if (probe->count.cost_ms <= CHEAP_MS) {
        (void)ask(probe, &probe->count);
        return;
    }
    probe->count.wanted = true;
    pthread_cond_broadcast(&probe->changed);
}

void probe_count(struct probe *probe)
{
    pthread_mutex_lock(&probe->lock);
    int64_t age_ms = clock_mono_ms() - probe->counted_ms;
    if (probe->counted_ms == 0 || age_ms >= COUNTS_OLD_MS)
        (void)ask(probe, &probe->count);
    else if (age_ms > COST_FACTOR * probe->count.cost_ms)
        renew(probe);
    pthread_mutex_unlock(&probe->lock);
}

/* The lock is held. */
static bool is_known(const struct probe *probe)
{
    return probe->counted_ms != 0 && clock_mono_ms() - probe->counted_ms < COUNTS_OLD_MS;
}

int64_t probe_outbox_rows(struct probe *probe)
{
    pthread_mutex_lock(&probe->lock);
    int64_t rows = is_known(probe) ? probe->outbox_rows : -1;
    pthread_mutex_unlock(&probe->lock);
    return rows;
}

int64_t probe_hook_lag_s(struct probe *probe)
{
    pthread_mutex_lock(&probe->lock);
    int64_t lag_s = is_known(probe) ? probe->hook_lag_s : -1;
    pthread_mutex_unlock(&probe->lock);
    return lag_s;
}

int64_t probe_unserved_queues(struct probe *probe)
{
    pthread_mutex_lock(&probe->lock);
    int64_t queues = is_known(probe) ? probe->unserved : -1;
    pthread_mutex_unlock(&probe->lock);
    return queues;
}

/* Each web process of a site tells the same numbers: take their maximum, not their sum. */
static void write_jobs(const struct probe *probe, struct buf *text)
{
    const struct job_count *jobs = probe->jobs;
    buf_add_text(text, "# HELP sluice_jobs Jobs that have not ended\n# TYPE sluice_jobs gauge\n");
    for (size_t i = 0; i < probe->job_count; i++)
        buf_addf(text, "sluice_jobs{tenant=\"%s\",queue=\"%s\",status=\"%s\"} %llu\n",
                 jobs[i].tenant, jobs[i].queue, job_state_text(jobs[i].status),
                 (unsigned long long)jobs[i].jobs);
    buf_add_text(text, "# HELP sluice_oldest_age_seconds Age of the oldest job of these\n"
                       "# TYPE sluice_oldest_age_seconds gauge\n");
    for (size_t i = 0; i < probe->job_count; i++)
        buf_addf(text, "sluice_oldest_age_seconds{tenant=\"%s\",queue=\"%s\",status=\"%s\"} %.3f\n",
                 jobs[i].tenant, jobs[i].queue, job_state_text(jobs[i].status),
                 (double)(clock_wall_us() - jobs[i].oldest_us) / 1e6);
}

void probe_write_jobs(struct probe *probe, struct buf *text)
{
    pthread_mutex_lock(&probe->lock);
    if (is_known(probe))
        write_jobs(probe, text);
    pthread_mutex_unlock(&probe->lock);
}
