/* SPDX-License-Identifier: MIT */
#include "tests/support/tcp_proxy.h"
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/base/clock.h"
#include "common/store/job_store.h"
#include "common/store/outbox_store.h"
#include "common/store/pool.h"
#include "common/store/worker_store.h"

#include <pthread.h>
#include <stdatomic.h>

#define WAIT_MS 30000

/* The wire between us and the server is held, cut and let go. */

static struct test_db test;
static struct tcp_proxy *wire;

static struct store_config over_wire(uint32_t acquire_timeout_ms)
{
    struct store_config cfg = test.cfg;
    cfg.port = (uint16_t)tcp_proxy_port(wire);
    cfg.connect_timeout_ms = 1000;
    cfg.query_timeout_ms = 1000;
    cfg.acquire_timeout_ms = acquire_timeout_ms;
    return cfg;
}

/* On a busy machine the short patience of a call may be over before its connection stands. */
static void wait_answer(struct store *store)
{
    int64_t until_ms = clock_mono_ms() + WAIT_MS;
    struct err err = {0};
    uint64_t rows = 0;
    enum err_code rc = outbox_store_count(store, &rows, &err);
    while (rc == ERR_DB_AWAY && clock_mono_ms() < until_ms) {
        err_clear(&err);
        rc = outbox_store_count(store, &rows, &err);
    }
    assert_ok(rc);
}

static void a_silent_server_does_not_keep_a_call_for_ever(void **unused)
{
    (void)unused;
    struct err err = {0};
    const struct store_config cfg = over_wire(1500);
    AUTO(store_free) struct store *store = NULL;
    uint64_t rows = 0;
    assert_ok(store_open(&cfg, &store, &err));
    wait_answer(store);
    tcp_proxy_set(wire, PROXY_HOLD);
    int64_t begun_ms = clock_mono_ms();
    assert_code(outbox_store_count(store, &rows, &err), ERR_DB_AWAY);
    assert_true(clock_mono_ms() - begun_ms < 8000);
    tcp_proxy_set(wire, PROXY_PASS);
    wait_answer(store);
}

static void wait_beat(struct beat *beat)
{
    int64_t until_ms = clock_mono_ms() + WAIT_MS;
    struct err err = {0};
    enum err_code rc = beat_write(beat, 0, &err);
    while (rc == ERR_DB_AWAY && clock_mono_ms() < until_ms) {
        err_clear(&err);
        rc = beat_write(beat, 0, &err);
    }
    assert_ok(rc);
}

static void a_silent_server_does_not_keep_a_beat_for_ever(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct store_config cfg = over_wire(1500);
    struct worker_row row = {.id = uuid_v7(),
                             .tenant = "acme",
                             .queue = "default",
                             .name = "w",
                             .host = "here",
                             .boot_id = "b",
                             .version = "1",
                             .slots = 1};
    struct beat *beat = NULL;
    assert_ok(worker_store_register(test.store, &row, &err));
    assert_ok(beat_open(&cfg, &row.id, &beat, &err));
    wait_beat(beat);
    tcp_proxy_set(wire, PROXY_HOLD);
    int64_t begun_ms = clock_mono_ms();
    assert_code(beat_write(beat, 0, &err), ERR_DB_AWAY);
    assert_true(clock_mono_ms() - begun_ms < 8000);
    tcp_proxy_set(wire, PROXY_PASS);
    wait_beat(beat);
    beat_free(beat);
}

struct load {
    struct store *store;
    _Atomic bool stop;
    _Atomic uint64_t done;
    _Atomic uint64_t failed;
};

static void *work(void *arg)
{
    struct load *load = arg;
    while (!load->stop) {
        struct err err = {0};
        struct uuid id = test_submit(load->store);
        struct job_hold hold = test_claim(load->store, &id, JOB_ARCHIVING);
        const struct job_move move = {.to = JOB_FINISHED};
        const struct job_outcome outcome = {.run_fence = hold.fence, .attempt = true};
        if (job_store_move(load->store, &hold, JOB_ARCHIVING, (struct job_moves){&move, 1},
                           &outcome, &err) == ERR_OK)
            load->done++;
        else
            load->failed++;
    }
    store_thread_end();
    return NULL;
}

/* A cut falls anywhere: before, in and behind a commit. */
static void wherever_the_wire_is_cut_nothing_is_lost_or_doubled(void **unused)
{
    (void)unused;
    struct err err = {0};
    const struct store_config cfg = over_wire(60000);
    struct load load = {.stop = false};
    pthread_t threads[4];
    assert_ok(store_open(&cfg, &load.store, &err));
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &load), 0);
    for (int cut = 0; cut < 60; cut++) {
        uint64_t before = load.done;
        while (load.done < before + 3 && load.failed == 0)
            sched_yield();
        tcp_proxy_cut(wire);
    }
    load.stop = true;
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    store_free(load.store);
    assert_int_equal(load.failed, 0);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM jobs"), load.done);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM jobs WHERE status = 'FINISHED' "
                                           "AND fence = 1 AND attempts = 1"),
                     load.done);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM job_events"), load.done * 9);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM outbox"), load.done);
}

/* ---- a process that is stopped in the middle of a transaction ------------------------------- */

struct sleeper {
    struct store *store;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool locked, freed;
    int tries;
};

static enum err_code lock_a_row_and_sleep(struct txn *txn, void *ctx, struct err *err)
{
    struct sleeper *sleeper = ctx;
    if (sleeper->tries++ > 0)
        return ERR_OK;
    enum err_code rc =
        db_run_text(txn->db, SV("UPDATE site_versions SET queues = queues + 1 WHERE id = 1"), err);
    int64_t deadline_ms = clock_mono_ms() + 30000;
    pthread_mutex_lock(&sleeper->lock);
    sleeper->locked = true;
    pthread_cond_signal(&sleeper->news);
    while (!sleeper->freed && clock_cond_wait_until(&sleeper->news, &sleeper->lock, deadline_ms))
        ;
    pthread_mutex_unlock(&sleeper->lock);
    return rc;
}

static void *sleeper_main(void *arg)
{
    struct sleeper *sleeper = arg;
    struct err err = {0};
    assert_ok(store_txn(sleeper->store, lock_a_row_and_sleep, sleeper, &err));
    store_thread_end();
    return NULL;
}

/* As a leader or worker that was stopped would hold its rows against the one that takes over. */
static void a_transaction_that_sleeps_keeps_nobody_out_for_long(void **unused)
{
    (void)unused;
    struct sleeper sleeper = {.store = test.store, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    clock_cond_init(&sleeper.news);
    assert_int_equal(pthread_create(&thread, NULL, sleeper_main, &sleeper), 0);
    pthread_mutex_lock(&sleeper.lock);
    while (!sleeper.locked)
        pthread_cond_wait(&sleeper.news, &sleeper.lock);
    pthread_mutex_unlock(&sleeper.lock);
    uint64_t before = test_db_number(&test, "SELECT queues FROM site_versions");
    test_db_run(&test, "UPDATE site_versions SET queues = queues + 1 WHERE id = 1");
    pthread_mutex_lock(&sleeper.lock);
    sleeper.freed = true;
    pthread_cond_signal(&sleeper.news);
    pthread_mutex_unlock(&sleeper.lock);
    pthread_join(thread, NULL);
    assert_int_equal(sleeper.tries, 2); /* the server gave its first try up */
    assert_int_equal(test_db_number(&test, "SELECT queues FROM site_versions"), before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_transaction_that_sleeps_keeps_nobody_out_for_long),
        TEST(a_silent_server_does_not_keep_a_call_for_ever),
        TEST(a_silent_server_does_not_keep_a_beat_for_ever),
        TEST(wherever_the_wire_is_cut_nothing_is_lost_or_doubled),
    };
    test_db_open(&test);
    wire = tcp_proxy_open(test.cfg.host, test.cfg.port);
    if (!wire)
        return 1;
    int failed = cmocka_run_group_tests_name("store_wire", tests, NULL, NULL);
    tcp_proxy_free(wire);
    test_db_close(&test);
    return failed;
}
