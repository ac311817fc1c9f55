/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/store/lost_store.h"
#include "common/store/reconcile_store.h"

/* What the leader of a tenant's recovery writes: batches of a release, the end of patience,
 * repairs; and that an old leader writes nothing. */

#define JOBS 150

static struct test_db test;
static const struct recovery_verdict clear = {.tests = 1, .result = "clear", .next_ms = 1000};
static const struct recovery_verdict not_yet = {
    .tests = 1, .tries = 1, .result = "not yet", .detail = "refused", .next_ms = 5000};

static struct recovery_lead lead_now(void)
{
    struct err err = {0};
    struct recovery_lead lead = {.tenant = "acme", .holder = uuid_v7()};
    assert_ok(recovery_lead_take(test.store, &lead, &err));
    return lead;
}

static struct uuid block_unowned(const struct uuid *id, const char *params)
{
    struct err err = {0};
    struct uuid recovery = {0};
    struct job_block block = {.condition = JOB_COND_CONNECTION_FAILED,
                              .tester = "tcp_connect",
                              .params = params,
                              .policy = "constant every=1s",
                              .detail = "connection refused"};
    assert_ok(job_store_block_unowned(test.store, id, 1, &block, &recovery, &err));
    return recovery;
}

static struct uuid block_many(struct uuid *ids, size_t count, const char *params)
{
    struct uuid recovery = {0};
    for (size_t i = 0; i < count; i++) {
        ids[i] = test_submit(test.store);
        recovery = block_unowned(&ids[i], params);
    }
    return recovery;
}

static void each_new_leader_has_a_greater_number_and_the_old_one_writes_nothing(void **unused)
{
    (void)unused;
    struct err err = {0};
    bool gone = false;
    struct recovery_done done;
    struct recovery recovery;
    struct uuid id = test_submit(test.store);
    struct uuid cause = block_unowned(&id, "{\"host\":\"old\"}");
    struct recovery_lead old = lead_now();
    struct recovery_lead lead = lead_now();
    assert_true(lead.fencing > old.fencing);
    assert_ok(recovery_lead_renew(test.store, &lead, &err));
    assert_code(recovery_lead_renew(test.store, &old, &err), ERR_FENCED);
    err_clear(&err);
    assert_code(recovery_store_tested(test.store, &old, &cause, &not_yet, &gone, &err), ERR_FENCED);
    err_clear(&err);
    const struct recovery_batch all = {.id = cause, .limit = 10};
    assert_code(recovery_store_release(test.store, &old, &all, &clear, &done, &err), ERR_FENCED);
    err_clear(&err);
    assert_code(recovery_store_give_up(test.store, &old, &all, &clear, &done, &err), ERR_FENCED);
    err_clear(&err);
    assert_int_equal(test_state(test.store, &id), JOB_BLOCKED);
    assert_ok(recovery_store_get(test.store, "acme", &cause, &recovery, &err));
    assert_int_equal(recovery.tests, 0);
    assert_ok(recovery_store_tested(test.store, &lead, &cause, &not_yet, &gone, &err));
    assert_ok(recovery_store_get(test.store, "acme", &cause, &recovery, &err));
    assert_int_equal(recovery.tests, 1);
    assert_int_equal(recovery.tries, 1);
    assert_string_equal(recovery.last_detail, "refused");
    assert_in_range(recovery.next_in_us, 3000000, 5000000);
}

static void a_release_puts_jobs_back_where_they_were_in_the_order_of_submission(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct recovery_lead lead = lead_now();
    struct uuid ids[JOBS];
    struct recovery_done done;
    struct recovery recovery;
    struct uuid cause = block_many(ids, JOBS, "{\"host\":\"many\"}");
    struct recovery_batch batch = {.id = cause, .limit = 100, .ramp = 128, .detail = "clear"};
    assert_ok(recovery_store_release(test.store, &lead, &batch, &clear, &done, &err));
    assert_int_equal(done.jobs, 100);
    assert_true(done.more);
    assert_false(done.gone);
    assert_int_equal(done.messages.count, 100);
    for (size_t i = 0; i < 100; i++) {
        assert_true(uuid_eq(&done.messages.items[i].job, &ids[i]));
        assert_int_equal(done.messages.items[i].epoch, 2);
    }
    free(done.messages.items);
    assert_int_equal(test_state(test.store, &ids[99]), JOB_PENDING);
    assert_int_equal(test_state(test.store, &ids[100]), JOB_BLOCKED);
    assert_ok(recovery_store_get(test.store, "acme", &cause, &recovery, &err));
    assert_int_equal(recovery.blocked, 50);
    assert_int_equal(recovery.ramp, 128);
    assert_int_equal(recovery.released, 100);
    assert_ok(recovery_store_release(test.store, &lead, &batch, &clear, &done, &err));
    assert_int_equal(done.jobs, 50);
    assert_false(done.more);
    assert_true(done.gone);
    free(done.messages.items);
    AUTO(job_free) struct job *job = test_job(test.store, &ids[JOBS - 1]);
    assert_int_equal(job->status, JOB_PENDING);
    assert_int_equal(job->epoch, 2);
    assert_int_equal(job->condition, JOB_COND_NONE);
    assert_string_equal(job->reason, "");
    assert_code(recovery_store_get(test.store, "acme", &cause, &recovery, &err), ERR_NOT_FOUND);
}

static void a_job_that_is_blocked_again_stops_the_ramp(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct recovery_lead lead = lead_now();
    struct uuid ids[3];
    struct recovery_done done;
    struct recovery recovery;
    struct uuid cause = block_many(ids, 3, "{\"host\":\"again\"}");
    struct recovery_batch batch = {.id = cause, .limit = 1, .ramp = 2};
    assert_ok(recovery_store_release(test.store, &lead, &batch, &clear, &done, &err));
    free(done.messages.items);
    struct uuid further = test_submit(test.store);
    struct uuid same = block_unowned(&further, "{\"host\":\"again\"}");
    assert_true(uuid_eq(&same, &cause));
    assert_ok(recovery_store_get(test.store, "acme", &cause, &recovery, &err));
    assert_int_equal(recovery.ramp, 0);
    assert_int_equal(recovery.blocked, 3);
}

static void giving_up_fails_the_jobs_and_keeps_the_first_condition(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct recovery_lead lead = lead_now();
    struct uuid ids[5];
    struct recovery_done done;
    struct uuid cause = block_many(ids, 5, "{\"host\":\"never\"}");
    struct recovery_batch batch = {
        .id = cause, .limit = 10, .detail = "gave up after 3 tests: refused"};
    assert_ok(recovery_store_give_up(test.store, &lead, &batch, &not_yet, &done, &err));
    assert_int_equal(done.jobs, 5);
    assert_true(done.gone);
    assert_int_equal(done.messages.count, 0);
    for (size_t i = 0; i < 5; i++) {
        AUTO(job_free) struct job *job = test_job(test.store, &ids[i]);
        assert_int_equal(job->status, JOB_FAILED);
        assert_int_equal(job->condition, JOB_COND_CONNECTION_FAILED);
        assert_string_equal(job->reason, "gave up after 3 tests: refused");
        assert_true(job->ended_us > 0);
    }
}

static void only_those_who_waited_long_enough_are_given_up(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct recovery_lead lead = lead_now();
    struct uuid ids[4];
    struct recovery_done done;
    struct uuid cause = block_many(ids, 4, "{\"host\":\"old and new\"}");
    test_db_run(&test, "UPDATE job_blocked SET blocked_at = blocked_at - INTERVAL 1 HOUR ORDER BY "
                       "job_id DESC LIMIT 1");
    struct recovery_batch batch = {.id = cause, .limit = 10, .waited_ms = 60000};
    assert_ok(recovery_store_give_up(test.store, &lead, &batch, &not_yet, &done, &err));
    assert_int_equal(done.jobs, 1);
    assert_false(done.gone);
    assert_int_equal(test_state(test.store, &ids[3]), JOB_FAILED);
    assert_int_equal(test_state(test.store, &ids[0]), JOB_BLOCKED);
}

static void an_operators_wish_counts_for_the_jobs_of_that_moment(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct recovery_lead lead = lead_now();
    struct uuid ids[2];
    struct recovery_done done;
    struct recovery recovery;
    struct uuid cause = block_many(ids, 2, "{\"host\":\"wish\"}");
    assert_ok(recovery_store_ask(test.store, "acme", &cause, "release", "olga", &err));
    assert_ok(recovery_store_ask(test.store, "acme", &cause, NULL, "otto", &err));
    struct uuid late = test_submit(test.store);
    (void)block_unowned(&late, "{\"host\":\"wish\"}");
    assert_ok(recovery_store_get(test.store, "acme", &cause, &recovery, &err));
    assert_string_equal(recovery.asked, "release");
    assert_string_equal(recovery.asked_by, "olga");
    assert_true(recovery.next_in_us <= 0);
    struct recovery_batch batch = {
        .id = cause, .limit = 10, .asked = true, .asked_us = recovery.asked_us, .actor = "olga"};
    assert_ok(recovery_store_release(test.store, &lead, &batch, &clear, &done, &err));
    free(done.messages.items);
    assert_int_equal(done.jobs, 2);
    assert_false(done.gone);
    assert_int_equal(test_state(test.store, &late), JOB_BLOCKED);
    assert_ok(recovery_store_get(test.store, "acme", &cause, &recovery, &err));
    assert_string_equal(recovery.asked, "");
    assert_code(recovery_store_ask(test.store, "other", &cause, NULL, "olga", &err), ERR_NOT_FOUND);
}

/* What the end of a test writes after somebody asked for something. */
static void end_of_test(const struct recovery_lead *lead, const struct recovery *before,
                        struct recovery *ret_after)
{
    struct err err = {0};
    bool gone = false;
    struct recovery_done done = {0};
    const struct recovery_verdict vain = {.tests = 1,
                                          .tries = 1,
                                          .result = "not yet",
                                          .detail = "refused",
                                          .next_ms = 3600000,
                                          .due_us = before->next_us};
    const struct recovery_batch patience = {.id = before->id, .limit = 10, .waited_ms = 3600000};
    assert_ok(recovery_store_tested(test.store, lead, &before->id, &vain, &gone, &err));
    assert_false(gone);
    assert_ok(recovery_store_give_up(test.store, lead, &patience, &not_yet, &done, &err));
    assert_int_equal(done.jobs, 0);
    assert_ok(recovery_store_get(test.store, "acme", &before->id, ret_after, &err));
}

static void a_wish_that_comes_during_a_test_is_due_when_it_ends(void **unused)
{
    (void)unused;
    static const char *const wishes[] = {"release", "fail", NULL};
    for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
        char params[40];
        struct err err = {0};
        struct uuid ids[2];
        struct recovery before;
        struct recovery after;
        struct recovery_lead lead = lead_now();
        (void)snprintf(params, sizeof(params), "{\"host\":\"during %zu\"}", i);
        struct uuid cause = block_many(ids, 2, params);
        test_db_run(&test, "UPDATE job_recovery SET next_at = next_at - INTERVAL 1 MINUTE");
        assert_ok(recovery_store_get(test.store, "acme", &cause, &before, &err));
        assert_ok(recovery_store_ask(test.store, "acme", &cause, wishes[i], "olga", &err));
        end_of_test(&lead, &before, &after);
        assert_string_equal(after.asked, wishes[i] ? wishes[i] : "");
        assert_true(after.next_in_us <= 0);
        assert_int_equal(test_state(test.store, &ids[0]), JOB_BLOCKED);
        if (wishes[i])
            continue;
        assert_ok(recovery_store_get(test.store, "acme", &cause, &before, &err));
        end_of_test(&lead, &before, &after); /* nobody asked during this one */
        assert_true(after.next_in_us > 60000000);
    }
}

static void a_wish_that_comes_during_a_test_is_obeyed_in_place_of_its_result(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid ids[2];
    struct recovery recovery;
    struct recovery_done done = {0};
    struct recovery_lead lead = lead_now();
    struct uuid cause = block_many(ids, 2, "{\"host\":\"in place\"}");
    assert_ok(recovery_store_ask(test.store, "acme", &cause, "release", "olga", &err));
    struct recovery_batch all = {.id = cause, .limit = 10};
    assert_ok(recovery_store_give_up(test.store, &lead, &all, &not_yet, &done, &err));
    assert_int_equal(done.jobs, 0);
    assert_false(done.gone);
    assert_ok(recovery_store_get(test.store, "acme", &cause, &recovery, &err));
    assert_string_equal(recovery.asked, "release");
    assert_true(recovery.next_in_us <= 0);
    struct recovery_batch other = {
        .id = cause, .limit = 10, .asked = true, .asked_us = recovery.asked_us - 1};
    assert_ok(recovery_store_release(test.store, &lead, &other, &clear, &done, &err));
    free(done.messages.items);
    assert_int_equal(done.jobs, 2);
    assert_true(done.gone);
}

static void the_jobs_of_a_cause_are_read_in_pages(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid ids[5];
    struct recovery recovery;
    struct recovery_job_list list = {0};
    struct recovery_page page = {.limit = 3};
    struct uuid cause = block_many(ids, 5, "{\"host\":\"pages\"}");
    assert_ok(recovery_store_get(test.store, "acme", &cause, &recovery, &err));
    assert_ok(recovery_store_jobs(test.store, &recovery, &page, &list, &err));
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0].owner, "ann");
    page.after = list.items[2].id;
    free(list.items);
    assert_ok(recovery_store_jobs(test.store, &recovery, &page, &list, &err));
    assert_int_equal(list.count, 2);
    assert_true(uuid_eq(&list.items[1].id, &ids[4]));
    free(list.items);
}

/* ---- repairs -------------------------------------------------------------------------------- */

static size_t repair_all(const struct recovery_lead *lead, enum stray_kind kind)
{
    struct err err = {0};
    struct stray_list list = {0};
    const struct stray_search search = {
        .tenant = "acme", .limit = 100, .owner_ms = 60000, .requeued_ms = 600000};
    size_t repaired = 0;
    assert_ok(reconcile_store_find(test.store, &search, &list, &err));
    for (size_t i = 0; i < list.count; i++) {
        bool done = false;
        assert_int_equal(list.items[i].kind, kind);
        assert_ok(reconcile_store_repair(test.store, lead, &list.items[i], &done, &err));
        repaired += done;
    }
    free(list.items);
    return repaired;
}

static void a_blocked_job_that_nothing_holds_goes_back_to_its_state(void **unused)
{
    (void)unused;
    struct recovery_lead lead = lead_now();
    struct uuid id = test_submit(test.store);
    (void)block_unowned(&id, "{\"host\":\"stray\"}");
    assert_int_equal(repair_all(&lead, STRAY_BLOCKED), 0);
    test_db_run(&test, "DELETE FROM job_blocked WHERE recovery_id IN (SELECT id FROM job_recovery "
                       "WHERE params LIKE '%stray%')");
    assert_int_equal(repair_all(&lead, STRAY_BLOCKED), 1);
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->status, JOB_PENDING);
    assert_int_equal(job->epoch, 2);
    assert_int_equal(repair_all(&lead, STRAY_BLOCKED), 0);
}

static void a_blocked_row_without_a_blocked_job_is_deleted(void **unused)
{
    (void)unused;
    struct recovery_lead lead = lead_now();
    struct uuid id = test_submit(test.store);
    (void)block_unowned(&id, "{\"host\":\"row\"}");
    test_db_run(&test, "UPDATE jobs SET status = 'CANCELLED' WHERE id IN (SELECT job_id FROM "
                       "job_blocked b JOIN job_recovery r ON r.id = b.recovery_id WHERE r.params "
                       "LIKE '%row%')");
    assert_int_equal(repair_all(&lead, STRAY_ROW), 1);
    assert_int_equal(repair_all(&lead, STRAY_ROW), 0);
}

static void a_job_whose_owner_died_long_ago_gets_one_new_message(void **unused)
{
    (void)unused;
    char sql[400];
    char text[UUID_TEXT_SIZE];
    struct recovery_lead lead = lead_now();
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_RUNNING);
    const char *worker = uuid_text(&hold.worker, text);
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO workers (id, tenant, queue, name, host, boot_id, pid, version, "
                   "slots, state, started_at, beat_at) VALUES (UNHEX(REPLACE('%s','-','')), "
                   "'acme', 'default', 'w', 'h', 'b', 1, '1', 1, 'dead', UTC_TIMESTAMP(6), "
                   "UTC_TIMESTAMP(6))",
                   worker);
    test_db_run(&test, sql);
    assert_int_equal(repair_all(&lead, STRAY_OWNED), 0);
    test_db_run(&test, "UPDATE workers SET beat_at = beat_at - INTERVAL 2 MINUTE");
    assert_int_equal(repair_all(&lead, STRAY_OWNED), 1);
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->status, JOB_RUNNING);
    assert_int_equal(job->epoch, 2);
    assert_true(job->has_owner);
    assert_int_equal(repair_all(&lead, STRAY_OWNED), 0);
}

/* ---- lost messages -------------------------------------------------------------------------- */

#define OLD_US INT64_C(60000000)

static struct lost_queue queue_now(const char *name)
{
    struct err err = {0};
    struct lost_queue found = {0};
    struct lost_queues queues = {0};
    const struct lost_look look = {.tenant = "acme"};
    assert_ok(lost_store_look(test.store, &look, &queues, &err));
    for (size_t i = 0; i < queues.count; i++) {
        if (strcmp(queues.items[i].name, name) == 0)
            found = queues.items[i];
    }
    free(queues.items);
    return found;
}

static size_t resend_old(const struct recovery_lead *lead, const char *queue)
{
    struct err err = {0};
    struct lost_jobs jobs = {0};
    struct outbox_list messages = {0};
    const struct lost_search search = {
        .tenant = "acme", .queue = queue, .age_us = OLD_US, .limit = LOST_AT_ONCE};
    assert_ok(lost_store_find(test.store, &search, &jobs, &err));
    const struct lost_resend resend = {
        .lead = lead, .jobs = jobs.items, .count = jobs.count, .age_us = OLD_US};
    if (jobs.count > 0)
        assert_ok(lost_store_resend(test.store, &resend, &messages, &err));
    free(jobs.items);
    free(messages.items);
    return messages.count;
}

static void a_job_whose_message_is_lost_gets_one_new_message(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct lost_jobs jobs = {0};
    struct outbox_list messages = {0};
    struct recovery_lead lead = lead_now();
    struct uuid id = test_submit(test.store);
    const struct lost_search search = {
        .tenant = "acme", .queue = "gone", .age_us = OLD_US, .limit = 1000};
    test_db_run(&test, "UPDATE jobs SET queue = 'gone', updated_at = updated_at - INTERVAL 2 "
                       "MINUTE ORDER BY id DESC LIMIT 1");
    assert_ok(lost_store_find(test.store, &search, &jobs, &err));
    assert_int_equal(jobs.count, 1);
    assert_true(uuid_eq(&jobs.items[0], &id));
    const struct lost_resend resend = {
        .lead = &lead, .jobs = jobs.items, .count = jobs.count, .age_us = OLD_US};
    assert_ok(lost_store_resend(test.store, &resend, &messages, &err));
    assert_int_equal(messages.count, 1);
    assert_true(uuid_eq(&messages.items[0].job, &id));
    assert_int_equal(messages.items[0].epoch, 2);
    assert_string_equal(messages.items[0].queue, "gone");
    free(messages.items);
    messages = (struct outbox_list){0};
    assert_ok(lost_store_resend(test.store, &resend, &messages, &err));
    assert_int_equal(messages.count, 0);
    free(messages.items);
    free(jobs.items);
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->epoch, 2);
    assert_int_equal(job->status, JOB_PENDING);
}

static void jobs_get_new_messages_in_the_order_of_their_last_ones(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid ids[3];
    struct lost_jobs jobs = {0};
    const struct lost_search search = {
        .tenant = "acme", .queue = "order", .age_us = OLD_US, .limit = 2};
    for (int i = 0; i < 3; i++) {
        ids[i] = test_submit(test.store);
        test_db_run(&test, "UPDATE jobs SET queue = 'order', updated_at = updated_at - INTERVAL 1 "
                           "HOUR ORDER BY id DESC LIMIT 1");
    }
    test_db_run(&test, "UPDATE jobs SET updated_at = updated_at + INTERVAL 30 MINUTE WHERE queue = "
                       "'order' ORDER BY id LIMIT 1"); /* it was sent again since */
    assert_ok(lost_store_find(test.store, &search, &jobs, &err));
    assert_int_equal(jobs.count, 2);
    assert_true(uuid_eq(&jobs.items[0], &ids[1]) && uuid_eq(&jobs.items[1], &ids[2]));
    free(jobs.items);
}

static void a_leader_that_was_replaced_sends_nothing_again(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct outbox_list messages = {0};
    struct recovery_lead old = lead_now();
    struct recovery_lead lead = lead_now();
    struct uuid id = test_submit(test.store);
    test_db_run(&test, "UPDATE jobs SET queue = 'fence', updated_at = updated_at - INTERVAL 2 "
                       "MINUTE ORDER BY id DESC LIMIT 1");
    const struct lost_resend resend = {.lead = &old, .jobs = &id, .count = 1, .age_us = OLD_US};
    assert_int_equal(lost_store_resend(test.store, &resend, &messages, &err), ERR_FENCED);
    assert_int_equal(resend_old(&lead, "fence"), 1);
    assert_int_equal(resend_old(&lead, "fence"), 0);
}

static void a_look_tells_what_waits_and_what_was_claimed(void **unused)
{
    (void)unused;
    struct uuid claimed = test_submit(test.store);
    struct uuid waiting = test_submit(test.store);
    test_db_run(&test, "UPDATE jobs SET queue = 'look' ORDER BY id DESC LIMIT 2");
    test_db_run(&test, "UPDATE outbox SET queue = 'look' ORDER BY id DESC LIMIT 2");
    struct lost_queue queue = queue_now("look");
    assert_int_equal(queue.waiting, 2);
    assert_int_equal(queue.unsent, 2);
    assert_true(queue.unsent_us > 0);
    assert_int_equal(queue.passed_us, 0);
    assert_int_equal(queue.claims_head, 0);
    (void)test_claim(test.store, &claimed, JOB_RUNNING);
    queue = queue_now("look");
    AUTO(job_free) struct job *of_claimed = test_job(test.store, &claimed);
    AUTO(job_free) struct job *of_waiting = test_job(test.store, &waiting);
    assert_int_equal(queue.waiting, 1);
    assert_int_equal(queue.passed_us, of_claimed->created_us);
    assert_int_equal(queue.oldest_us, of_waiting->updated_us);
    assert_true(queue.claims_head > 0);
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
        TEST(each_new_leader_has_a_greater_number_and_the_old_one_writes_nothing),
        TEST(a_release_puts_jobs_back_where_they_were_in_the_order_of_submission),
        TEST(a_job_that_is_blocked_again_stops_the_ramp),
        TEST(giving_up_fails_the_jobs_and_keeps_the_first_condition),
        TEST(only_those_who_waited_long_enough_are_given_up),
        TEST(an_operators_wish_counts_for_the_jobs_of_that_moment),
        TEST(a_wish_that_comes_during_a_test_is_due_when_it_ends),
        TEST(a_wish_that_comes_during_a_test_is_obeyed_in_place_of_its_result),
        TEST(the_jobs_of_a_cause_are_read_in_pages),
        TEST(a_blocked_job_that_nothing_holds_goes_back_to_its_state),
        TEST(a_blocked_row_without_a_blocked_job_is_deleted),
        TEST(a_job_whose_owner_died_long_ago_gets_one_new_message),
        TEST(a_job_whose_message_is_lost_gets_one_new_message),
        TEST(jobs_get_new_messages_in_the_order_of_their_last_ones),
        TEST(a_leader_that_was_replaced_sends_nothing_again),
        TEST(a_look_tells_what_waits_and_what_was_claimed),
    };
    return cmocka_run_group_tests(tests, open_test, close_test);
}
