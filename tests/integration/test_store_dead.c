/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/store/dead_store.h"

/* Dead messages: one row for each, what the reader did, what people do. */

static struct test_db test;

static const char garbage[] = "\xff\x00\x01 not json";

static struct dead_message a_message(void)
{
    struct dead_message message = {.id = uuid_v7(),
                                   .source = DEAD_LETTER,
                                   .tenant = "acme",
                                   .reason = "rejected",
                                   .exchange_name = "sluice.submit",
                                   .queue_name = "sluice.acme.submit.default",
                                   .routing_key = "sluice.acme.submit.default",
                                   .message_id = "m-1",
                                   .content_type = "text/plain",
                                   .death_count = 1,
                                   .died_us = 1700000000000000,
                                   .size_bytes = sizeof(garbage)};
    return message;
}

static struct dead_arrived put(const struct dead_message *message, uint8_t digest, bool redelivered)
{
    struct dead_arrival arrival = {.message = message,
                                   .digest = {digest},
                                   .body = {garbage, sizeof(garbage)},
                                   .redelivered = redelivered};
    struct dead_arrived arrived;
    struct err err = {0};
    assert_ok(dead_store_put(test.store, &arrival, &arrived, &err));
    return arrived;
}

static struct dead_message get(const struct uuid *id)
{
    struct dead_message message = {0};
    struct err err = {0};
    assert_ok(dead_store_get(test.store, "acme", id, &message, &err));
    return message;
}

static enum dead_state state_of_row(const struct uuid *id)
{
    DEAD_MESSAGE_AUTO struct dead_message message = get(id);
    return message.state;
}

static void a_message_is_kept_byte_for_byte_with_where_it_came_from(void **unused)
{
    (void)unused;
    struct dead_message sent = a_message();
    struct dead_arrived arrived = put(&sent, 1, false);
    assert_true(arrived.is_new);
    DEAD_MESSAGE_AUTO struct dead_message row = get(&arrived.id);
    assert_int_equal(row.kept_bytes, sizeof(garbage));
    assert_memory_equal(row.body, garbage, sizeof(garbage));
    assert_string_equal(row.reason, "rejected");
    assert_string_equal(row.queue_name, sent.queue_name);
    assert_string_equal(row.routing_key, sent.routing_key);
    assert_int_equal(row.died_us, sent.died_us);
    assert_int_equal(row.state, DEAD_OPEN);
    assert_int_equal(row.outcome, DEAD_NO_OUTCOME);
    assert_false(row.has_job);
}

static void another_tenant_finds_nothing(void **unused)
{
    (void)unused;
    struct dead_message sent = a_message();
    struct dead_message row = {0};
    struct err err = {0};
    uint32_t replay = 0;
    struct dead_arrived arrived = put(&sent, 2, false);
    assert_int_equal(dead_store_get(test.store, "other", &arrived.id, &row, &err), ERR_NOT_FOUND);
    err_clear(&err);
    assert_int_equal(
        dead_store_replay_begin(test.store, "other", &arrived.id, "eve", &replay, &err),
        ERR_NOT_FOUND);
    err_clear(&err);
    assert_int_equal(dead_store_discard(test.store, "other", &arrived.id, "eve", &err),
                     ERR_NOT_FOUND);
}

static void the_same_message_twice_is_one_row(void **unused)
{
    (void)unused;
    struct dead_message first = a_message();
    struct dead_message second = a_message();
    struct dead_arrived one = put(&first, 3, false);
    struct dead_arrived two = put(&second, 3, true);
    assert_false(two.is_new);
    assert_true(uuid_eq(&one.id, &two.id));
    DEAD_MESSAGE_AUTO struct dead_message row = get(&one.id);
    assert_int_equal(row.seen, 1);
    (void)put(&second, 3, false);
    DEAD_MESSAGE_AUTO struct dead_message again = get(&one.id);
    assert_int_equal(again.seen, 2);
}

static void what_the_reader_did_decides_what_is_left_to_do(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct dead_message sent = a_message();
    struct dead_arrived arrived = put(&sent, 4, false);
    assert_ok(dead_store_settle(test.store, &arrived.id, DEAD_KEPT, "who knows", &err));
    assert_int_equal(state_of_row(&arrived.id), DEAD_OPEN);
    assert_ok(dead_store_settle(test.store, &arrived.id, DEAD_JOB_BLOCKED, "it waits", &err));
    assert_int_equal(state_of_row(&arrived.id), DEAD_SETTLED);
    assert_ok(dead_store_settle(test.store, &arrived.id, DEAD_LEFT_ALONE, "nothing to do", &err));
    DEAD_MESSAGE_AUTO struct dead_message row = get(&arrived.id);
    assert_int_equal(row.outcome, DEAD_JOB_BLOCKED);
    assert_string_equal(row.detail, "it waits");
}

static void a_row_is_replayed_by_one_at_a_time(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint32_t first = 0;
    uint32_t second = 0;
    struct dead_message sent = a_message();
    struct dead_arrived arrived = put(&sent, 5, false);
    assert_ok(dead_store_replay_begin(test.store, "acme", &arrived.id, "olga", &first, &err));
    assert_int_equal(
        dead_store_replay_begin(test.store, "acme", &arrived.id, "omar", &second, &err), ERR_STATE);
    err_clear(&err);
    assert_int_equal(dead_store_discard(test.store, "acme", &arrived.id, "omar", &err), ERR_STATE);
    err_clear(&err);
    assert_ok(dead_store_replay_end(test.store, &arrived.id, first, false, &err));
    assert_int_equal(state_of_row(&arrived.id), DEAD_OPEN);
    assert_ok(dead_store_replay_begin(test.store, "acme", &arrived.id, "omar", &second, &err));
    assert_int_equal(second, first + 1);
    assert_ok(dead_store_replay_end(test.store, &arrived.id, first, true, &err));
    assert_int_equal(state_of_row(&arrived.id), DEAD_REPLAYING);
    assert_ok(dead_store_replay_end(test.store, &arrived.id, second, true, &err));
    DEAD_MESSAGE_AUTO struct dead_message row = get(&arrived.id);
    assert_int_equal(row.state, DEAD_REPLAYED);
    assert_string_equal(row.acted_by, "omar");
}

static void whoever_began_a_replay_and_died_holds_nobody_up_for_long(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint32_t replay = 0;
    struct dead_message sent = a_message();
    struct dead_arrived arrived = put(&sent, 6, false);
    assert_ok(dead_store_replay_begin(test.store, "acme", &arrived.id, "olga", &replay, &err));
    test_db_run(&test, "UPDATE dead_messages SET acted_at = acted_at - INTERVAL 61 SECOND "
                       "WHERE state = 'replaying'");
    assert_ok(dead_store_replay_begin(test.store, "acme", &arrived.id, "omar", &replay, &err));
    assert_int_equal(replay, 2);
}

static void a_discarded_message_is_opened_when_it_is_published_once_more(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint32_t replay = 0;
    struct dead_message sent = a_message();
    struct dead_arrived arrived = put(&sent, 7, false);
    assert_ok(dead_store_discard(test.store, "acme", &arrived.id, "olga", &err));
    assert_ok(dead_store_discard(test.store, "acme", &arrived.id, "olga", &err));
    assert_int_equal(
        dead_store_replay_begin(test.store, "acme", &arrived.id, "olga", &replay, &err), ERR_STATE);
    err_clear(&err);
    (void)put(&sent, 7, true);
    assert_int_equal(state_of_row(&arrived.id), DEAD_DISCARDED);
    (void)put(&sent, 7, false);
    assert_int_equal(state_of_row(&arrived.id), DEAD_OPEN);
}

static void lists_are_paged_newest_first(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct dead_list page = {0};
    struct uuid ids[5];
    test_db_run(&test, "DELETE FROM dead_messages");
    for (uint8_t i = 0; i < 5; i++) {
        struct dead_message sent = a_message();
        ids[i] = put(&sent, (uint8_t)(20 + i), false).id;
    }
    assert_ok(dead_store_discard(test.store, "acme", &ids[4], "olga", &err));
    struct dead_query query = {.tenant = "acme", .limit = 3};
    assert_ok(dead_store_list(test.store, &query, &page, &err));
    assert_int_equal(page.count, 3);
    assert_true(page.more);
    assert_true(uuid_eq(&page.items[0].id, &ids[4]));
    free(page.items);
    query = (struct dead_query){
        .tenant = "acme", .limit = 3, .has_state = true, .state = DEAD_OPEN, .after = &ids[2]};
    assert_ok(dead_store_list(test.store, &query, &page, &err));
    assert_int_equal(page.count, 2);
    assert_false(page.more);
    assert_true(uuid_eq(&page.items[1].id, &ids[0]));
    free(page.items);
    uint64_t open = 0;
    assert_ok(dead_store_count_open(test.store, &open, &err));
    assert_int_equal(open, 4);
}

static void a_job_that_waits_for_a_dead_letter_ends_once(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_ok(job_store_dead_letter(test.store, job, "given up", &err));
    AUTO(job_free) struct job *after = test_job(test.store, &id);
    assert_int_equal(after->status, JOB_FAILED);
    assert_int_equal(after->condition, JOB_COND_DEAD_LETTERED);
    assert_string_equal(after->reason, "given up");
    assert_true(after->ended_us > 0);
    assert_int_equal(job_store_dead_letter(test.store, job, "given up", &err), ERR_CONFLICT);
    assert_int_equal(
        test_db_number(&test, "SELECT COUNT(*) FROM job_events WHERE kind = 'dead-lettered'"), 1);
}

static void a_job_that_was_claimed_since_is_left_alone(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    (void)test_claim(test.store, &id, JOB_RUNNING);
    assert_int_equal(job_store_dead_letter(test.store, job, "given up", &err), ERR_CONFLICT);
    assert_int_equal(test_state(test.store, &id), JOB_RUNNING);
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
    store_thread_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_message_is_kept_byte_for_byte_with_where_it_came_from),
        TEST(another_tenant_finds_nothing),
        TEST(the_same_message_twice_is_one_row),
        TEST(what_the_reader_did_decides_what_is_left_to_do),
        TEST(a_row_is_replayed_by_one_at_a_time),
        TEST(whoever_began_a_replay_and_died_holds_nobody_up_for_long),
        TEST(a_discarded_message_is_opened_when_it_is_published_once_more),
        TEST(lists_are_paged_newest_first),
        TEST(a_job_that_waits_for_a_dead_letter_ends_once),
        TEST(a_job_that_was_claimed_since_is_left_alone),
    };
    return cmocka_run_group_tests(tests, open_test, close_test);
}
