/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/store/app_store.h"
#include "common/store/db.h"
#include "common/store/hook_store.h"
#include "common/store/job_store.h"
#include "common/store/outbox_store.h"
#include "common/store/pool.h"
#include "common/store/queue_store.h"
#include "common/store/quota_store.h"
#include "common/store/system_store.h"
#include "common/store/worker_store.h"

#include <pthread.h>
#include <stdatomic.h>

static struct test_db test;

/* ---- a commit whose answer never came ------------------------------------------------------- */

#ifdef SLUICE_FAULTS

static uint64_t rows_of(const char *table)
{
    char sql[80];
    (void)snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM %s", table);
    return test_db_number(&test, sql);
}

/* Was made, and was not made: whoever asks cannot tell the two apart. */
static const char *const losses[] = {"store.commit.answer_lost=fail@1",
                                     "store.commit.unsent=fail@1"};

static void a_submission_is_settled_whatever_became_of_its_commit(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
        for (int keyed = 0; keyed < 2; keyed++) {
            struct err err = {0};
            struct job_submitted done = {.replayed = true};
            struct job_new job = test_job_new();
            struct outbox_list rows = {0};
            char key[20];
            (void)snprintf(key, sizeof(key), "unknown-%zu", i);
            job.idempotency_key = keyed ? key : NULL;
            uint64_t before = rows_of("jobs");
            fault_arm(losses[i]);
            assert_ok(job_store_submit(test.store, &job, &done, &err));
            assert_true(uuid_eq(&done.id, &job.id));
            assert_false(done.replayed);
            assert_int_equal(rows_of("jobs"), before + 1);
            assert_ok(outbox_store_read(test.store, done.outbox_id - 1, 0, 10, &rows, &err));
            assert_int_equal(rows.count, 1);
            assert_true(uuid_eq(&rows.items[0].job, &job.id));
            free(rows.items);
        }
    }
}

static void a_claim_is_settled_whatever_became_of_its_commit(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
        struct uuid id = test_submit(test.store);
        uint64_t before = rows_of("job_events");
        fault_arm(losses[i]);
        struct job_hold hold = test_claim(test.store, &id, JOB_STAGING_INPUTS);
        assert_int_equal(hold.fence, 1);
        assert_int_equal(rows_of("job_events"), before + 3);
        AUTO(job_free) struct job *job = test_job(test.store, &id);
        assert_true(uuid_eq(&job->owner_worker, &hold.worker));
        assert_int_equal(job->fence, 1);
    }
}

static void a_terminal_move_is_settled_whatever_became_of_its_commit(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
        struct err err = {0};
        struct uuid id = test_submit(test.store);
        struct job_hold hold = test_claim(test.store, &id, JOB_ARCHIVING);
        const struct job_move move = {.to = JOB_FINISHED};
        const struct job_outcome outcome = {
            .has_exit_code = true, .run_fence = hold.fence, .attempt = true};
        uint64_t before = rows_of("job_events");
        fault_arm(losses[i]);
        assert_ok(job_store_move(test.store, &hold, JOB_ARCHIVING, (struct job_moves){&move, 1},
                                 &outcome, &err));
        assert_int_equal(rows_of("job_events"), before + 1);
        AUTO(job_free) struct job *job = test_job(test.store, &id);
        assert_int_equal(job->status, JOB_FINISHED);
        assert_int_equal(job->attempts, 1);
    }
}

static void a_hand_back_is_settled_whatever_became_of_its_commit(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
        struct err err = {0};
        struct uuid id = test_submit(test.store);
        struct job_hold hold = test_claim(test.store, &id, JOB_STAGING_JOB);
        uint64_t before = rows_of("outbox");
        struct job_handed_back done = {0};
        fault_arm(losses[i]);
        assert_ok(job_store_hand_back(test.store, &hold, JOB_STAGING_JOB, NULL, &done, &err));
        assert_int_equal(done.epoch, 2);
        assert_true(done.outbox_id > 0);
        assert_int_equal(rows_of("outbox"), before + 1);
    }
}

static void a_cancel_is_settled_whatever_became_of_its_commit(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
        struct err err = {0};
        struct uuid waiting = test_submit(test.store);
        struct uuid owned = test_submit(test.store);
        struct job_cancelled done;
        (void)test_claim(test.store, &owned, JOB_RUNNING);
        fault_arm(losses[i]);
        assert_ok(job_store_cancel(test.store, "acme", &waiting, "bob", &done, &err));
        assert_true(done.done);
        fault_arm(losses[i]);
        assert_ok(job_store_cancel(test.store, "acme", &owned, "bob", &done, &err));
        assert_true(done.has_owner);
    }
}

static void changes_of_queues_and_apps_are_settled_too(void **unused)
{
    (void)unused;
    char filter[] = "owner = 'ann'";
    char definition[] = "{}";
    for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
        struct err err = {0};
        struct job_queue queue = {.tenant = "acme",
                                  .name = "q",
                                  .priority = 5,
                                  .filter = filter,
                                  .queue_type = "classic",
                                  .enabled = true};
        struct app app = {
            .tenant = "acme", .id = "a", .app_version = "1", .definition = definition};
        uint32_t version = 0;
        bool made = false;
        fault_arm(losses[i]);
        assert_ok(queue_store_put(test.store, &queue, EXPECT_NONE, &version, &made, &err));
        assert_true(made);
        fault_arm(losses[i]);
        queue.priority = 6;
        assert_ok(queue_store_put(test.store, &queue, 1, &version, &made, &err));
        assert_int_equal(version, 2);
        fault_arm(losses[i]);
        assert_ok(queue_store_delete(test.store, "acme", "q", 2, &err));
        fault_arm(losses[i]);
        assert_ok(app_store_put(test.store, &app, EXPECT_NONE, &version, &made, &err));
        assert_int_equal(version, 1);
        fault_arm(losses[i]);
        assert_ok(app_store_delete(test.store, "acme", "a", "1", 1, &err));
    }
    fault_arm("");
}

static void changes_of_systems_quotas_and_subscriptions_are_settled_too(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
        struct err err = {0};
        struct job_system west = {.tenant = "acme", .id = "s", .kind = "local"};
        struct quota quota = {.tenant = "acme", .owner = "ann", .max_active = 3};
        struct subscription hook = {.tenant = "acme", .name = "h", .owner = "ann", .states = 1};
        const uint8_t seed[HOOK_SEED_SIZE] = {1};
        uint32_t version = 0;
        bool made = false;
        for (uint32_t has = 0; has < 2; has++) { /* made, then changed */
            const uint32_t expect = has ? has : EXPECT_NONE;
            hook.id = uuid_v7();
            (void)snprintf(hook.url, sizeof(hook.url), "http://a/%u", has);
            (void)snprintf(west.description, sizeof(west.description), "%u", has);
            quota.max_active++;
            fault_arm(losses[i]);
            assert_ok(system_store_put(test.store, &west, expect, &version, &made, &err));
            assert_int_equal(version, has + 1);
            assert_int_equal(made, !has);
            fault_arm(losses[i]);
            assert_ok(quota_store_put(test.store, &quota, expect, &version, &made, &err));
            assert_int_equal(version, has + 1);
            fault_arm(losses[i]);
            assert_ok(hook_store_put(test.store, &hook, expect, seed, &made, &err));
            assert_int_equal(made, !has);
        }
        fault_arm(losses[i]);
        assert_ok(system_store_delete(test.store, "acme", "s", 2, &err));
        fault_arm(losses[i]);
        assert_ok(quota_store_delete(test.store, "acme", "ann", 2, &err));
        fault_arm(losses[i]);
        assert_ok(hook_store_delete(test.store, "acme", "h", 2, &err));
    }
    fault_arm("");
}

#endif

/* ---- connections that break ----------------------------------------------------------------- */

static void idle_connections_that_were_cut_off_are_replaced_unseen(void **unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++) {
        (void)test_submit(test.store);
        test_db_kill_connections(&test);
    }
    (void)test_submit(test.store);
    struct store_counters counters;
    store_counters(test.store, &counters);
    assert_true(counters.reconnects >= 5);
}

struct load {
    _Atomic bool stop;
    _Atomic uint64_t done;
    _Atomic uint64_t failed;
};

static void *work(void *arg)
{
    struct load *load = arg;
    while (!load->stop) {
        struct err err = {0};
        struct job_submitted done;
        struct job_new job = test_job_new();
        job.queue = "load";
        if (job_store_submit(test.store, &job, &done, &err) == ERR_OK)
            load->done++;
        else
            load->failed++;
    }
    store_thread_end();
    return NULL;
}

static void under_load_cut_connections_lose_and_double_nothing(void **unused)
{
    (void)unused;
    struct load load = {.stop = false};
    pthread_t threads[6];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &load), 0);
    for (uint64_t cut = 0; cut < 10; cut++) {
        uint64_t before = load.done;
        while (load.done < before + 20 && load.failed == 0)
            sched_yield();
        test_db_kill_connections(&test);
    }
    load.stop = true;
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(load.failed, 0);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM jobs WHERE queue = 'load'"),
                     load.done);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM outbox WHERE queue = 'load'"),
                     load.done);
}

/* ---- deadlocks and lock waits --------------------------------------------------------------- */

struct crossing {
    struct uuid first;
    struct uuid second;
    pthread_barrier_t *meet;
    uint32_t tries;
    enum err_code rc;
};

/* Locks two rows; on the first try both threads hold one and want the other's. */
static enum err_code lock_both(struct txn *txn, void *ctx, struct err *err)
{
    struct crossing *crossing = ctx;
    const struct uuid *ids[] = {&crossing->first, &crossing->second};
    for (int i = 0; i < 2; i++) {
        enum err_code rc =
            db_exec(txn->db, DB_JOB_CANCEL_ASK, DB_ARGS(db_text("x"), db_uuid(ids[i])), NULL, err);
        if (rc)
            return rc;
        if (i == 0 && crossing->tries++ == 0)
            pthread_barrier_wait(crossing->meet);
    }
    return ERR_OK;
}

static void *cross(void *arg)
{
    struct crossing *crossing = arg;
    struct err err = {0};
    crossing->rc = store_txn(test.store, lock_both, crossing, &err);
    store_thread_end();
    return NULL;
}

static void the_loser_of_a_deadlock_tries_again_and_wins(void **unused)
{
    (void)unused;
    pthread_barrier_t meet;
    pthread_t threads[2];
    struct uuid a = test_submit(test.store);
    struct uuid b = test_submit(test.store);
    struct crossing crossings[2] = {{.first = a, .second = b, .meet = &meet},
                                    {.first = b, .second = a, .meet = &meet}};
    pthread_barrier_init(&meet, NULL, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, cross, &crossings[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&meet);
    assert_int_equal(crossings[0].rc, ERR_OK);
    assert_int_equal(crossings[1].rc, ERR_OK);
    assert_int_equal(crossings[0].tries + crossings[1].tries, 3);
}

/* ---- no server, no place -------------------------------------------------------------------- */

static void without_a_server_a_call_ends_within_its_deadline(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct store_config cfg = test.cfg;
    AUTO(store_free) struct store *store = NULL;
    struct uuid id = uuid_v7();
    struct job *job = NULL;
    cfg.port = 1;
    cfg.acquire_timeout_ms = 300;
    assert_ok(store_open(&cfg, &store, &err));
    int64_t begun_ms = clock_mono_ms();
    assert_code(job_store_get(store, NULL, &id, &job, &err), ERR_DB_AWAY);
    assert_true(clock_mono_ms() - begun_ms < 8000);
}

struct holder {
    struct store *store;
    pthread_barrier_t *in;
    pthread_barrier_t *out;
};

static enum err_code hold_connection(struct txn *txn, void *ctx, struct err *err)
{
    struct holder *holder = ctx;
    (void)txn;
    (void)err;
    pthread_barrier_wait(holder->in);
    pthread_barrier_wait(holder->out);
    return ERR_OK;
}

static void *hold_it(void *arg)
{
    struct holder *holder = arg;
    struct err err = {0};
    (void)!store_once(holder->store, hold_connection, holder, &err);
    store_thread_end();
    return NULL;
}

static void when_all_connections_are_busy_a_call_ends_within_its_deadline(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct store_config cfg = test.cfg;
    AUTO(store_free) struct store *store = NULL;
    pthread_barrier_t in;
    pthread_barrier_t out;
    pthread_t thread;
    cfg.pool_size = 1;
    cfg.acquire_timeout_ms = 200;
    assert_ok(store_open(&cfg, &store, &err));
    pthread_barrier_init(&in, NULL, 2);
    pthread_barrier_init(&out, NULL, 2);
    struct holder holder = {store, &in, &out};
    assert_int_equal(pthread_create(&thread, NULL, hold_it, &holder), 0);
    pthread_barrier_wait(&in);
    int64_t begun_ms = clock_mono_ms();
    assert_code(store_ping(store, &err), ERR_DB_AWAY);
    assert_non_null(strstr(err.text, "busy"));
    assert_in_range(clock_mono_ms() - begun_ms, 190, 8000);
    pthread_barrier_wait(&out);
    pthread_join(thread, NULL);
    err_clear(&err);
    assert_ok(store_ping(store, &err));
    pthread_barrier_destroy(&in);
    pthread_barrier_destroy(&out);
}

static void *wait_for_server(void *arg)
{
    struct store *store = arg;
    struct err err = {0};
    static const volatile bool never = false;
    enum err_code rc = store_wait_ready(store, &never, &err);
    store_thread_end();
    return rc == ERR_STOPPING ? store : NULL;
}

static void stopping_ends_calls_that_wait_and_refuses_later_ones(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct store_config cfg = test.cfg;
    AUTO(store_free) struct store *store = NULL;
    pthread_t thread;
    void *answer = NULL;
    cfg.port = 1;
    cfg.acquire_timeout_ms = 60000;
    assert_ok(store_open(&cfg, &store, &err));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_server, store), 0);
    store_stop(store);
    pthread_join(thread, &answer);
    assert_ptr_equal(answer, store);
    assert_code(store_ping(store, &err), ERR_STOPPING);
}

static void a_schema_that_is_too_old_is_told(void **unused)
{
    (void)unused;
    struct err err = {0};
    test_db_run(&test, "RENAME TABLE schema_version TO kept_version");
    assert_code(store_ping(test.store, &err), ERR_DB);
    assert_non_null(strstr(err.text, "sluice migrate"));
    test_db_run(&test, "RENAME TABLE kept_version TO schema_version");
    test_db_run(&test, "UPDATE schema_version SET applied_at = NULL");
    err_clear(&err);
    assert_code(store_ping(test.store, &err), ERR_DB);
    assert_non_null(strstr(err.text, "sluice migrate"));
    test_db_run(&test, "UPDATE schema_version SET applied_at = NOW(6)");
    err_clear(&err);
    assert_ok(store_ping(test.store, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef SLUICE_FAULTS
        TEST(a_submission_is_settled_whatever_became_of_its_commit),
        TEST(a_claim_is_settled_whatever_became_of_its_commit),
        TEST(a_terminal_move_is_settled_whatever_became_of_its_commit),
        TEST(a_hand_back_is_settled_whatever_became_of_its_commit),
        TEST(a_cancel_is_settled_whatever_became_of_its_commit),
        TEST(changes_of_queues_and_apps_are_settled_too),
        TEST(changes_of_systems_quotas_and_subscriptions_are_settled_too),
#endif
        TEST(idle_connections_that_were_cut_off_are_replaced_unseen),
        TEST(under_load_cut_connections_lose_and_double_nothing),
        TEST(the_loser_of_a_deadlock_tries_again_and_wins),
        TEST(without_a_server_a_call_ends_within_its_deadline),
        TEST(when_all_connections_are_busy_a_call_ends_within_its_deadline),
        TEST(stopping_ends_calls_that_wait_and_refuses_later_ones),
        TEST(a_schema_that_is_too_old_is_told),
    };
    test_db_open(&test);
    int failed = cmocka_run_group_tests_name("store_fault", tests, NULL, NULL);
    test_db_close(&test);
    return failed;
}
