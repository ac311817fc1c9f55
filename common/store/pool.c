/* SPDX-License-Identifier: MIT */
/* Longer than 400 lines: connections, tries and readiness share one struct and one lock. */
#include "common/store/pool.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/model/retry.h"
#include "common/store/audit_log.h"
#include "common/store/migrate.h"
#include "common/store/store.h"

#include <assert.h>
#include <pthread.h>

#define LOCK_TRIES_MAX 20

static const struct retry lock_retry = {.first_ms = 4, .most_ms = 200};
static const struct retry away_retry = {.first_ms = 20, .most_ms = 500};

struct store {
    struct store_config cfg;
    char *texts[STORE_CONFIG_TEXTS]; /* owned copies behind cfg */
    pthread_mutex_t mutex;
    pthread_cond_t freed;   /* a connection came back, or stopping */
    pthread_cond_t stopped; /* stopping */
    /* Under the mutex: */
    struct db **idle; /* the last one used is the first one taken */
    uint32_t idle_count;
    uint32_t in_use;    /* borrowed, or being opened by a borrower */
    int64_t renewed_ms; /* connections from before are used no more; 0: never */
    bool stopping;
    bool checked; /* the statements have been compared with this server's schema */
    struct store_counters counters;
};

/* ---- life ------------------------------------------------------------------------------------ */

static bool own_text(const char **text, char **copy)
{
    *copy = strdup(*text ? *text : "");
    *text = *copy;
    return *copy != NULL;
}

bool store_config_copy(const struct store_config *cfg, struct store_config *ret_cfg,
                       char *ret_texts[STORE_CONFIG_TEXTS])
{
    *ret_cfg = *cfg;
    return own_text(&ret_cfg->host, &ret_texts[0]) && own_text(&ret_cfg->user, &ret_texts[1]) &&
           own_text(&ret_cfg->password, &ret_texts[2]) && own_text(&ret_cfg->name, &ret_texts[3]) &&
           own_text(&ret_cfg->tls_ca, &ret_texts[4]);
}

enum err_code store_open(const struct store_config *cfg, struct store **ret_store, struct err *err)
{
    assert(cfg->pool_size > 0);
    AUTO(store_free) struct store *store = calloc(1, sizeof(*store));
    if (!store)
        return err_set(err, ERR_NOMEM, "no memory for the store");
    pthread_mutex_init(&store->mutex, NULL);
    clock_cond_init(&store->freed);
    clock_cond_init(&store->stopped);
    store->idle = calloc(cfg->pool_size, sizeof(struct db *));
    if (!store->idle || !store_config_copy(cfg, &store->cfg, store->texts))
        return err_set(err, ERR_NOMEM, "no memory for the store");
    *ret_store = TAKE(store);
    return ERR_OK;
}

void store_free(struct store *store)
{
    if (!store)
        return;
    assert(store->in_use == 0);
    for (uint32_t i = 0; i < store->idle_count; i++)
        db_free(store->idle[i]);
    for (size_t i = 0; i < ARRAY_LEN(store->texts); i++)
        free(store->texts[i]);
    free(store->idle);
    pthread_cond_destroy(&store->freed);
    pthread_cond_destroy(&store->stopped);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

void store_stop(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->stopping = true;
    pthread_cond_broadcast(&store->freed);
    pthread_cond_broadcast(&store->stopped);
    pthread_mutex_unlock(&store->mutex);
}

void store_thread_end(void)
{
    db_thread_end();
}

void store_counters(struct store *store, struct store_counters *ret_counters)
{
    pthread_mutex_lock(&store->mutex);
    *ret_counters = store->counters;
    ret_counters->in_use = store->in_use;
    ret_counters->open = store->in_use + store->idle_count;
    pthread_mutex_unlock(&store->mutex);
}

void store_count_fenced(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->counters.fenced_writes++;
    pthread_mutex_unlock(&store->mutex);
}

/* ---- connections ------------------------------------------------------------ */

static enum err_code stopped(struct err *err)
{
    return err_set(err, ERR_STOPPING, "the connections to the database are being closed");
}

/* A place in the pool: *ret_db is an idle connection, or NULL and the caller may open one. */
static enum err_code take_place(struct store *store, int64_t deadline_ms, struct db **ret_db,
                                struct err *err)
{
    enum err_code rc = ERR_OK;
    *ret_db = NULL;
    pthread_mutex_lock(&store->mutex);
    while (!store->stopping && store->in_use == store->cfg.pool_size && rc == ERR_OK) {
        if (!clock_cond_wait_until(&store->freed, &store->mutex, deadline_ms))
            rc = ERR_DB_AWAY;
    }
    if (store->stopping) {
        rc = ERR_STOPPING;
    } else if (store->in_use < store->cfg.pool_size) {
        rc = ERR_OK;
        store->in_use++;
        if (store->idle_count > 0)
            *ret_db = store->idle[--store->idle_count];
    }
    pthread_mutex_unlock(&store->mutex);
    if (rc == ERR_STOPPING)
        return stopped(err);
    if (rc)
        return err_set(err, rc, "all %u database connections were busy for %u ms",
                       store->cfg.pool_size, store->cfg.acquire_timeout_ms);
    return ERR_OK;
}

/* What cut one connection off has most likely cut off those that were idle, too. */
static void drop_idle(struct store *store, uint32_t count)
{
    for (; count > 0; count--) {
        struct db *oldest = NULL;
        pthread_mutex_lock(&store->mutex);
        if (store->idle_count > 0) {
            oldest = store->idle[0];
            store->idle_count--;
            memmove(store->idle, store->idle + 1, store->idle_count * sizeof(struct db *));
        }
        pthread_mutex_unlock(&store->mutex);
        db_free(oldest);
    }
}

/* db NULL: the borrower could not open one. */
static void give_place(struct store *store, struct db *db)
{
    bool lost = db && db_is_lost(db);
    bool old = false;
    pthread_mutex_lock(&store->mutex);
    if (lost && db_is_read_only(db))
        store->renewed_ms = clock_mono_ms();
    old = db && !lost && store->renewed_ms && db_opened_ms(db) <= store->renewed_ms;
    if (db && !lost && !old)
        store->idle[store->idle_count++] = db;
    store->in_use--;
    uint32_t stale = lost ? store->idle_count : 0;
    pthread_cond_signal(&store->freed);
    pthread_mutex_unlock(&store->mutex);
    if (!lost && !old)
        return;
    db_free(db);
    drop_idle(store, stale);
}

void store_renew(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->renewed_ms = clock_mono_ms();
    uint32_t stale = store->idle_count;
    pthread_mutex_unlock(&store->mutex);
    drop_idle(store, stale);
}

static enum err_code borrow(struct store *store, int64_t deadline_ms, struct db **ret_db,
                            struct err *err)
{
    struct db *db = NULL;
    enum err_code rc = take_place(store, deadline_ms, &db, err);
    if (rc)
        return rc;
    if (!db) {
        struct store_config cfg = store->cfg;
        int64_t left_ms = deadline_ms - clock_mono_ms();
        if (left_ms < 1000)
            left_ms = 1000;
        if (left_ms < cfg.connect_timeout_ms)
            cfg.connect_timeout_ms = (uint32_t)left_ms;
        rc = db_open(&cfg, &db, err);
        if (rc) {
            give_place(store, NULL);
            return rc;
        }
        pthread_mutex_lock(&store->mutex);
        store->counters.reconnects++;
        pthread_mutex_unlock(&store->mutex);
    }
    *ret_db = db;
    return ERR_OK;
}

/* ---- transactions ------------------------------------------------------------ */

struct attempt {
    txn_fn fn;
    void *ctx;
    bool bare; /* without BEGIN and COMMIT */
    uint32_t away_tries;
    uint32_t lock_tries;
    int64_t deadline_ms;
    struct txn txn;
};

static enum err_code commit(struct attempt *attempt, struct err *err)
{
    struct db *db = attempt->txn.db;
    if (FAULT_FAILS("store.commit.unsent"))
        (void)db_lose(db, "commit", err);
    enum err_code rc = db_is_lost(db) ? ERR_DB_AWAY : db_commit(db, err);
    if (rc == ERR_OK && FAULT_FAILS("store.commit.answer_lost"))
        rc = db_lose(db, "commit", err);
    if (rc && db_is_lost(db))
        attempt->txn.commit_unknown = true;
    return rc;
}

static enum err_code try_once(struct attempt *attempt, struct err *err)
{
    struct db *db = attempt->txn.db;
    attempt->txn.again = false;
    if (attempt->bare && !audit_is_armed()) {
        enum err_code bare_rc = attempt->fn(&attempt->txn, attempt->ctx, err);
        if (db_is_lost(db))
            attempt->txn.commit_unknown = true;
        return bare_rc;
    }
    db_begin(db);
    enum err_code rc = attempt->fn(&attempt->txn, attempt->ctx, err);
    if (rc == ERR_OK)
        rc = audit_write_armed(&attempt->txn, err);
    if (rc == ERR_OK)
        rc = commit(attempt, err);
    if (rc == ERR_OK)
        audit_committed();
    if (rc)
        db_rollback(db);
    return rc;
}

/* Sleeps without a place in the pool; false: the store stops or the deadline is too near. */
static bool pause_until(struct store *store, int64_t until_ms, int64_t deadline_ms)
{
    if (until_ms >= deadline_ms)
        return false;
    pthread_mutex_lock(&store->mutex);
    while (!store->stopping && clock_mono_ms() < until_ms)
        (void)clock_cond_wait_until(&store->stopped, &store->mutex, until_ms);
    bool go_on = !store->stopping;
    pthread_mutex_unlock(&store->mutex);
    return go_on;
}

/* Decides after a failed try; has paused if it says true. */
static bool shall_try_again(struct store *store, struct attempt *attempt, enum err_code rc,
                            bool locked)
{
    int64_t pause_ms = 0;
    if (locked) {
        if (++attempt->lock_tries > LOCK_TRIES_MAX)
            return false;
        pause_ms = retry_pause_ms(&lock_retry, attempt->lock_tries);
    } else if (rc == ERR_DB_AWAY) {
        /* The first time at once: most often an idle connection was closed by the server. */
        if (attempt->away_tries++ > 0)
            pause_ms = retry_pause_ms(&away_retry, attempt->away_tries);
    } else {
        return false;
    }
    if (!pause_until(store, clock_mono_ms() + pause_ms, attempt->deadline_ms))
        return false;
    pthread_mutex_lock(&store->mutex);
    store->counters.retries++;
    pthread_mutex_unlock(&store->mutex);
    return true;
}

static enum err_code run_attempts(struct store *store, struct attempt *attempt, struct err *err)
{
    for (;;) {
        struct err tried = {0};
        bool locked = false;
        enum err_code rc = borrow(store, attempt->deadline_ms, &attempt->txn.db, &tried);
        if (rc == ERR_OK) {
            struct db *db = attempt->txn.db;
            rc = try_once(attempt, &tried);
            locked = rc != ERR_OK && (db_trouble(db) == DB_AGAIN || attempt->txn.again);
            give_place(store, db);
        }
        if (rc == ERR_OK)
            return ERR_OK;
        if (!shall_try_again(store, attempt, rc, locked)) {
            if (err && err->code == ERR_OK)
                *err = tried;
            return rc;
        }
    }
}

static enum err_code start_attempts(struct store *store, struct attempt *attempt, struct err *err)
{
    attempt->deadline_ms = clock_mono_ms() + store->cfg.acquire_timeout_ms;
    attempt->txn.store = store;
    pthread_mutex_lock(&store->mutex);
    store->counters.transactions++;
    pthread_mutex_unlock(&store->mutex);
    return run_attempts(store, attempt, err);
}

enum err_code store_txn(struct store *store, txn_fn fn, void *ctx, struct err *err)
{
    struct attempt attempt = {.fn = fn, .ctx = ctx};
    return start_attempts(store, &attempt, err);
}

enum err_code store_once(struct store *store, txn_fn fn, void *ctx, struct err *err)
{
    struct attempt attempt = {.fn = fn, .ctx = ctx, .bare = true};
    return start_attempts(store, &attempt, err);
}

/* ---- readiness ------------------------------------------------------------ */

static enum err_code ping(struct txn *txn, void *ctx, struct err *err)
{
    bool *check = ctx;
    bool found = false;
    uint32_t newest = 0;
    enum err_code rc =
        db_one(txn->db, DB_SCHEMA_NEWEST, DB_NO_ARGS, DB_COLS(COL_U32(&newest)), &found, err);
    if (rc == ERR_DB) {
        struct err reason = *err;
        err_clear(err);
        return err_set(err, ERR_DB, "the schema cannot be read; run `sluice migrate` (%s)",
                       reason.text);
    }
    if (rc)
        return rc;
    /* A newer schema is one that a newer program made; files only add what the older ones know. */
    if (newest < migrate_newest())
        return err_set(err, ERR_DB,
                       "the schema is at %u, this program needs %u; run `sluice "
                       "migrate`",
                       newest, migrate_newest());
    rc = db_exec(txn->db, DB_WRITE_PROBE, DB_NO_ARGS, NULL, err);
    return rc == ERR_OK && *check ? db_prepare_all(txn->db, err) : rc;
}

enum err_code store_ping(struct store *store, struct err *err)
{
    pthread_mutex_lock(&store->mutex);
    bool check = !store->checked;
    pthread_mutex_unlock(&store->mutex);
    enum err_code rc = store_once(store, ping, &check, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&store->mutex);
    store->checked = true;
    pthread_mutex_unlock(&store->mutex);
    return ERR_OK;
}

enum err_code store_wait_ready(struct store *store, const volatile bool *stop, struct err *err)
{
    struct err last = {0};
    for (;;) {
        struct err now = {0};
        enum err_code rc = store_ping(store, &now);
        if (rc == ERR_OK)
            return ERR_OK;
        if (rc == ERR_STOPPING || *stop)
            return stopped(err);
        if (strcmp(now.text, last.text) != 0)
            log_err("store.wait", &now);
        last = now;
        for (int i = 0; i < 10 && !*stop; i++) {
            int64_t now_ms = clock_mono_ms();
            if (!pause_until(store, now_ms + 50, INT64_MAX))
                return stopped(err);
        }
    }
}
