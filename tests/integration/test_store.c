/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"

#include "common/store/db.h"
#include "common/store/job_store.h"
#include "common/store/migrate.h"
#include "common/store/outbox_store.h"
#include "common/store/pool.h"
#include "common/store/queue_store.h"
#include "common/store/worker_store.h"

static struct test_db test;

static struct job_new a_job(void)
{
    return (struct job_new){.id = uuid_v7(),
                            .tenant = "acme",
                            .owner = "ann",
                            .name = "first",
                            .queue = "default",
                            .node_count = 1,
                            .cores_per_node = 2,
                            .memory_mb = 100,
                            .max_seconds = 3600,
                            .request = SV("{\"command\":[\"true\"]}"),
                            .tags = "[\"a\",\"b\"]",
                            .detail = "for a test"};
}

static struct uuid submit_one(void)
{
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = a_job();
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    return done.id;
}

static void migrating_twice_changes_nothing(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint32_t applied = 7;
    assert_ok(migrate_run(&test.cfg, &applied, NULL, &err));
    assert_int_equal(applied, 0);
}

static void every_statement_is_as_the_table_says(void **unused)
{
    (void)unused;
    struct err err = {0};
    assert_ok(store_ping(test.store, &err));
}

static void a_submitted_job_is_read_back_whole(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = a_job();
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(migrating_twice_changes_nothing),
        TEST(every_statement_is_as_the_table_says),
        TEST(a_submitted_job_is_read_back_whole),
    };
    test_db_open(&test);
    (void)submit_one;
    int failed = cmocka_run_group_tests_name("store", tests, NULL, NULL);
    test_db_close(&test);
    return failed;
}
