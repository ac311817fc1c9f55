/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/service/submitter.h"
#include "common/store/db.h"
#include "common/store/job_store.h"
#include "common/store/outbox_store.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static struct test_db test;

static uint64_t rows_of(const char *table)
{
    char sql[80];
    (void)snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM %s", table);
    return test_db_number(&test, sql);
}

/* Each job has one event and one row of the outbox, and there are none without a job. */
static void assert_rows_agree(void)
{
    static const char *const wrong =
        "SELECT (SELECT COUNT(*) FROM jobs j WHERE 1 <> (SELECT COUNT(*) FROM job_events e WHERE "
        "e.job_id = j.id) OR 1 <> (SELECT COUNT(*) FROM outbox o WHERE o.job_id = j.id)) + "
        "(SELECT COUNT(*) FROM job_events e WHERE e.job_id NOT IN (SELECT id FROM jobs)) + "
        "(SELECT COUNT(*) FROM outbox o WHERE o.job_id NOT IN (SELECT id FROM jobs))";
    assert_int_equal(test_db_number(&test, wrong), 0);
}

static void fill(struct job_item *items, struct job_item **group, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct job_item){.job = test_job_new()};
        group[i] = &items[i];
    }
}

static void assert_stored(const struct job_item *item)
{
    struct err err = {0};
    struct outbox_list rows = {0};
    AUTO(job_free) struct job *job = NULL;
    assert_int_equal(item->err.code, ERR_OK);
    assert_false(item->done.replayed);
    assert_true(uuid_eq(&item->done.id, &item->job.id));
    assert_ok(job_store_get(test.store, NULL, &item->job.id, &job, &err));
    assert_int_equal(job->created_us, item->done.created_us);
    assert_ok(outbox_store_read(test.store, item->done.outbox_id - 1, 0, 1, &rows, &err));
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.items[0].id, item->done.outbox_id);
    assert_true(uuid_eq(&rows.items[0].job, &item->job.id));
    free(rows.items);
}

static void a_group_of_any_size_is_stored_whole(void **unused)
{
    (void)unused;
    for (size_t count = 1; count <= 37; count += 3) {
        struct job_item items[37];
        struct job_item *group[37];
        fill(items, group, count);
        job_store_submit_group(test.store, group, count);
        for (size_t i = 0; i < count; i++)
            assert_stored(&items[i]);
    }
}

static void each_of_a_group_gets_what_it_deserves(void **unused)
{
    (void)unused;
    struct job_item items[6];
    struct job_item *group[6];
    fill(items, group, 6);
    items[0].job.idempotency_key = "group";
    job_store_submit_group(test.store, group, 1);
    assert_stored(&items[0]);
    const struct uuid first = items[0].job.id;
    fill(items, group, 6);
    uint64_t before = rows_of("jobs");
    char name[300];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    items[0].job.idempotency_key = "group"; /* the same again */
    items[1].job.idempotency_key = "group";
    items[1].job.body_hash[0] = 1;
    items[2].job.name = name;
    items[3].job.idempotency_key = "group-2";
    items[4].job.idempotency_key = "group-2"; /* twice in one group */
    job_store_submit_group(test.store, group, 6);
    assert_int_equal(items[0].err.code, ERR_OK);
    assert_true(items[0].done.replayed);
    assert_true(uuid_eq(&items[0].done.id, &first));
    assert_int_equal(items[1].err.code, ERR_IDEMPOTENCY);
    assert_int_equal(items[2].err.code, ERR_INVALID);
    assert_stored(&items[3]);
    assert_true(items[4].done.replayed);
    assert_true(uuid_eq(&items[4].done.id, &items[3].job.id));
    assert_stored(&items[5]);
    assert_int_equal(rows_of("jobs"), before + 2);
}

static void one_that_the_database_refuses_does_not_stop_the_others(void **unused)
{
    (void)unused;
    struct job_item items[5];
    struct job_item *group[5];
    fill(items, group, 5);
    items[3].job.id = items[1].job.id;
    items[4].job.idempotency_key = "beside";
    job_store_submit_group(test.store, group, 5);
    assert_stored(&items[0]);
    assert_stored(&items[1]);
    assert_stored(&items[2]);
    assert_int_equal(items[3].err.code, ERR_DUPLICATE);
    assert_stored(&items[4]);
    assert_rows_agree();
}

static void run_text(struct db *db, const char *text)
{
    struct err err = {0};
    assert_ok(db_run_text(db, sv_of(text), &err));
}

static void insert_by_hand(struct db *db, const struct uuid *id)
{
    char text[UUID_TEXT_SIZE];
    char sql[400];
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO jobs (id, tenant, owner, name, queue, status, epoch, node_count, "
                   "cores_per_node, memory_mb, max_seconds, request, created_at, updated_at) "
                   "VALUES (UNHEX(REPLACE('%s', '-', '')), 'acme', 'ann', 'rival', 'default', "
                   "'PENDING', 1, 1, 1, 1, 1, '{}', NOW(6), NOW(6))",
                   uuid_text(id, text));
    run_text(db, sql);
}

static void *submit_two(void *arg)
{
    struct job_item *items = arg;
    struct job_item *group[2] = {&items[0], &items[1]};
    job_store_submit_group(test.store, group, 2);
    store_thread_end();
    return NULL;
}

/* The deadlock ends the transaction of the submission while its other statements are on the way. */
static void what_travels_behind_a_deadlock_leaves_no_rows(void **unused)
{
    (void)unused;
    struct job_item items[2];
    struct job_item *group[2];
    struct err err = {0};
    pthread_t thread;
    AUTO(db_free) struct db *rival = NULL;
    fill(items, group, 2);
    assert_ok(db_open(&test.cfg, &rival, &err));
    run_text(rival, "BEGIN");
    for (int i = 0; i < 20; i++) { /* it has more to lose: it is not the victim */
        struct uuid id = uuid_v7();
        insert_by_hand(rival, &id);
    }
    insert_by_hand(rival, &items[1].job.id);
    assert_int_equal(pthread_create(&thread, NULL, submit_two, items), 0);
    while (test_db_number(&test, "SELECT COUNT(*) FROM information_schema.processlist "
                                 "WHERE db = DATABASE() AND info LIKE 'INSERT INTO jobs%'") == 0)
        sched_yield();
    insert_by_hand(rival, &items[0].job.id);
    run_text(rival, "ROLLBACK");
    pthread_join(thread, NULL);
    assert_stored(&items[0]);
    assert_stored(&items[1]);
    assert_rows_agree();
}

#ifdef SLUICE_FAULTS
static void a_group_is_settled_whatever_became_of_its_commit(void **unused)
{
    (void)unused;
    static const char *const losses[] = {"store.commit.answer_lost=fail@1",
                                         "store.commit.unsent=fail@1"};
    for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
        struct job_item items[5];
        struct job_item *group[5];
        char key[20];
        fill(items, group, 5);
        (void)snprintf(key, sizeof(key), "lost-%zu", i);
        items[1].job.idempotency_key = key;
        items[2].job.idempotency_key = "group"; /* used before */
        items[4].job.idempotency_key = key;
        uint64_t before = rows_of("jobs");
        fault_arm(losses[i]);
        job_store_submit_group(test.store, group, 5);
        assert_int_equal(rows_of("jobs"), before + 3);
        assert_stored(&items[0]);
        assert_stored(&items[1]);
        assert_true(items[2].done.replayed);
        assert_stored(&items[3]);
        assert_true(items[4].done.replayed);
        assert_rows_agree();
    }
}
#endif

/* ---- the submitter --------------------------------------------------------------------------- */

#define CLIENTS 12
#define EACH 40

struct client {
    struct submitter *submitter;
    struct submit_item items[EACH];
};

static atomic_uint told;

static void count_told(struct submit_item *item)
{
    (void)item;
    atomic_fetch_add(&told, 1);
}

static void *client_main(void *arg)
{
    struct client *client = arg;
    struct err err = {0};
    for (size_t i = 0; i < EACH; i++) {
        client->items[i] = (struct submit_item){.item.job = test_job_new(), .done = count_told};
        if (submitter_add(client->submitter, &client->items[i], &err) != ERR_OK)
            abort();
    }
    store_thread_end();
    return NULL;
}

static void jobs_of_many_threads_are_stored_in_few_transactions(void **unused)
{
    (void)unused;
    static struct client clients[CLIENTS];
    struct err err = {0};
    struct submitter_counters counters;
    AUTO(submitter_free) struct submitter *submitter = NULL;
    pthread_t threads[CLIENTS];
    assert_ok(submitter_open(test.store, 10000, &submitter, &err));
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i].submitter = submitter;
        assert_int_equal(pthread_create(&threads[i], NULL, client_main, &clients[i]), 0);
    }
    for (size_t i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    submitter_stop(submitter);
    assert_int_equal(atomic_load(&told), CLIENTS * EACH);
    for (size_t i = 0; i < CLIENTS; i++) {
        for (size_t k = 0; k < EACH; k += 7)
            assert_stored(&clients[i].items[k].item);
    }
    submitter_counters(submitter, &counters);
    assert_int_equal(counters.items, CLIENTS * EACH);
    assert_true(counters.groups < counters.items);
    assert_code(submitter_add(submitter, &clients[0].items[0], &err), ERR_STOPPING);
}

#ifdef SLUICE_FAULTS
static void wait_told(unsigned count, int64_t until_ms)
{
    while (atomic_load(&told) < count && clock_mono_ms() < until_ms)
        sched_yield();
    assert_int_equal(atomic_load(&told), count);
}

static void *add_one(void *arg)
{
    struct client *client = arg;
    struct err err = {0};
    if (submitter_add(client->submitter, &client->items[0], &err) != ERR_OK)
        abort();
    store_thread_end();
    return NULL;
}

static void a_transaction_that_hangs_holds_the_last_one_up_for_a_moment(void **unused)
{
    (void)unused;
    static struct client client;
    struct submit_item last = {.item.job = test_job_new(), .done = count_told};
    struct err err = {0};
    struct submitter_counters counters = {0};
    AUTO(submitter_free) struct submitter *submitter = NULL;
    pthread_t thread;
    assert_ok(submitter_open(test.store, 10000, &submitter, &err));
    client.submitter = submitter;
    client.items[0] = (struct submit_item){.item.job = test_job_new(), .done = count_told};
    atomic_store(&told, 0);
    fault_arm("job.submit.before_commit=sleep:4000@1");
    assert_int_equal(pthread_create(&thread, NULL, add_one, &client), 0);
    while (counters.under_way == 0)
        submitter_counters(submitter, &counters);
    assert_ok(submitter_add(submitter, &last, &err));
    wait_told(1, clock_mono_ms() + 3500); /* nobody comes after it */
    assert_stored(&last.item);
    submitter_stop(submitter);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&told), 2);
    assert_stored(&client.items[0].item);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_group_of_any_size_is_stored_whole),
        TEST(each_of_a_group_gets_what_it_deserves),
        TEST(one_that_the_database_refuses_does_not_stop_the_others),
        TEST(what_travels_behind_a_deadlock_leaves_no_rows),
#ifdef SLUICE_FAULTS
        TEST(a_group_is_settled_whatever_became_of_its_commit),
#endif
        TEST(jobs_of_many_threads_are_stored_in_few_transactions),
#ifdef SLUICE_FAULTS
        TEST(a_transaction_that_hangs_holds_the_last_one_up_for_a_moment),
#endif
    };
    test_db_open(&test);
    int failed = cmocka_run_group_tests_name("store_group", tests, NULL, NULL);
    test_db_close(&test);
    return failed;
}
