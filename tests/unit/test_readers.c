/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "readers/common/judge.h"
#include "readers/common/mail.h"
#include "readers/common/notify.h"

#define QUEUE "sluice.acme.submit.default"
#define JOB "01900000-0000-7000-8000-000000000001"
#define BODY "{\"v\":1,\"job\":\"" JOB "\",\"epoch\":3}"

static struct bus_delivery a_delivery(const char *body)
{
    struct bus_delivery delivery = {
        .body = sv_of(body),
        .size_bytes = strlen(body),
        .exchange = "sluice.dead",
        .routing_key = QUEUE,
        .message_id = "m",
        .death = {.reason = "rejected",
                  .queue = QUEUE,
                  .exchange = "sluice.submit",
                  .routing_key = QUEUE,
                  .count = 1,
                  .at_s = 1700000000},
    };
    return delivery;
}

/* ---- arrival --------------------------------------------------------------------------------- */

static void a_dead_letter_tells_job_tenant_and_origin(void **unused)
{
    (void)unused;
    struct bus_delivery delivery = a_delivery(BODY);
    struct arrival arrival;
    arrival_read(DEAD_LETTER, &delivery, &arrival);
    assert_string_equal(arrival.message.tenant, "acme");
    assert_string_equal(arrival.message.reason, "rejected");
    assert_string_equal(arrival.message.exchange_name, "sluice.submit");
    assert_string_equal(arrival.message.queue_name, QUEUE);
    assert_int_equal(arrival.message.died_us, 1700000000000000);
    assert_true(arrival.message.has_job);
    assert_int_equal(arrival.message.epoch, 3);
    assert_string_equal(arrival.fault, "");
}

static void an_unroutable_message_has_no_queue_that_gave_it_up(void **unused)
{
    (void)unused;
    struct bus_delivery delivery = a_delivery(BODY);
    struct arrival arrival;
    (void)snprintf(delivery.exchange, sizeof(delivery.exchange), "sluice.submit");
    delivery.death = (struct bus_death){.reason = "expired", .queue = "sluice.defer.1"};
    arrival_read(DEAD_ALTERNATE, &delivery, &arrival);
    assert_string_equal(arrival.message.reason, "unroutable");
    assert_string_equal(arrival.message.exchange_name, "sluice.submit");
    assert_string_equal(arrival.message.queue_name, "");
    assert_string_equal(arrival.message.tenant, "acme");
}

static void what_names_no_job_says_why(void **unused)
{
    (void)unused;
    struct bus_delivery delivery = a_delivery("not json");
    struct arrival arrival;
    arrival_read(DEAD_LETTER, &delivery, &arrival);
    assert_false(arrival.message.has_job);
    assert_non_null(strstr(arrival.fault, "not JSON"));
    delivery = a_delivery(BODY);
    delivery.truncated = true;
    delivery.size_bytes = 3000000;
    arrival_read(DEAD_LETTER, &delivery, &arrival);
    assert_false(arrival.message.has_job);
    assert_non_null(strstr(arrival.fault, "3000000"));
}

static void only_the_names_of_submission_queues_have_a_tenant(void **unused)
{
    (void)unused;
    static const char *const others[] = {"",
                                         "sluice.",
                                         "sluice..submit.x",
                                         "sluice.acme.submit.",
                                         "sluice.acme.recovery",
                                         "acme.submit.x",
                                         "sluice.defer.1"};
    char tenant[TENANT_SIZE];
    char queue[QUEUE_NAME_SIZE];
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(
            bus_split_submit_queue(others[i], tenant, sizeof(tenant), queue, sizeof(queue)));
    assert_true(bus_split_submit_queue("sluice.a-b.submit.x.y", tenant, sizeof(tenant), queue,
                                       sizeof(queue)));
    assert_string_equal(tenant, "a-b");
    assert_string_equal(queue, "x.y");
}

static bool same_digest(const struct bus_delivery *a, const struct bus_delivery *b)
{
    struct arrival one;
    struct arrival two;
    arrival_read(DEAD_LETTER, a, &one);
    arrival_read(DEAD_LETTER, b, &two);
    return memcmp(one.row.digest, two.row.digest, sizeof(one.row.digest)) == 0;
}

static void a_redelivery_is_the_same_message_and_a_second_death_is_not(void **unused)
{
    (void)unused;
    struct bus_delivery first = a_delivery(BODY);
    struct bus_delivery second = a_delivery(BODY);
    second.redelivered = true;
    second.generation = 7;
    assert_true(same_digest(&first, &second));
    second.death.count = 2;
    assert_false(same_digest(&first, &second));
    second = a_delivery(BODY " ");
    assert_false(same_digest(&first, &second));
    second = a_delivery(BODY);
    (void)snprintf(second.message_id, sizeof(second.message_id), "n");
    assert_false(same_digest(&first, &second));
}

static void a_probe_gets_the_id_that_it_carries(void **unused)
{
    (void)unused;
    struct bus_delivery delivery = a_delivery("probe");
    struct arrival arrival;
    char id[UUID_TEXT_SIZE];
    (void)snprintf(delivery.message_id, sizeof(delivery.message_id), DEAD_PROBE_PREFIX JOB);
    arrival_read(DEAD_LETTER, &delivery, &arrival);
    assert_true(arrival.is_probe);
    assert_string_equal(uuid_text(&arrival.message.id, id), JOB);
}

/* ---- judge ----------------------------------------------------------------------------------- */

static struct job a_job(void)
{
    struct job job = {.tenant = "acme", .queue = "default", .status = JOB_PENDING, .epoch = 3};
    return job;
}

static enum verdict verdict_of(enum dead_source source, const struct job *job, bool owner_live)
{
    char text[JOB_REASON_SIZE];
    struct bus_delivery delivery = a_delivery(BODY);
    struct arrival arrival;
    arrival_read(source, &delivery, &arrival);
    struct judge_facts facts = {&arrival, job, owner_live};
    enum verdict verdict = judge(&facts, text, sizeof(text));
    assert_true(text[0] != 0);
    return verdict;
}

static void the_job_that_waits_for_it_fails_or_is_blocked(void **unused)
{
    (void)unused;
    struct job job = a_job();
    assert_int_equal(verdict_of(DEAD_LETTER, &job, false), VERDICT_FAIL);
    assert_int_equal(verdict_of(DEAD_ALTERNATE, &job, false), VERDICT_BLOCK);
}

static void a_job_with_a_live_owner_is_left_alone(void **unused)
{
    (void)unused;
    struct job job = a_job();
    job.has_owner = true;
    job.status = JOB_RUNNING;
    assert_int_equal(verdict_of(DEAD_LETTER, &job, true), VERDICT_LEAVE);
    assert_int_equal(verdict_of(DEAD_ALTERNATE, &job, true), VERDICT_LEAVE);
    assert_int_equal(verdict_of(DEAD_LETTER, &job, false), VERDICT_FAIL);
    assert_int_equal(verdict_of(DEAD_ALTERNATE, &job, false), VERDICT_LEAVE);
    job.cancel_requested = true;
    assert_int_equal(verdict_of(DEAD_LETTER, &job, false), VERDICT_LEAVE);
}

static void a_job_that_needs_no_message_is_left_alone(void **unused)
{
    (void)unused;
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        struct job job = a_job();
        job.status = (enum job_state)state;
        enum verdict wanted =
            job_state_is_active((enum job_state)state) ? VERDICT_FAIL : VERDICT_LEAVE;
        assert_int_equal(verdict_of(DEAD_LETTER, &job, false), wanted);
        job.epoch = 4;
        assert_int_equal(verdict_of(DEAD_LETTER, &job, false), VERDICT_LEAVE);
    }
}

static void what_an_earlier_delivery_did_is_told_again(void **unused)
{
    (void)unused;
    struct job job = a_job();
    (void)snprintf(job.reason, sizeof(job.reason), "why");
    job.status = JOB_FAILED;
    job.condition = JOB_COND_DEAD_LETTERED;
    assert_int_equal(verdict_of(DEAD_LETTER, &job, false), VERDICT_WAS_FAILED);
    assert_int_equal(verdict_of(DEAD_ALTERNATE, &job, false), VERDICT_LEAVE);
    job.status = JOB_BLOCKED;
    job.condition = JOB_COND_QUEUE_UNAVAILABLE;
    assert_int_equal(verdict_of(DEAD_ALTERNATE, &job, false), VERDICT_WAS_BLOCKED);
    assert_int_equal(verdict_of(DEAD_LETTER, &job, false), VERDICT_LEAVE);
    job.epoch = 4;
    assert_int_equal(verdict_of(DEAD_ALTERNATE, &job, false), VERDICT_LEAVE);
}

static void what_fits_no_job_of_the_tenant_is_kept(void **unused)
{
    (void)unused;
    struct job job = a_job();
    (void)snprintf(job.tenant, sizeof(job.tenant), "other");
    assert_int_equal(verdict_of(DEAD_LETTER, &job, false), VERDICT_KEEP);
    assert_int_equal(verdict_of(DEAD_LETTER, NULL, false), VERDICT_KEEP);
}

/* ---- notify ---------------------------------------------------------------------------------- */

static void a_cause_is_told_once_per_interval_and_then_with_a_count(void **unused)
{
    (void)unused;
    static struct throttle throttle;
    uint64_t held_back = 9;
    assert_true(throttle_take(&throttle, "a", 1000, 100, &held_back));
    assert_int_equal(held_back, 0);
    assert_false(throttle_take(&throttle, "a", 1050, 100, &held_back));
    assert_true(throttle_take(&throttle, "b", 1050, 100, &held_back));
    assert_false(throttle_take(&throttle, "a", 1099, 100, &held_back));
    assert_true(throttle_take(&throttle, "a", 1100, 100, &held_back));
    assert_int_equal(held_back, 2);
}

static void any_number_of_causes_takes_bounded_memory(void **unused)
{
    (void)unused;
    static struct throttle throttle;
    char cause[32];
    uint64_t held_back = 0;
    for (int i = 0; i < THROTTLE_CAUSES * 3; i++) {
        (void)snprintf(cause, sizeof(cause), "cause %d", i);
        assert_true(throttle_take(&throttle, cause, 1000 + i, 1000000, &held_back));
    }
    assert_int_equal(throttle.count, THROTTLE_CAUSES);
    assert_false(throttle_take(&throttle, cause, 5000, 1000000, &held_back));
}

static void nothing_from_a_message_becomes_a_header(void **unused)
{
    (void)unused;
    char from[] = "sluice@example.org";
    char to[] = "ops@example.org";
    struct config cfg = {.notify_from = from, .notify_to = to};
    BUF_AUTO struct buf mail = BUF_INIT(4096);
    mail_write(&cfg, "test", "x\r\nBcc: eve@example.org", "one\ntwo\r\n.\x1b", &mail);
    const char *text = buf_text(&mail);
    assert_non_null(strstr(text, "Subject: x??Bcc: eve@example.org\r\n"));
    assert_null(strstr(text, "\nBcc:"));
    assert_non_null(strstr(text, "\r\n\r\none\r\ntwo?\r\n.?"));
    assert_non_null(strstr(text, "\r\nTo: ops@example.org\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_dead_letter_tells_job_tenant_and_origin),
        TEST(an_unroutable_message_has_no_queue_that_gave_it_up),
        TEST(what_names_no_job_says_why),
        TEST(only_the_names_of_submission_queues_have_a_tenant),
        TEST(a_redelivery_is_the_same_message_and_a_second_death_is_not),
        TEST(a_probe_gets_the_id_that_it_carries),
        TEST(the_job_that_waits_for_it_fails_or_is_blocked),
        TEST(a_job_with_a_live_owner_is_left_alone),
        TEST(a_job_that_needs_no_message_is_left_alone),
        TEST(what_an_earlier_delivery_did_is_told_again),
        TEST(what_fits_no_job_of_the_tenant_is_kept),
        TEST(a_cause_is_told_once_per_interval_and_then_with_a_count),
        TEST(any_number_of_causes_takes_bounded_memory),
        TEST(nothing_from_a_message_becomes_a_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
