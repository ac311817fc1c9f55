/* SPDX-License-Identifier: MIT */
#include "webapp/sweeper.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/job_store.h"
#include "common/store/overview_store.h"

#include <pthread.h>

#define KEYS_MS 60000
#define RATES_MS 5000
#define AT_ONCE 1000u

struct sweeper {
    struct store *store;
    uint32_t key_hours;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping; /* lock */
    pthread_t thread;
    bool has_thread;
};

static bool is_stopping(struct sweeper *sweeper)
{
    pthread_mutex_lock(&sweeper->lock);
    bool stopping = sweeper->stopping;
    pthread_mutex_unlock(&sweeper->lock);
    return stopping;
}

static void count_rates(struct sweeper *sweeper)
{
    bool more = true;
    struct err err = {0};
    while (more && !is_stopping(sweeper)) {
        if (rate_store_count(sweeper->store, &more, &err) != ERR_OK) {
            log_event(LOG_DEBUG, "sweeper.rates.failed", LOG_S("detail", err.text));
            return;
        }
    }
}

static void forget_keys(struct sweeper *sweeper)
{
    uint64_t rows = AT_ONCE;
    struct err err = {0};
    while (rows == AT_ONCE && !is_stopping(sweeper)) {
        if (job_store_forget_keys(sweeper->store, sweeper->key_hours, AT_ONCE, &rows, &err) !=
            ERR_OK) {
            log_event(LOG_DEBUG, "sweeper.failed", LOG_S("detail", err.text));
            return;
        }
    }
}

static void *sweeper_main(void *arg)
{
    struct sweeper *sweeper = arg;
    int64_t next_keys_ms = clock_mono_ms() + KEYS_MS;
    pthread_mutex_lock(&sweeper->lock);
    while (!sweeper->stopping) {
        int64_t until_ms = clock_mono_ms() + RATES_MS;
        while (!sweeper->stopping &&
               clock_cond_wait_until(&sweeper->wake, &sweeper->lock, until_ms))
            continue;
        pthread_mutex_unlock(&sweeper->lock);
        count_rates(sweeper);
        if (clock_mono_ms() >= next_keys_ms) {
            next_keys_ms = clock_mono_ms() + KEYS_MS;
            forget_keys(sweeper);
        }
        pthread_mutex_lock(&sweeper->lock);
    }
    pthread_mutex_unlock(&sweeper->lock);
    store_thread_end();
    return NULL;
}

enum err_code sweeper_open(struct store *store, uint32_t key_hours, struct sweeper **ret_sweeper,
                           struct err *err)
{
    struct sweeper *sweeper = calloc(1, sizeof(*sweeper));
    if (!sweeper)
        return err_set(err, ERR_NOMEM, "out of memory");
    sweeper->store = store;
    sweeper->key_hours = key_hours;
    pthread_mutex_init(&sweeper->lock, NULL);
    clock_cond_init(&sweeper->wake);
    int rc = pthread_create(&sweeper->thread, NULL, sweeper_main, sweeper);
    if (rc) {
        sweeper_free(sweeper);
        return err_set_errno(err, ERR_NOMEM, rc, "cannot start the sweeper thread");
    }
    sweeper->has_thread = true;
    *ret_sweeper = sweeper;
    return ERR_OK;
}

void sweeper_free(struct sweeper *sweeper)
{
    if (!sweeper)
        return;
    pthread_mutex_lock(&sweeper->lock);
    sweeper->stopping = true;
    pthread_cond_broadcast(&sweeper->wake);
    pthread_mutex_unlock(&sweeper->lock);
    if (sweeper->has_thread)
        (void)pthread_join(sweeper->thread, NULL);
    pthread_cond_destroy(&sweeper->wake);
    pthread_mutex_destroy(&sweeper->lock);
    free(sweeper);
}
