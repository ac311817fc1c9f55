/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/store/hook_send.h"

/* What the sender of webhooks does to the log of deliveries. */

static struct test_db test;
static struct hook_lead lead;

static int start_leading(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct hook_sender now;
    test_db_run(&test, "DELETE FROM webhook_deliveries");
    assert_ok(hook_sender_look(test.store, &now, &err));
    lead.holder = uuid_v7();
    assert_ok(hook_lead_take(test.store, &now, &lead, &err));
    return 0;
}

#define HOOK "X'11111111111111111111111111111111'"
#define OF_JOBS(from, to)                                                                          \
    "(WITH RECURSIVE jobs_of(n) AS (SELECT " #from " UNION ALL SELECT n + 1 FROM jobs_of WHERE n " \
    "< " #to ") SELECT n FROM jobs_of) j"
/* One delivery of each of these jobs. */
#define DELIVERIES(of, state, number)                                                              \
    "INSERT INTO webhook_deliveries (id, subscription_id, tenant, job_id, seq, event, lane, "      \
    "state, body, created_at, since, next_at) SELECT UNHEX(MD5(CONCAT(j.n, '-" #number             \
    "'))), " HOOK ", 'acme', UNHEX(LPAD(HEX(j.n), 32, '0')), j.n * 10 + " #number                  \
    ", 'FINISHED', " HOOK ", '" state "', '{}', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), "              \
    "UTC_TIMESTAMP(6) FROM " of

static uint64_t count_in(const char *state)
{
    char text[120];
    (void)snprintf(text, sizeof(text), "SELECT COUNT(*) FROM webhook_deliveries WHERE state = '%s'",
                   state);
    return test_db_number(&test, text);
}

/* The sender hears of a subscription that is gone by what is due to it alone. */
static void nothing_that_was_held_outlives_its_subscription(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid hook;
    memset(hook.bytes, 0x11, sizeof(hook.bytes));
    test_db_run(&test, DELIVERIES(OF_JOBS(1, 250), "due", 1));
    test_db_run(&test, DELIVERIES(OF_JOBS(1, 250), "held", 2));
    test_db_run(&test, DELIVERIES(OF_JOBS(1, 1), "held", 3));
    for (int i = 0; i < 10 && count_in("due") > 0; i++)
        assert_ok(hook_drop(test.store, &lead, &hook, &err));
    assert_int_equal(count_in("due"), 0);
    assert_int_equal(count_in("held"), 0);
    assert_int_equal(count_in("dropped"), 501);
}

#define EVENTS 300
#define HOOKS 20

static void compose(const struct hook_event *event, const struct uuid *delivery, struct buf *body)
{
    (void)event;
    (void)delivery;
    buf_add_text(body, "{}");
}

/* EVENTS of one job, each for HOOKS subscriptions. */
static void make_wanted_events(void)
{
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    test_db_run(&test,
                "INSERT INTO subscriptions (id, tenant, job_id, name, owner, url, states, "
                "lane, after_seq, created_at, updated_at) SELECT UNHEX(MD5(j.n)), 'acme', "
                "UNHEX(LPAD('', 32, '0')), j.n, 'ann', 'http://a/', 'RUNNING', "
                "UNHEX(MD5(j.n)), 0, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM " OF_JOBS(1, 20));
    test_db_run(&test, "INSERT INTO job_events (job_id, tenant, at, kind, from_status, to_status, "
                       "epoch, fence) SELECT s.id, 'acme', UTC_TIMESTAMP(6), 'moved', 'PENDING', "
                       "'RUNNING', 1, 1 FROM jobs s, " OF_JOBS(1, 300));
}

/* *ret_idle: events that were read and not used. */
static void fan_out_once(struct hook_fan_out *out, uint64_t *ret_made, uint64_t *ret_idle)
{
    struct err err = {0};
    uint64_t from = out->seq;
    uint64_t asked = out->span;
    assert_ok(hook_fan_out(test.store, &lead, out, &err));
    *ret_made += out->deliveries;
    *ret_idle += asked - (out->seq - from);
}

static void events_that_many_want_are_read_once(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct hook_sender now;
    uint64_t made = 0;
    uint64_t idle = 0;
    make_wanted_events();
    assert_ok(hook_sender_look(test.store, &now, &err));
    struct hook_fan_out out = {.compose = compose, .seq = now.seq, .span = EVENTS};
    out.upto = test_db_number(&test, "SELECT MAX(seq) FROM job_events");
    while (out.seq < out.upto)
        fan_out_once(&out, &made, &idle);
    assert_int_equal(made, EVENTS * HOOKS);
    assert_int_equal(count_in("due"), HOOKS);
    assert_int_equal(count_in("held"), (EVENTS - 1) * HOOKS);
    assert_true(idle <= UINT64_C(2) * EVENTS); /* with 12 at a time and no memory: 3600 */
}

/* 1000 jobs that are gone, and one that is not, of eight subscriptions each. */
static void subscriptions_go_with_their_jobs_some_at_a_time(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    struct uuid after = {{0}};
    bool more = true;
    int looks = 0;
    test_db_run(&test, "DELETE FROM subscriptions");
    test_db_run(&test, "DELETE FROM jobs");
    assert_ok(job_store_submit(test.store, &job, &done, &err));
#define OF_JOB(job_id)                                                                             \
    "INSERT INTO subscriptions (id, tenant, job_id, owner, url, states, lane, after_seq, "         \
    "created_at, updated_at) SELECT UNHEX(MD5(CONCAT(j.n, h.n, HEX(" job_id                        \
    ")))), 'acme', " job_id ", 'ann', 'http://a/', 'FINISHED', UNHEX(MD5(j.n)), 0, "               \
    "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM "
#define EIGHT                                                                                      \
    "(SELECT 1 AS n UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 "   \
    "UNION SELECT 7 UNION SELECT 8) h"
    test_db_run(&test, OF_JOB("UNHEX(LPAD(HEX(j.n), 32, '0'))") EIGHT ", " OF_JOBS(1, 1000));
    test_db_run(&test, OF_JOB("(SELECT MAX(id) FROM jobs)") EIGHT ", " OF_JOBS(1, 1));
    for (; more; looks++)
        assert_ok(hook_forget(test.store, &lead, 1, &after, &more, &err));
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM subscriptions"), 8);
    assert_in_range(looks, 16, 18);
}

/* The sender was away for longer than its log is kept. */
static void a_subscription_whose_events_were_not_seen_yet_stays(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    struct uuid after = {{0}};
    bool more = true;
    test_db_run(&test, "DELETE FROM subscriptions");
    test_db_run(&test, "DELETE FROM jobs");
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    test_db_run(&test, "UPDATE jobs SET ended_at = UTC_TIMESTAMP(6) - INTERVAL 2 HOUR");
    test_db_run(&test, OF_JOB("(SELECT MAX(id) FROM jobs)") EIGHT ", " OF_JOBS(1, 1));
    assert_ok(hook_forget(test.store, &lead, 1, &after, &more, &err));
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM subscriptions"), 8);
    test_db_run(&test, "UPDATE webhook_sender SET seq = (SELECT MAX(seq) FROM job_events)");
    assert_ok(hook_forget(test.store, &lead, 1, &after, &more, &err));
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM subscriptions"), 0);
}

static void a_rotation_whose_answer_was_lost_keeps_the_old_secret(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint8_t old[HOOK_SEED_SIZE] = {1};
    uint8_t fresh[HOOK_SEED_SIZE] = {2};
    bool made = false;
    struct subscription hook = {
        .id = uuid_v7(), .tenant = "acme", .name = "x", .url = "http://a/", .states = 1};
    assert_ok(hook_store_put(test.store, &hook, 0, old, &made, &err));
    assert_ok(hook_store_rotate(test.store, "acme", "x", fresh, 60, &err));
    assert_ok(hook_store_rotate(test.store, "acme", "x", fresh, 60, &err)); /* as the store does */
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM subscriptions WHERE name = 'x' "
                                           "AND ORD(old_seed) = 1 AND ORD(seed) = 2"),
                     1);
}

/* The sender may be behind when it is enabled again. */
static void what_happens_while_it_is_disabled_is_never_told(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    struct hook_sender now;
    uint8_t seed[HOOK_SEED_SIZE] = {1};
    bool made = false;
    struct subscription hook = {
        .id = uuid_v7(), .tenant = "acme", .name = "rest", .url = "http://a/"};
    hook.states = hook_states_parse("PENDING");
    test_db_run(&test, "DELETE FROM subscriptions");
    assert_ok(hook_store_put(test.store, &hook, 0, seed, &made, &err));
    assert_ok(hook_store_enable(test.store, "acme", "rest", false, &err));
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    assert_ok(hook_store_enable(test.store, "acme", "rest", true, &err));
    job = test_job_new();
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    assert_ok(hook_store_enable(test.store, "acme", "rest", true, &err)); /* it is already */
    assert_ok(hook_sender_look(test.store, &now, &err));
    struct hook_fan_out out = {.compose = compose, .seq = now.seq};
    out.upto = test_db_number(&test, "SELECT MAX(seq) FROM job_events");
    assert_ok(hook_fan_out(test.store, &lead, &out, &err));
    assert_int_equal(out.seq, out.upto);
    assert_int_equal(out.deliveries, 1);
}

#define NAME_IT                                                                                    \
    "INSERT INTO subscriptions (id, tenant, job_id, name, owner, url, states, lane, after_seq, "   \
    "created_at, updated_at) VALUES (" HOOK ", 'acme', UNHEX(LPAD('', 32, '0')), 'pause', 'ann', " \
    "'http://a/', 'PENDING', " HOOK ", 0, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"

/* It may be enabled again before any of it comes to its turn. */
static void what_waited_when_it_was_disabled_is_never_told(void **unused)
{
    (void)unused;
    struct err err = {0};
    test_db_run(&test, "DELETE FROM subscriptions");
    test_db_run(&test, NAME_IT);
    test_db_run(&test, DELIVERIES(OF_JOBS(1, 600), "due", 1));
    test_db_run(&test, DELIVERIES(OF_JOBS(1, 600), "held", 2));
    test_db_run(&test, "UPDATE webhook_deliveries SET next_at = next_at + INTERVAL 1 HOUR");
    assert_ok(hook_store_enable(test.store, "acme", "pause", false, &err));
    assert_int_equal(count_in("dropped"), 1200);
    test_db_run(&test, DELIVERIES(OF_JOBS(601, 601), "due", 1)); /* as if it were left over */
    test_db_run(&test, DELIVERIES(OF_JOBS(601, 601), "held", 2));
    assert_ok(hook_store_enable(test.store, "acme", "pause", true, &err));
    assert_int_equal(count_in("dropped"), 1202);
    test_db_run(&test, DELIVERIES(OF_JOBS(602, 602), "due", 1));
    assert_ok(hook_store_enable(test.store, "acme", "pause", true, &err)); /* it is already */
    assert_int_equal(count_in("due"), 1);
    assert_int_equal(hook_store_enable(test.store, "acme", "none", true, &err), ERR_NOT_FOUND);
}

/* All pages of those in this state, with stretches of so many rows; the number of the pages. */
static int read_pages(const char *state, uint32_t stretch, uint32_t look_ms, size_t *ret_found)
{
    struct err err = {0};
    struct uuid after = {{0}};
    struct delivery_query query = {
        .tenant = "acme", .state = state, .limit = 3, .stretch = stretch, .look_ms = look_ms};
    struct delivery_list page = {.more = true};
    int pages = 0;
    *ret_found = 0;
    for (; page.more; pages++) {
        assert_ok(hook_log_list(test.store, &query, &page, &err));
        for (size_t i = 0; i < page.count; i++) {
            const struct uuid *id = &page.items[i].id;
            assert_string_equal(page.items[i].state, state);
            assert_true(*ret_found == 0 || memcmp(id, &after, sizeof(after)) < 0);
            after = *id;
            ++*ret_found;
        }
        free(page.items);
        after = page.last;
        query.after = &after;
    }
    return pages;
}

static void a_search_in_stretches_finds_each_delivery_once(void **unused)
{
    (void)unused;
    size_t found = 0;
    test_db_run(&test, DELIVERIES(OF_JOBS(1, 90), "delivered", 1));
    test_db_run(&test, DELIVERIES(OF_JOBS(1, 10), "dead", 2));
    for (uint32_t stretch = 0; stretch < 130; stretch += 9) {
        (void)read_pages("dead", stretch, 60000, &found);
        assert_int_equal(found, 10);
        (void)read_pages("dead", stretch, 0, &found);
        assert_int_equal(found, 10);
    }
    assert_int_equal(read_pages("held", 60000, 60000, &found), 1);
    assert_int_equal(found, 0);
    /* With no time at all, a page is one stretch. */
    assert_int_equal(read_pages("held", 10, 0, &found), 11);
    (void)read_pages("delivered", 10, 60000, &found);
    assert_int_equal(found, 90);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_SETUP(nothing_that_was_held_outlives_its_subscription, start_leading),
        TEST_SETUP(events_that_many_want_are_read_once, start_leading),
        TEST_SETUP(subscriptions_go_with_their_jobs_some_at_a_time, start_leading),
        TEST_SETUP(a_subscription_whose_events_were_not_seen_yet_stays, start_leading),
        TEST_SETUP(a_rotation_whose_answer_was_lost_keeps_the_old_secret, start_leading),
        TEST_SETUP(what_happens_while_it_is_disabled_is_never_told, start_leading),
        TEST_SETUP(a_search_in_stretches_finds_each_delivery_once, start_leading),
        TEST_SETUP(what_waited_when_it_was_disabled_is_never_told, start_leading),
    };
    test_db_open(&test);
    int failed = cmocka_run_group_tests_name("store_hooks", tests, NULL, NULL);
    test_db_close(&test);
    return failed;
}
