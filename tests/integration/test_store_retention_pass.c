/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/store/retention.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* Whole passes: what keeps a thing that looks old. */

#define DAY_MS 86400000
#define LEASE_MS 300

static struct test_db test;
static char root[] = "/tmp/sluice-retention-XXXXXX";
static int root_fd;

/* ---- what there is --------------------------------------------------------------------------- */

static struct uuid aged(struct uuid id, int64_t days)
{
    uint64_t ms = 0;
    for (int i = 0; i < 6; i++)
        ms = ms << 8 | id.bytes[i];
    ms -= (uint64_t)days * DAY_MS;
    for (int i = 5; i >= 0; i--, ms >>= 8)
        id.bytes[i] = (uint8_t)ms;
    return id;
}

/* A job that ended 40 days ago. */
static struct uuid an_old_job(const char *key)
{
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    char text[400];
    char hex[33];
    job.id = aged(job.id, 50);
    job.idempotency_key = key;
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    for (int i = 0; i < 16; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", job.id.bytes[i]);
    (void)snprintf(text, sizeof(text),
                   "UPDATE jobs SET status = 'FINISHED', ended_at = UTC_TIMESTAMP(6) - INTERVAL 40 "
                   "DAY WHERE id = 0x%s",
                   hex);
    test_db_run(&test, text);
    return job.id;
}

static void make_folder(const char *path)
{
    struct err err = {0};
    assert_ok(fs_make_dirs(root_fd, path, 0755, NULL, &err));
}

static bool has_folder(const char *path)
{
    struct stat status;
    return fstatat(root_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- a pass ---------------------------------------------------------------------------------- */

static const struct retention_policy policy = {
    .days =
        {[RETENTION_OF_FINISHED] = 30, [RETENTION_OF_FAILED] = 30, [RETENTION_OF_CANCELLED] = 30},
    .key_hours = 24,
    .load_percent = 100,
};

struct rests {
    size_t count;
    int64_t longest_ms;
};

static bool note_rest(void *arg, int64_t ms)
{
    struct rests *rests = arg;
    rests->count++;
    if (ms > rests->longest_ms)
        rests->longest_ms = ms;
    return false;
}

static struct retention_report pass_with(const struct retention_policy *with, struct rests *rests)
{
    struct err err = {0};
    struct err end = {0};
    struct retention_pass pass = {.store = test.store,
                                  .archive_fd = root_fd,
                                  .policy = with,
                                  .holder = uuid_v7(),
                                  .lease_ms = LEASE_MS,
                                  .sweeps = true,
                                  .rest = note_rest,
                                  .arg = rests};
    assert_ok(retention_store_lead(test.store, &pass.holder, LEASE_MS, &err));
    assert_ok(retention_run(&pass, &err));
    assert_ok(retention_store_done(test.store, &pass.holder, true, &end));
    return pass.report;
}

static struct retention_report pass(void)
{
    struct rests rests = {0};
    return pass_with(&policy, &rests);
}

static int start_empty(void **unused)
{
    (void)unused;
    test_db_run(&test, "DELETE FROM jobs");
    test_db_run(&test, "DELETE FROM job_events");
    test_db_run(&test, "DELETE FROM idempotency_keys");
    test_db_run(&test, "UPDATE retention SET holder = NULL");
    test_db_run(&test, "DELETE FROM subscriptions");
    test_db_run(&test, "DELETE FROM webhook_deliveries");
    test_db_run(&test, "UPDATE webhook_sender SET seq = 0");
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_job_whose_key_would_still_be_found_stays(void **unused)
{
    (void)unused;
    (void)an_old_job("once");
    test_db_run(&test, "UPDATE idempotency_keys SET created_at = created_at - INTERVAL 41 DAY");
    assert_int_equal(pass().rows[RETENTION_OF_FINISHED], 0);
    test_db_run(&test, "DELETE FROM idempotency_keys");
    assert_int_equal(pass().rows[RETENTION_OF_FINISHED], 1);
}

static int64_t fifteen_days_ago(void)
{
    struct timeval now;
    (void)gettimeofday(&now, NULL);
    return ((int64_t)now.tv_sec - INT64_C(15) * 86400) * 1000000;
}

static void a_clock_of_the_database_that_is_ahead_makes_nothing_old(void **unused)
{
    (void)unused;
    (void)an_old_job(NULL);
    clock_replace(NULL, fifteen_days_ago);
    struct retention_report report = pass();
    clock_replace(NULL, NULL);
    assert_int_equal(report.rows[RETENTION_OF_FINISHED], 0);
    assert_int_equal(pass().rows[RETENTION_OF_FINISHED], 1);
}

static void a_lead_from_the_future_is_no_lead(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid gone = uuid_v7();
    assert_ok(retention_store_lead(test.store, &gone, LEASE_MS, &err));
    test_db_run(&test, "UPDATE retention SET renewed_at = renewed_at + INTERVAL 1 DAY");
    (void)pass();
}

#define DIGITS                                                                                     \
    "(SELECT 0 UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5)"

static void long_histories_go_in_several_transactions(void **unused)
{
    (void)unused;
    struct rests rests = {0};
    for (int i = 0; i < 4; i++)
        (void)an_old_job(NULL);
    test_db_run(&test, "INSERT INTO job_events (job_id, tenant, at, kind, to_status, epoch, fence) "
                       "SELECT e.job_id, e.tenant, e.at, 'x', 'x', 1, 0 FROM job_events e, " DIGITS
                       " a, " DIGITS " b, " DIGITS " c, " DIGITS " d, " DIGITS " f");
    struct retention_report report = pass_with(&policy, &rests);
    assert_int_equal(report.rows[RETENTION_OF_FINISHED], 4);
    assert_int_equal(report.events, 4 * 7777);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM job_events"), 0);
    assert_true(rests.count >= 4);
}

static void a_long_rest_does_not_lose_the_lead(void **unused)
{
    (void)unused;
    struct rests rests = {0};
    struct retention_policy slow = policy;
    slow.load_percent = 1;
    for (int i = 0; i < RETENTION_AT_ONCE; i++)
        (void)an_old_job(NULL);
    assert_int_equal(pass_with(&slow, &rests).rows[RETENTION_OF_FINISHED], RETENTION_AT_ONCE);
    assert_true(rests.count > 0);
    assert_true(rests.longest_ms <= LEASE_MS / 3);
}

/* Two sites with one archive, or a new database with the archive of an old one. */
static void output_of_another_site_stays(void **unused)
{
    (void)unused;
    char id[UUID_TEXT_SIZE];
    char path[64];
    struct uuid number = aged(uuid_v7(), 200);
    (void)snprintf(path, sizeof(path), "acme/%s", uuid_text(&number, id));
    make_folder(path);
    make_folder(".site-1");
    assert_int_equal(pass().orphans, 0);
    assert_true(has_folder(path));
    assert_int_equal(unlinkat(root_fd, ".site-1", AT_REMOVEDIR), 0);
    assert_int_equal(pass().orphans, 1);
    assert_false(has_folder(path));
}

/* ---- who is still to be told ----------------------------------------------------------------- */

#define SUBSCRIBE(job)                                                                             \
    "INSERT INTO subscriptions (id, tenant, job_id, owner, url, states, lane, after_seq, "         \
    "created_at, updated_at) VALUES (" job ", 'acme', " job                                        \
    ", 'ann', 'http://a/', 'FINISHED', " job ", 0, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"
#define OF_JOB "(SELECT MAX(id) FROM jobs)"
#define OF_TENANT_ALL "UNHEX(LPAD('', 32, '0'))"

static struct retention_report pass_patient(uint32_t days)
{
    struct rests rests = {0};
    struct retention_policy patient = policy;
    patient.untold_s = days * 86400;
    return pass_with(&patient, &rests);
}

/* Its events are as old as its end. */
static void make_untold_job(void)
{
    (void)an_old_job(NULL);
    test_db_run(&test, "UPDATE job_events SET at = UTC_TIMESTAMP(6) - INTERVAL 40 DAY");
}

static void a_job_that_the_sender_has_not_seen_stays_for_a_while(void **unused)
{
    (void)unused;
    make_untold_job();
    test_db_run(&test, SUBSCRIBE(OF_TENANT_ALL));
    struct retention_report report = pass_patient(20);
    assert_int_equal(report.rows[RETENTION_OF_FINISHED], 0);
    report = pass_patient(5); /* it ended 35 days and more ago */
    assert_int_equal(report.rows[RETENTION_OF_FINISHED], 1);
    assert_int_equal(report.untold, 1);
}

static void nobody_waits_for_a_sender_whom_nobody_needs(void **unused)
{
    (void)unused;
    make_untold_job();
    struct retention_report report = pass_patient(20);
    assert_int_equal(report.rows[RETENTION_OF_FINISHED], 1);
    assert_int_equal(report.untold, 0);
    make_untold_job();
    test_db_run(&test, SUBSCRIBE(OF_TENANT_ALL));
    test_db_run(&test, "UPDATE webhook_sender SET seq = (SELECT MAX(seq) FROM job_events)");
    report = pass_patient(20);
    assert_int_equal(report.rows[RETENTION_OF_FINISHED], 1);
    assert_int_equal(report.untold, 0);
}

static void a_job_with_a_delivery_that_is_due_stays_for_a_while(void **unused)
{
    (void)unused;
    make_untold_job();
    test_db_run(&test, SUBSCRIBE(OF_JOB));
    test_db_run(&test, "UPDATE webhook_sender SET seq = (SELECT MAX(seq) FROM job_events)");
    test_db_run(&test, "INSERT INTO webhook_deliveries (id, subscription_id, tenant, job_id, seq, "
                       "event, lane, state, body, created_at, since, next_at) SELECT id, id, "
                       "'acme', id, 1, 'FINISHED', id, 'due', '{}', UTC_TIMESTAMP(6), "
                       "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM jobs");
    assert_int_equal(pass_patient(20).rows[RETENTION_OF_FINISHED], 0);
    assert_int_equal(pass_patient(5).rows[RETENTION_OF_FINISHED], 1);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM subscriptions"), 1);
}

/* They are the sender's to forget, and there may be none. */
static void what_a_job_subscribed_to_goes_with_it(void **unused)
{
    (void)unused;
    make_untold_job();
    test_db_run(&test, SUBSCRIBE(OF_JOB));
    test_db_run(&test, SUBSCRIBE(OF_TENANT_ALL));
    assert_int_equal(pass_patient(5).rows[RETENTION_OF_FINISHED], 1);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM subscriptions"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_SETUP(a_job_whose_key_would_still_be_found_stays, start_empty),
        TEST_SETUP(a_clock_of_the_database_that_is_ahead_makes_nothing_old, start_empty),
        TEST_SETUP(a_lead_from_the_future_is_no_lead, start_empty),
        TEST_SETUP(long_histories_go_in_several_transactions, start_empty),
        TEST_SETUP(a_long_rest_does_not_lose_the_lead, start_empty),
        TEST_SETUP(output_of_another_site_stays, start_empty),
        TEST_SETUP(a_job_that_the_sender_has_not_seen_stays_for_a_while, start_empty),
        TEST_SETUP(nobody_waits_for_a_sender_whom_nobody_needs, start_empty),
        TEST_SETUP(a_job_with_a_delivery_that_is_due_stays_for_a_while, start_empty),
        TEST_SETUP(what_a_job_subscribed_to_goes_with_it, start_empty),
    };
    struct err err = {0};
    assert_non_null(mkdtemp(root));
    assert_ok(fs_open_dir(root, false, &root_fd, &err));
    test_db_open(&test);
    test_db_run(&test, "INSERT IGNORE INTO tenants (name, created_at) VALUES ('acme', NOW(6))");
    int failed = cmocka_run_group_tests_name("store_retention_pass", tests, NULL, NULL);
    test_db_close(&test);
    FD_AUTO int tmp_fd = -1;
    assert_ok(fs_open_dir("/tmp", false, &tmp_fd, &err));
    assert_ok(fs_remove_tree(tmp_fd, strrchr(root, '/') + 1, &err));
    return failed;
}
