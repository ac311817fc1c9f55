/* SPDX-License-Identifier: MIT */
#include "webapp/auditor.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <sys/random.h>

#define LINE_MAX 4096
#define AT_ONCE 64
#define AGAIN_MS 500
#define STOP_MS 5000
/* Whoever has no token can make rows as fast as he can ask: a few tell of it as well as millions.
 */
#define STRANGERS_AT_ONCE 500
#define STRANGER_PAUSE_MS 200
#define LOSERS_MAX 32      /* tenants of whose losses is kept count; the rest of them together */
#define TELL_PAUSE_MS 1000 /* between rows that tell of losses */

struct loser {
    char tenant[TENANT_SIZE]; /* "": nobody's, or of those who have no place here */
    uint64_t entries;
};

struct batch {
    struct audit_entry entries[AT_ONCE + LOSERS_MAX + 1];
    size_t taken; /* from the line; rows that tell of losses come behind */
    size_t told;
};

struct auditor {
    struct store *store;
    uint64_t seed; /* of the keys: nobody can look for a name with somebody else's */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct audit_entry *line;   /* lock: a ring of LINE_MAX; the same down to stopping */
    uint64_t tenants[LINE_MAX]; /* of the entry at the same place, a hash; 0: none */
    uint64_t users[LINE_MAX];
    size_t first;
    size_t count;
    uint64_t lost;                       /* since start */
    struct loser losers[LOSERS_MAX + 1]; /* of the lost, who is in no row yet; the last: others */
    size_t loser_count;
    int64_t tell_ms;      /* not before */
    int64_t strangers_ms; /* paid up to then: a row without a tenant costs STRANGER_PAUSE_MS */
    bool stopping;
    struct batch batch; /* the thread's */
    pthread_t thread;
    bool has_thread;
};

/* ---- room ------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text; text++) /* FNV-1a */
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return (hash ^ 0xff) * UINT64_C(1099511628211) | 1;
}

static size_t held(const uint64_t *keys, uint64_t key)
{
    size_t count = 0;
    for (size_t i = 0; i < LINE_MAX; i++)
        count += keys[i] == key;
    return count;
}

/* A tenant may hold as many places as are free, and a user as many as its tenant has left: one
 * takes half of the line, two a third each, and there always is room for somebody who has none. */
static bool has_room(const struct auditor *auditor, uint64_t tenant, uint64_t user)
{
    size_t left = LINE_MAX - auditor->count;
    size_t of_tenant = held(auditor->tenants, tenant);
    return left > of_tenant && left - of_tenant > held(auditor->users, user);
}

/* The lock is held. */
static bool stranger_pays(struct auditor *auditor)
{
    const int64_t credit_ms = (int64_t)STRANGERS_AT_ONCE * STRANGER_PAUSE_MS;
    int64_t now_ms = clock_mono_ms();
    if (auditor->strangers_ms < now_ms - credit_ms)
        auditor->strangers_ms = now_ms - credit_ms;
    if (auditor->strangers_ms >= now_ms)
        return false;
    auditor->strangers_ms += STRANGER_PAUSE_MS;
    return true;
}

/* The lock is held. */
static void count_lost(struct auditor *auditor, const char *tenant)
{
    size_t at = 0;
    while (at < auditor->loser_count && strcmp(auditor->losers[at].tenant, tenant) != 0)
        at++;
    if (at == auditor->loser_count && at < LOSERS_MAX) {
        auditor->losers[at] = (struct loser){.entries = 0};
        (void)snprintf(auditor->losers[at].tenant, TENANT_SIZE, "%s", tenant);
        auditor->loser_count++;
    }
    auditor->losers[at].entries++;
    auditor->lost++;
}

void auditor_push(struct auditor *auditor, const struct audit_entry *entry)
{
    uint64_t tenant = mix(auditor->seed, entry->tenant);
    uint64_t user = mix(tenant, entry->actor);
    pthread_mutex_lock(&auditor->lock);
    if (has_room(auditor, tenant, user) && (entry->tenant[0] || stranger_pays(auditor))) {
        size_t at = (auditor->first + auditor->count++) % LINE_MAX;
        auditor->line[at] = *entry;
        auditor->tenants[at] = tenant;
        auditor->users[at] = user;
    } else {
        count_lost(auditor, entry->tenant);
    }
    pthread_cond_signal(&auditor->wake);
    pthread_mutex_unlock(&auditor->lock);
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool has_losses(const struct auditor *auditor)
{
    return auditor->loser_count > 0 || auditor->losers[LOSERS_MAX].entries > 0;
}

/* Each tenant's administrators read of what was theirs. */
static void take_losses(const struct auditor *auditor, struct batch *batch)
{
    for (size_t i = 0; i <= LOSERS_MAX; i++) {
        const struct loser *loser = &auditor->losers[i];
        struct audit_entry *row = &batch->entries[batch->taken + batch->told];
        if ((i >= auditor->loser_count && i < LOSERS_MAX) || loser->entries == 0)
            continue;
        *row = (struct audit_entry){.outcome = AUDIT_FAILED,
                                    .action = "audit.lost",
                                    .method = "NONE",
                                    .subject = "/v1/audit"};
        row->id = uuid_v7();
        (void)snprintf(row->tenant, sizeof(row->tenant), "%s", loser->tenant);
        (void)snprintf(row->detail, sizeof(row->detail), "%llu entries were too many and are lost",
                       (unsigned long long)loser->entries);
        batch->told++;
    }
}

/* The next ones. The lock is held. */
static void take(struct auditor *auditor, struct batch *batch)
{
    batch->taken = auditor->count < AT_ONCE ? auditor->count : AT_ONCE;
    batch->told = 0;
    for (size_t i = 0; i < batch->taken; i++)
        batch->entries[i] = auditor->line[(auditor->first + i) % LINE_MAX];
    if (has_losses(auditor) && (auditor->stopping || clock_mono_ms() >= auditor->tell_ms))
        take_losses(auditor, batch);
}

/* Losses that came meanwhile stay. The lock is held. */
static void forget(struct auditor *auditor, const struct batch *batch, const struct loser *told,
                   size_t told_count)
{
    for (size_t i = 0; i < batch->taken; i++)
        auditor->tenants[(auditor->first + i) % LINE_MAX] =
            auditor->users[(auditor->first + i) % LINE_MAX] = 0;
    auditor->first = (auditor->first + batch->taken) % LINE_MAX;
    auditor->count -= batch->taken;
    if (batch->told == 0)
        return;
    auditor->tell_ms = clock_mono_ms() + TELL_PAUSE_MS;
    for (size_t i = 0; i <= LOSERS_MAX; i++)
        auditor->losers[i].entries -= i < told_count || i == LOSERS_MAX ? told[i].entries : 0;
    size_t kept = 0;
    for (size_t i = 0; i < auditor->loser_count; i++) {
        if (auditor->losers[i].entries > 0)
            auditor->losers[kept++] = auditor->losers[i];
    }
    auditor->loser_count = kept;
}

/* The lock is held, and not meanwhile. false: the database does not take them now. */
static bool write_some(struct auditor *auditor, struct batch *batch)
{
    struct loser told[LOSERS_MAX + 1];
    size_t told_count = auditor->loser_count;
    struct err err = {0};
    memcpy(told, auditor->losers, sizeof(told));
    take(auditor, batch);
    pthread_mutex_unlock(&auditor->lock);
    enum err_code rc =
        audit_log_add(auditor->store, batch->entries, batch->taken + batch->told, &err);
    if (rc)
        log_event(LOG_WARN, "audit.not_written", LOG_U("waiting", batch->taken),
                  LOG_S("detail", err.text));
    for (size_t i = batch->taken; rc == ERR_OK && i < batch->taken + batch->told; i++)
        log_event(LOG_ERROR, "audit.lost", LOG_S("tenant", batch->entries[i].tenant),
                  LOG_S("detail", batch->entries[i].detail));
    pthread_mutex_lock(&auditor->lock);
    if (rc == ERR_OK)
        forget(auditor, batch, told, told_count);
    return rc == ERR_OK;
}

/* What is left when the time to stop is over. The lock is held. */
static void log_left(const struct auditor *auditor)
{
    uint64_t left = auditor->count + auditor->losers[LOSERS_MAX].entries;
    for (size_t i = 0; i < auditor->loser_count; i++)
        left += auditor->losers[i].entries;
    if (left > 0)
        log_event(LOG_ERROR, "audit.lost", LOG_U("entries", left));
}

/* The lock is held. true: there is something to be written now. */
static bool wait_work(struct auditor *auditor)
{
    while (auditor->count == 0 && !auditor->stopping) {
        if (!has_losses(auditor))
            pthread_cond_wait(&auditor->wake, &auditor->lock);
        else if (clock_mono_ms() >= auditor->tell_ms)
            return true;
        else
            (void)clock_cond_wait_until(&auditor->wake, &auditor->lock, auditor->tell_ms);
    }
    return auditor->count > 0 || has_losses(auditor);
}

static void *auditor_main(void *arg)
{
    struct auditor *auditor = arg;
    struct batch *batch = &auditor->batch;
    int64_t stop_ms = 0;
    pthread_mutex_lock(&auditor->lock);
    while (wait_work(auditor)) {
        if (auditor->stopping && !stop_ms)
            stop_ms = clock_mono_ms() + STOP_MS;
        if (write_some(auditor, batch))
            continue;
        if (auditor->stopping && clock_mono_ms() >= stop_ms)
            break;
        (void)clock_cond_wait_until(&auditor->wake, &auditor->lock, clock_mono_ms() + AGAIN_MS);
    }
    log_left(auditor);
    pthread_mutex_unlock(&auditor->lock);
    store_thread_end();
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

enum err_code auditor_open(struct store *store, struct auditor **ret_auditor, struct err *err)
{
    struct auditor *auditor = calloc(1, sizeof(*auditor));
    if (!auditor)
        return err_set(err, ERR_NOMEM, "out of memory");
    auditor->store = store;
    if (getrandom(&auditor->seed, sizeof(auditor->seed), 0) != (ssize_t)sizeof(auditor->seed))
        auditor->seed = (uint64_t)clock_mono_ms();
    auditor->line = calloc(LINE_MAX, sizeof(*auditor->line));
    pthread_mutex_init(&auditor->lock, NULL);
    clock_cond_init(&auditor->wake);
    int rc = auditor->line ? pthread_create(&auditor->thread, NULL, auditor_main, auditor) : ENOMEM;
    if (rc) {
        auditor_free(auditor);
        return err_set_errno(err, ERR_NOMEM, rc, "cannot start the auditor's thread");
    }
    auditor->has_thread = true;
    *ret_auditor = auditor;
    return ERR_OK;
}

void auditor_free(struct auditor *auditor)
{
    if (!auditor)
        return;
    pthread_mutex_lock(&auditor->lock);
    auditor->stopping = true;
    pthread_cond_broadcast(&auditor->wake);
    pthread_mutex_unlock(&auditor->lock);
    if (auditor->has_thread)
        (void)pthread_join(auditor->thread, NULL);
    pthread_cond_destroy(&auditor->wake);
    pthread_mutex_destroy(&auditor->lock);
    free(auditor->line);
    free(auditor);
}

uint64_t auditor_lost(struct auditor *auditor)
{
    pthread_mutex_lock(&auditor->lock);
    uint64_t lost = auditor->lost;
    pthread_mutex_unlock(&auditor->lock);
    return lost;
}

size_t auditor_waiting(struct auditor *auditor)
{
    pthread_mutex_lock(&auditor->lock);
    size_t waiting = auditor->count;
    pthread_mutex_unlock(&auditor->lock);
    return waiting;
}
