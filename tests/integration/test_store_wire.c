/* SPDX-License-Identifier: MIT */
#include "tests/support/tcp_proxy.h"
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/base/clock.h"
#include "common/store/job_store.h"
#include "common/store/outbox_store.h"
#include "common/store/worker_store.h"

#include <pthread.h>
#include <stdatomic.h>

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

static void a_silent_server_does_not_keep_a_call_for_ever(void **unused)
{
    (void)unused;
    struct err err = {0};
    const struct store_config cfg = over_wire(1500);
    AUTO(store_free) struct store *store = NULL;
    uint64_t rows = 0;
    assert_ok(store_open(&cfg, &store, &err));
    assert_ok(outbox_store_count(store, &rows, &err));
    tcp_proxy_set(wire, PROXY_HOLD);
    int64_t begun_ms = clock_mono_ms();
    assert_code(outbox_store_count(store, &rows, &err), ERR_DB_AWAY);
    assert_true(clock_mono_ms() - begun_ms < 8000);
    tcp_proxy_set(wire, PROXY_PASS);
    err_clear(&err);
    assert_ok(outbox_store_count(store, &rows, &err));
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
    assert_ok(beat_write(beat, 0, &err));
    tcp_proxy_set(wire, PROXY_HOLD);
    int64_t begun_ms = clock_mono_ms();
    assert_code(beat_write(beat, 0, &err), ERR_DB_AWAY);
    assert_true(clock_mono_ms() - begun_ms < 8000);
    tcp_proxy_set(wire, PROXY_PASS);
    err_clear(&err);
    assert_ok(beat_write(beat, 0, &err));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
