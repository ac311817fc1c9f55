/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/store/db.h"
#include "common/store/job_store.h"
#include "common/store/migrate.h"
#include "common/store/migration.h"
#include "common/store/outbox_store.h"

#include <pthread.h>

#define RIVALS 20

static struct test_db test;

/* ---- schema --------------------------------------------------------------------------------- */

static void migrating_twice_changes_nothing(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint32_t applied = 7;
    assert_ok(migrate_run(&test.cfg, &applied, NULL, &err));
    assert_int_equal(applied, 0);
}

static void *migrate_empty(void *result)
{
    struct err err = {0};
    struct store_config cfg = test.cfg;
    char name[64];
    uint32_t applied = 1000; /* a failure */
    (void)snprintf(name, sizeof(name), "%s_empty", test.schema);
    cfg.name = name;
    (void)!migrate_run(&cfg, &applied, NULL, &err);
    *(uint32_t *)result = applied;
    store_thread_end();
    return NULL;
}

static void of_many_migrations_at_once_one_applies_each_file(void **unused)
{
    (void)unused;
    pthread_t threads[4];
    uint32_t applied[4];
    uint32_t total = 0;
    char sql[120];
    (void)snprintf(sql, sizeof(sql), "CREATE DATABASE %s_empty", test.schema);
    test_db_run(&test, sql);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, migrate_empty, &applied[i]), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        total += applied[i];
    assert_int_equal(total, migration_count);
    (void)snprintf(sql, sizeof(sql), "DROP DATABASE %s_empty", test.schema);
    test_db_run(&test, sql);
}

static void a_file_that_changed_since_it_was_applied_is_refused(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint32_t applied = 0;
    test_db_run(&test, "UPDATE schema_version SET sha256 = REVERSE(sha256) WHERE number = 1");
    assert_code(migrate_run(&test.cfg, &applied, NULL, &err), ERR_STATE);
    test_db_run(&test, "UPDATE schema_version SET sha256 = REVERSE(sha256) WHERE number = 1");
}

static void a_migration_that_was_cut_short_goes_on_where_it_stopped(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint32_t applied = 0;
    test_db_run(&test, "DROP TABLE idempotency_keys");
    test_db_run(&test, "UPDATE schema_version SET applied_at = NULL, statements = statements - 1 "
                       "WHERE number = 1");
    assert_code(store_ping(test.store, &err), ERR_DB);
    err_clear(&err);
    assert_ok(migrate_run(&test.cfg, &applied, NULL, &err));
    assert_int_equal(applied, 1);
    assert_ok(store_ping(test.store, &err));
}

/* Killed, or cut off while the server went on by itself: the step is done and not counted. */
static void a_step_that_was_done_and_not_counted_is_not_done_again(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint32_t applied = 0;
    test_db_run(&test, "UPDATE schema_version SET applied_at = NULL, statements = statements - 1");
    assert_ok(migrate_run(&test.cfg, &applied, NULL, &err));
    assert_int_equal(applied, migration_count);
    assert_ok(store_ping(test.store, &err));
    test_db_run(&test, "UPDATE schema_version SET applied_at = NULL, statements = 0 "
                       "WHERE number = 3");
    assert_code(migrate_run(&test.cfg, &applied, NULL, &err), ERR_DUPLICATE); /* one step only */
    test_db_run(&test, "UPDATE schema_version SET applied_at = '2026-01-01', statements = 2 "
                       "WHERE number = 3");
}

static void every_statement_is_as_the_table_says(void **unused)
{
    (void)unused;
    struct err err = {0};
    AUTO(db_free) struct db *db = NULL;
    assert_ok(db_open(&test.cfg, &db, &err));
    assert_ok(db_prepare_all(db, &err));
}

/* ---- submission ----------------------------------------------------------------------------- */

static void a_submitted_job_is_read_back_whole(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    AUTO(job_free) struct job *read = NULL;
    job.app_id = "sim";
    job.app_version = "1.0";
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    assert_false(done.replayed);
    assert_true(uuid_eq(&done.id, &job.id));
    assert_ok(job_store_get(test.store, "acme", &job.id, &read, &err));
    assert_string_equal(read->owner, "ann");
    assert_string_equal(read->app_id, "sim");
    assert_string_equal(read->system_id, "");
    assert_string_equal(read->request, "{\"command\":[\"true\"]}");
    assert_string_equal(read->tags, "[\"a\",\"b\"]");
    assert_int_equal(read->status, JOB_PENDING);
    assert_int_equal(read->epoch, 1);
    assert_int_equal(read->fence, 0);
    assert_false(read->has_owner);
    assert_false(read->has_exit_code);
    assert_true(read->visible);
    assert_true(read->created_us > INT64_C(1600000000000000));
    assert_int_equal(read->started_us, 0);
    assert_int_equal(read->cores_per_node, 2);
}

static void a_job_of_another_tenant_is_not_found(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job *read = NULL;
    assert_code(job_store_get(test.store, "other", &id, &read, &err), ERR_NOT_FOUND);
}

static void the_first_event_and_the_outbox_row_are_there(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    struct job_event_list events = {0};
    struct outbox_list rows = {0};
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    assert_ok(job_store_events(test.store, "acme", &job.id, (struct job_event_page){0, 100},
                               &events, &err));
    assert_int_equal(events.count, 1);
    assert_string_equal(events.items[0].kind, "submitted");
    assert_string_equal(events.items[0].actor, "ann");
    assert_string_equal(events.items[0].detail, "for a test");
    assert_false(events.items[0].has_from);
    assert_int_equal(events.items[0].to, JOB_PENDING);
    free(events.items);
    assert_ok(outbox_store_read(test.store, done.outbox_id - 1, 0, 10, &rows, &err));
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.items[0].id, done.outbox_id);
    assert_true(uuid_eq(&rows.items[0].job, &job.id));
    assert_int_equal(rows.items[0].epoch, 1);
    assert_string_equal(rows.items[0].queue_type, "quorum");
    free(rows.items);
    assert_ok(outbox_store_delete(test.store, &done.outbox_id, 1, &err));
    assert_ok(outbox_store_read(test.store, done.outbox_id - 1, 0, 10, &rows, &err));
    assert_int_equal(rows.count, 0);
    free(rows.items);
}

static void many_jobs_are_all_written_with_their_outbox_numbers(void **unused)
{
    (void)unused;
    enum { MANY = 45 };
    struct err err = {0};
    struct job_new jobs[MANY];
    struct job_submitted done[MANY];
    struct outbox_list rows = {0};
    uint64_t ids[MANY];
    for (int i = 0; i < MANY; i++)
        jobs[i] = test_job_new();
    assert_ok(job_store_submit_many(test.store, jobs, MANY, done, &err));
    assert_ok(outbox_store_read(test.store, done[0].outbox_id - 1, 0, MANY + 1, &rows, &err));
    assert_int_equal(rows.count, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(rows.items[i].id, done[i].outbox_id);
        assert_true(uuid_eq(&rows.items[i].job, &jobs[i].id));
        ids[i] = done[i].outbox_id;
    }
    free(rows.items);
    assert_ok(outbox_store_delete(test.store, ids, MANY, &err));
    assert_ok(outbox_store_read(test.store, ids[0] - 1, 0, MANY, &rows, &err));
    assert_int_equal(rows.count, 0);
    free(rows.items);
}

static void one_bad_job_among_many_stores_none(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_new jobs[20];
    struct job_submitted done[20];
    for (int i = 0; i < 20; i++)
        jobs[i] = test_job_new();
    jobs[19].id = jobs[3].id;
    assert_code(job_store_submit_many(test.store, jobs, 20, done, &err), ERR_DUPLICATE);
    struct job *read = NULL;
    err_clear(&err);
    assert_code(job_store_get(test.store, NULL, &jobs[0].id, &read, &err), ERR_NOT_FOUND);
}

static void a_used_key_gives_the_earlier_job_or_refuses_another_body(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_submitted first;
    struct job_submitted second;
    struct job_new job = test_job_new();
    job.idempotency_key = "k-1";
    memset(job.body_hash, 7, sizeof(job.body_hash));
    assert_ok(job_store_submit(test.store, &job, &first, &err));
    job.id = uuid_v7();
    assert_ok(job_store_submit(test.store, &job, &second, &err));
    assert_true(second.replayed);
    assert_true(uuid_eq(&first.id, &second.id));
    job.body_hash[31] = 8;
    assert_code(job_store_submit(test.store, &job, &second, &err), ERR_IDEMPOTENCY);
    err_clear(&err);
    job.owner = "bob"; /* keys belong to their user */
    assert_ok(job_store_submit(test.store, &job, &second, &err));
    assert_false(second.replayed);
}

static void a_key_whose_time_is_over_is_forgotten_and_may_be_used_again(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    uint64_t rows = 0;
    job.idempotency_key = "k-old";
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    assert_ok(job_store_forget_keys(test.store, 24, 1000, &rows, &err));
    assert_int_equal(rows, 0);
    test_db_run(&test, "UPDATE idempotency_keys SET created_at = created_at - INTERVAL 25 HOUR "
                       "WHERE idem_key = 'k-old'");
    assert_ok(job_store_forget_keys(test.store, 24, 1000, &rows, &err));
    assert_int_equal(rows, 1);
    job.id = uuid_v7();
    job.body_hash[0] = 1;
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    assert_false(done.replayed);
}

static void *submit_with_key(void *result)
{
    struct err err = {0};
    struct job_new job = test_job_new();
    job.idempotency_key = "race";
    memset(job.body_hash, 9, sizeof(job.body_hash));
    struct job_submitted *done = result;
    if (job_store_submit(test.store, &job, done, &err) != ERR_OK)
        done->outbox_id = UINT64_MAX;
    store_thread_end();
    return NULL;
}

static void twenty_requests_with_one_key_make_one_job(void **unused)
{
    (void)unused;
    pthread_t threads[RIVALS];
    struct job_submitted done[RIVALS] = {{.replayed = false}};
    int fresh = 0;
    for (int i = 0; i < RIVALS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, submit_with_key, &done[i]), 0);
    for (int i = 0; i < RIVALS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < RIVALS; i++) {
        assert_true(done[i].outbox_id != UINT64_MAX);
        assert_true(uuid_eq(&done[i].id, &done[0].id));
        fresh += !done[i].replayed;
    }
    assert_int_equal(fresh, 1);
}

static void a_text_that_is_too_long_is_refused_before_the_database(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_submitted done;
    char name[JOB_NAME_SIZE + 1];
    struct job_new job = test_job_new();
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = 0;
    job.name = name;
    assert_code(job_store_submit(test.store, &job, &done, &err), ERR_INVALID);
}

static void states_of_many_are_read_at_once(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid ids[20];
    enum job_state states[20];
    for (int i = 0; i < 20; i++)
        ids[i] = i == 7 ? uuid_v7() : test_submit(test.store);
    assert_ok(job_store_states(test.store, ids, 20, states, &err));
    for (int i = 0; i < 20; i++)
        assert_int_equal(states[i], i == 7 ? JOB_STATE_COUNT : JOB_PENDING);
    assert_ok(job_store_states(test.store, ids, 1, states, &err));
    assert_int_equal(states[0], JOB_PENDING);
}

static void live_jobs_are_counted_by_tenant_queue_and_state(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_count *counts = NULL;
    size_t count = 0;
    uint64_t seen = 0;
    test_db_run(&test, "INSERT IGNORE INTO tenants (name, created_at) VALUES ('acme', NOW(6))");
    assert_ok(job_store_counts(test.store, &counts, &count, &err));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(counts[i].queue, "default") == 0 && counts[i].status == JOB_PENDING)
            seen = counts[i].jobs;
        assert_true(counts[i].oldest_us > 0);
    }
    assert_int_equal(seen, test_db_number(&test, "SELECT COUNT(*) FROM jobs WHERE status = "
                                                 "'PENDING' AND queue = 'default'"));
    free(counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(migrating_twice_changes_nothing),
        TEST(of_many_migrations_at_once_one_applies_each_file),
        TEST(a_file_that_changed_since_it_was_applied_is_refused),
        TEST(a_migration_that_was_cut_short_goes_on_where_it_stopped),
        TEST(a_step_that_was_done_and_not_counted_is_not_done_again),
        TEST(every_statement_is_as_the_table_says),
        TEST(a_submitted_job_is_read_back_whole),
        TEST(a_job_of_another_tenant_is_not_found),
        TEST(the_first_event_and_the_outbox_row_are_there),
        TEST(many_jobs_are_all_written_with_their_outbox_numbers),
        TEST(one_bad_job_among_many_stores_none),
        TEST(a_used_key_gives_the_earlier_job_or_refuses_another_body),
        TEST(a_key_whose_time_is_over_is_forgotten_and_may_be_used_again),
        TEST(twenty_requests_with_one_key_make_one_job),
        TEST(a_text_that_is_too_long_is_refused_before_the_database),
        TEST(states_of_many_are_read_at_once),
        TEST(live_jobs_are_counted_by_tenant_queue_and_state),
    };
    test_db_open(&test);
    int failed = cmocka_run_group_tests_name("store", tests, NULL, NULL);
    test_db_close(&test);
    return failed;
}
