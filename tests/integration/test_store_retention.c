/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/store/process_store.h"
#include "common/store/retention_store.h"

/* What is old goes in batches, and nothing else does. */

#define DAY_US INT64_C(86400000000)

static struct test_db test;

static int64_t now_us(void)
{
    struct err err = {0};
    struct retention_row row;
    assert_ok(retention_store_get(test.store, &row, &err));
    return row.now_us;
}

/* A job that was submitted so many days ago, in the state that `sql` puts it in. */
static struct uuid an_old_job(int64_t days, const char *sql)
{
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    char text[400];
    uint64_t ms = 0;
    for (int i = 0; i < 6; i++)
        ms = ms << 8 | job.id.bytes[i];
    ms -= (uint64_t)days * 86400000;
    for (int i = 5; i >= 0; i--, ms >>= 8)
        job.id.bytes[i] = (uint8_t)ms;
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    char hex[33];
    for (int i = 0; i < 16; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", job.id.bytes[i]);
    (void)snprintf(text, sizeof(text), "UPDATE jobs SET %s WHERE id = 0x%s", sql, hex);
    test_db_run(&test, text);
    return job.id;
}

#define ENDED(state, days)                                                                         \
    "status = '" state "', ended_at = UTC_TIMESTAMP(6) - INTERVAL " #days " DAY"

static bool is_there(const struct uuid *id)
{
    struct err err = {0};
    enum job_state state;
    assert_ok(job_store_states(test.store, id, 1, &state, &err));
    return state != JOB_STATE_COUNT;
}

static size_t find(enum retention_kind kind, int64_t days, struct uuid *ret_ids)
{
    struct err err = {0};
    size_t count = 0;
    const struct retention_search search = {
        .tenant = "acme", .kind = kind, .limit_us = now_us() - days * DAY_US};
    assert_ok(retention_store_find(test.store, &search, ret_ids, &count, &err));
    return count;
}

static int start_empty(void **unused)
{
    (void)unused;
    test_db_run(&test, "DELETE FROM jobs");
    test_db_run(&test, "DELETE FROM job_events");
    return 0;
}

static void only_what_ended_long_ago_in_the_state_is_found(void **unused)
{
    (void)unused;
    struct uuid ids[RETENTION_AT_ONCE];
    struct uuid old = an_old_job(50, ENDED("FINISHED", 40));
    (void)an_old_job(50, ENDED("FINISHED", 20)); /* ran for long */
    (void)an_old_job(50, ENDED("FAILED", 40));
    (void)an_old_job(50, "status = 'RUNNING'");
    (void)an_old_job(50, "status = 'BLOCKED'");
    (void)an_old_job(0, "status = 'PENDING'");
    assert_int_equal(find(RETENTION_OF_FINISHED, 30, ids), 1);
    assert_true(uuid_eq(&ids[0], &old));
    assert_int_equal(find(RETENTION_OF_FINISHED, 60, ids), 0);
    assert_int_equal(find(RETENTION_OF_CANCELLED, 1, ids), 0);
}

static void a_job_goes_with_its_history_and_the_mark_says_how_far(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct retention_removed removed = {0};
    struct retention_row row;
    uint64_t events = 0;
    struct uuid old = an_old_job(50, ENDED("CANCELLED", 40));
    struct uuid active = an_old_job(50, "status = 'RUNNING'");
    uint64_t seq = test_db_number(&test, "SELECT MIN(seq) FROM job_events");
    assert_ok(retention_store_count_events(test.store, &old, 1, &events, &err));
    assert_int_equal(events, 1);
    assert_ok(
        retention_store_remove_jobs(test.store, &old, 1, now_us() - 30 * DAY_US, &removed, &err));
    assert_int_equal(removed.jobs, 1);
    assert_int_equal(removed.events, 1);
    assert_false(is_there(&old));
    assert_true(is_there(&active));
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM job_events"), 1);
    assert_ok(retention_store_get(test.store, &row, &err));
    assert_true(row.events_upto == seq);
}

static void ids_of_active_or_younger_jobs_are_not_obeyed(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct retention_removed removed = {.jobs = 99, .events = 99};
    static const char *const states[] = {
        "status = 'PENDING'", "status = 'PROCESSING_INPUTS'", "status = 'STAGING_INPUTS'",
        "status = 'STAGING_JOB'", "status = 'SUBMITTING_JOB'", "status = 'QUEUED'",
        "status = 'RUNNING'", "status = 'ARCHIVING'", "status = 'BLOCKED'", "status = 'PAUSED'",
        ENDED("FINISHED", 20),
        /* not a thing that happens, but it would not be enough */
        "status = 'RUNNING', ended_at = '2020-01-01'"};
    struct uuid ids[ARRAY_LEN(states)];
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        ids[i] = an_old_job(50, states[i]);
    assert_ok(retention_store_remove_jobs(test.store, ids, ARRAY_LEN(ids), now_us() - 30 * DAY_US,
                                          &removed, &err));
    assert_int_equal(removed.jobs, 0);
    assert_int_equal(removed.events, 0);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        assert_true(is_there(&ids[i]));
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM job_events"), ARRAY_LEN(ids));
}

static void many_go_in_batches_from_the_oldest_on(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid ids[RETENTION_AT_ONCE];
    for (int i = 0; i < RETENTION_AT_ONCE + 10; i++)
        (void)an_old_job(50, ENDED("FAILED", 45));
    size_t count = find(RETENTION_OF_FAILED, 30, ids);
    assert_int_equal(count, RETENTION_AT_ONCE);
    struct retention_removed removed = {0};
    assert_ok(retention_store_remove_jobs(test.store, ids, count, now_us() - 30 * DAY_US, &removed,
                                          &err));
    assert_int_equal(removed.jobs, RETENTION_AT_ONCE);
    assert_int_equal(find(RETENTION_OF_FAILED, 30, ids), 10);
}

static void rows_that_are_no_jobs_go_by_their_own_age(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint64_t rows = 0;
    uint64_t counted = 0;
    test_db_run(&test, "INSERT INTO audit_log (id, at, action, method, subject, address, "
                       "request_id, outcome, status, code, detail) VALUES "
                       "(0x0001, '2020-01-01', 'a', 'PUT', '', '', '', 'done', 200, 0, ''), "
                       "(0x0002, '2020-01-01', 'a', 'PUT', '', '', '', 'done', 200, 0, ''), "
                       "(0x0003, UTC_TIMESTAMP(6), 'a', 'PUT', '', '', '', 'done', 200, 0, '')");
    assert_ok(
        retention_store_count(test.store, RETENTION_OF_AUDIT, now_us() - DAY_US, &counted, &err));
    assert_int_equal(counted, 2);
    assert_ok(
        retention_store_remove(test.store, RETENTION_OF_AUDIT, now_us() - DAY_US, 1, &rows, &err));
    assert_int_equal(rows, 1);
    assert_ok(
        retention_store_remove(test.store, RETENTION_OF_AUDIT, now_us() - DAY_US, 10, &rows, &err));
    assert_int_equal(rows, 1);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM audit_log"), 1);
}

#define DEAD_ROW(id, state)                                                                        \
    "(" id ", UNHEX(SHA2('" id "', 256)), 'dead', 'acme', '" state "', 'r', '', '', '', '', '', "  \
    "'', 1, 1, 1, 1, '', '2020-01-01', '2020-01-01')"

static void dead_messages_that_nobody_has_looked_at_stay(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint64_t rows = 0;
    test_db_run(
        &test,
        "INSERT INTO dead_messages (id, digest, source, tenant, state, reason, "
        "exchange_name, queue_name, routing_key, message_id, content_type, traceparent, "
        "death_count, delivery_count, epoch, size_bytes, body, created_at, seen_at) "
        "VALUES " DEAD_ROW("0x0001", "open") ", " DEAD_ROW("0x0002", "settled") ", " DEAD_ROW(
            "0x0003", "replayed") ", " DEAD_ROW("0x0004", "discarded") ", " DEAD_ROW("0x0005",
                                                                                     "replaying"));
    assert_ok(
        retention_store_remove(test.store, RETENTION_OF_DEAD, now_us() - DAY_US, 10, &rows, &err));
    assert_int_equal(rows, 3);
    assert_ok(
        retention_store_remove(test.store, RETENTION_OF_OPEN, now_us() - DAY_US, 10, &rows, &err));
    assert_int_equal(rows, 1);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM dead_messages"), 1);
}

static void a_worker_that_is_live_or_owns_a_job_stays(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint64_t rows = 0;
    test_db_run(&test, "INSERT INTO workers (id, tenant, queue, name, host, boot_id, pid, version, "
                       "slots, state, started_at, beat_at) VALUES "
                       "(0x0001, 'acme', 'q', 'w', 'h', '', 1, '', 1, 'dead', '2020-01-01', "
                       "'2020-01-01'), (0x0002, 'acme', 'q', 'w', 'h', '', 1, '', 1, 'live', "
                       "'2020-01-01', '2020-01-01'), (0x0003, 'acme', 'q', 'w', 'h', '', 1, '', 1, "
                       "'dead', '2020-01-01', '2020-01-01')");
    (void)an_old_job(50, "status = 'RUNNING', owner_worker = 0x00030000000000000000000000000000");
    assert_ok(retention_store_remove(test.store, RETENTION_OF_WORKERS, now_us() - DAY_US, 10, &rows,
                                     &err));
    assert_int_equal(rows, 1);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM workers"), 2);
}

static void one_leads_until_it_is_silent(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid a = uuid_v7();
    struct uuid b = uuid_v7();
    assert_ok(retention_store_lead(test.store, &a, 60000, &err));
    assert_ok(retention_store_lead(test.store, &a, 60000, &err));
    assert_int_equal(retention_store_lead(test.store, &b, 60000, &err), ERR_IN_USE);
    assert_int_equal(retention_store_begun(test.store, &b, &err), ERR_IN_USE);
    test_db_run(&test, "UPDATE retention SET renewed_at = renewed_at - INTERVAL 61 SECOND");
    assert_ok(retention_store_lead(test.store, &b, 60000, &err));
    assert_int_equal(retention_store_lead(test.store, &a, 60000, &err), ERR_IN_USE);
    assert_ok(retention_store_done(test.store, &b, true, &err));
    assert_ok(retention_store_lead(test.store, &a, 60000, &err));
    assert_ok(retention_store_done(test.store, &a, false, &err));
}

static void sizes_of_the_tables_are_told(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct table_size sizes[TABLE_SIZES_MAX];
    size_t count = 0;
    assert_ok(retention_store_sizes(test.store, sizes, &count, &err));
    assert_int_equal(count, 9);
    assert_string_equal(sizes[0].table, "audit_log");
    assert_true(sizes[0].bytes > 0);
}

static void processes_come_and_go(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct process_row *rows = NULL;
    size_t count = 0;
    struct process_row row = {.id = uuid_v7(),
                              .service = "sluice-web",
                              .host = "here",
                              .pid = 7,
                              .version = "1.2",
                              .schema = 9};
    assert_ok(process_store_seen(test.store, &row, &err));
    assert_ok(process_store_seen(test.store, &row, &err));
    assert_ok(process_store_list(test.store, 60000, &rows, &count, &err));
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].version, "1.2");
    assert_int_equal(rows[0].schema, 9);
    free(rows);
    rows = NULL;
    test_db_run(&test, "UPDATE processes SET seen_at = seen_at - INTERVAL 61 SECOND");
    assert_ok(process_store_list(test.store, 60000, &rows, &count, &err));
    assert_int_equal(count, 0);
    free(rows);
    assert_ok(process_store_gone(test.store, &row.id, &err));
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM processes"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_SETUP(only_what_ended_long_ago_in_the_state_is_found, start_empty),
        TEST_SETUP(a_job_goes_with_its_history_and_the_mark_says_how_far, start_empty),
        TEST_SETUP(ids_of_active_or_younger_jobs_are_not_obeyed, start_empty),
        TEST_SETUP(many_go_in_batches_from_the_oldest_on, start_empty),
        TEST(rows_that_are_no_jobs_go_by_their_own_age),
        TEST(dead_messages_that_nobody_has_looked_at_stay),
        TEST(a_worker_that_is_live_or_owns_a_job_stays),
        TEST(one_leads_until_it_is_silent),
        TEST(sizes_of_the_tables_are_told),
        TEST(processes_come_and_go),
    };
    test_db_open(&test);
    int failed = cmocka_run_group_tests_name("store_retention", tests, NULL, NULL);
    test_db_close(&test);
    return failed;
}
