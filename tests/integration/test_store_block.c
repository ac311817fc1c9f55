/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/store/block_store.h"

#include <pthread.h>

/* Jobs that begin to wait: the blocked row, the shared cause, and who may do it. */

#define MANY 24

static struct test_db test;

static struct job_block away(const char *params)
{
    return (struct job_block){.condition = JOB_COND_CONNECTION_FAILED,
                              .tester = "tcp_connect",
                              .params = params,
                              .policy = "constant every=1s",
                              .detail = "connection refused"};
}

static uint64_t causes(const char *params)
{
    char sql[200];
    (void)snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM job_recovery WHERE params = '%s'",
                   params);
    return test_db_number(&test, sql);
}

static void an_owner_gives_a_job_up_and_the_way_back_is_kept(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid recovery = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_STAGING_INPUTS);
    struct job_block block = away("{\"host\":\"a\",\"port\":1}");
    assert_ok(job_store_block(test.store, &hold, JOB_STAGING_INPUTS, &block, &recovery, &err));
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->status, JOB_BLOCKED);
    assert_false(job->has_owner);
    assert_int_equal(job->condition, JOB_COND_CONNECTION_FAILED);
    assert_string_equal(job->reason, "connection refused");
    assert_int_equal(job->epoch, 1);
    assert_int_equal(job->losses, 0);
    assert_false(uuid_is_nil(&recovery));
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM job_blocked WHERE resume_status = "
                                           "'STAGING_INPUTS'"),
                     1);
    assert_int_equal(causes(block.params), 1);
}

static void blocking_again_by_the_same_holder_changes_nothing(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid first = {0};
    struct uuid again = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_PENDING);
    struct job_block block = away("{\"host\":\"b\",\"port\":1}");
    assert_ok(job_store_block(test.store, &hold, JOB_PENDING, &block, &first, &err));
    assert_ok(job_store_block(test.store, &hold, JOB_PENDING, &block, &again, &err));
    assert_true(uuid_eq(&first, &again));
    hold.fence++;
    assert_code(job_store_block(test.store, &hold, JOB_PENDING, &block, NULL, &err), ERR_FENCED);
}

struct one {
    struct job_hold hold;
    const char *params;
    enum err_code rc;
    struct uuid recovery;
};

static void *block_it(void *arg)
{
    struct one *one = arg;
    struct err err = {0};
    struct job_block block = away(one->params);
    one->rc = job_store_block(test.store, &one->hold, JOB_PENDING, &block, &one->recovery, &err);
    store_thread_end();
    return NULL;
}

static void jobs_blocked_by_one_cause_at_once_share_one_row(void **unused)
{
    (void)unused;
    static struct one ones[MANY];
    pthread_t threads[MANY];
    for (int i = 0; i < MANY; i++) {
        struct uuid id = test_submit(test.store);
        ones[i].hold = test_claim(test.store, &id, JOB_PENDING);
        ones[i].params = "{\"host\":\"c\",\"port\":1}";
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, block_it, &ones[i]), 0);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(ones[i].rc, ERR_OK);
        assert_true(uuid_eq(&ones[i].recovery, &ones[0].recovery));
    }
    assert_int_equal(causes(ones[0].params), 1);
}

static void only_a_job_without_an_owner_is_blocked_by_others(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid recovery = {0};
    struct uuid id = test_submit(test.store);
    struct uuid owned = test_submit(test.store);
    struct job_block block = away("{\"host\":\"d\",\"port\":1}");
    (void)test_claim(test.store, &owned, JOB_PENDING);
    assert_code(job_store_block_unowned(test.store, &owned, 1, &block, NULL, &err), ERR_CONFLICT);
    err_clear(&err);
    assert_code(job_store_block_unowned(test.store, &id, 2, &block, NULL, &err), ERR_CONFLICT);
    err_clear(&err);
    assert_ok(job_store_block_unowned(test.store, &id, 1, &block, &recovery, &err));
    assert_int_equal(test_state(test.store, &id), JOB_BLOCKED);
    assert_code(job_store_block_unowned(test.store, &id, 1, &block, NULL, &err), ERR_CONFLICT);
}

static void a_job_that_shall_be_cancelled_is_not_blocked(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_cancelled cancelled;
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_PENDING);
    struct job_block block = away("{\"host\":\"e\",\"port\":1}");
    assert_ok(job_store_cancel(test.store, "acme", &id, "ann", &cancelled, &err));
    assert_code(job_store_block(test.store, &hold, JOB_PENDING, &block, NULL, &err), ERR_STATE);
    assert_int_equal(causes(block.params), 0);
}

static void cancelling_a_blocked_job_takes_its_blocked_row(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_cancelled cancelled;
    struct uuid id = test_submit(test.store);
    struct job_block block = away("{\"host\":\"f\",\"port\":1}");
    uint64_t before = test_db_number(&test, "SELECT COUNT(*) FROM job_blocked");
    assert_ok(job_store_block_unowned(test.store, &id, 1, &block, NULL, &err));
    assert_ok(job_store_cancel(test.store, "acme", &id, "ann", &cancelled, &err));
    assert_true(cancelled.done);
    assert_int_equal(test_state(test.store, &id), JOB_CANCELLED);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM job_blocked"), before);
}

static int open_test(void **unused)
{
    (void)unused;
    test_db_open(&test);
    return 0;
}

static int close_test(void **unused)
{
    (void)unused;
    test_db_close(&test);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_owner_gives_a_job_up_and_the_way_back_is_kept),
        TEST(blocking_again_by_the_same_holder_changes_nothing),
        TEST(jobs_blocked_by_one_cause_at_once_share_one_row),
        TEST(only_a_job_without_an_owner_is_blocked_by_others),
        TEST(a_job_that_shall_be_cancelled_is_not_blocked),
        TEST(cancelling_a_blocked_job_takes_its_blocked_row),
    };
    return cmocka_run_group_tests(tests, open_test, close_test);
}
