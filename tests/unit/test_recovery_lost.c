/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "readers/recovery/lost.h"

#define MARGIN 10
#define OFTEN 1000

static struct lost_sample sample(uint64_t waiting, uint32_t ready, uint32_t consumers)
{
    return (struct lost_sample){.waiting = waiting, .ready = ready, .consumers = consumers};
}

static uint64_t sure(struct lost_sample first, struct lost_sample second)
{
    return lost_decide(&first, &second, 0, MARGIN).sure;
}

static void a_queue_that_has_a_message_for_each_job_lacks_none(void **unused)
{
    (void)unused;
    for (uint32_t i = 0; i < OFTEN; i++) {
        uint32_t ready = (uint32_t)random_below(OFTEN);
        struct lost_sample one = sample(random_below(ready + 1), ready, 4);
        one.passed_us = (int64_t)random_below(OFTEN);
        struct lost_sample two = one;
        two.moved = random_below(2) == 1;
        struct lost_verdict verdict = lost_decide(&one, &two, 0, MARGIN);
        assert_int_equal(verdict.sure, 0);
        assert_int_equal(verdict.passed, 0);
    }
}

static void all_of_an_empty_queue_are_sent_again(void **unused)
{
    (void)unused;
    assert_int_equal(sure(sample(10000, 0, 0), sample(10000, 0, 0)), 10000);
}

static void with_newer_messages_the_difference_is_sent_again(void **unused)
{
    (void)unused;
    assert_int_equal(sure(sample(12, 4, 2), sample(12, 4, 2)), 8);
    assert_int_equal(sure(sample(10100, 100, 0), sample(10250, 250, 0)), 10000);
}

static void what_the_outbox_still_has_is_not_lost(void **unused)
{
    (void)unused;
    struct lost_sample one = sample(500, 100, 0);
    one.unsent = 400;
    assert_int_equal(sure(one, one), 0);
}

/* Rows of the outbox live for a moment longer than it takes to send their messages. */
static void new_messages_that_come_all_the_time_hide_no_loss(void **unused)
{
    (void)unused;
    struct lost_sample one = sample(10300, 300, 0);
    one.unsent = 20;
    assert_int_equal(sure(one, one), 10000);
    struct lost_sample two = one;
    two.moved = true;
    two.consumers = 4;
    assert_int_equal(sure(one, two), 10000 - 20 - 4);
}

static void of_several_samples_the_one_that_lacks_least_counts(void **unused)
{
    (void)unused;
    struct lost_sample one = sample(500, 480, 4);
    struct lost_sample two = sample(520, 515, 4);
    two.moved = true;
    lost_join(&one, &two);
    assert_int_equal(one.waiting, 520);
    struct lost_sample three = sample(600, 500, 4);
    lost_join(&one, &three);
    assert_int_equal(one.waiting, 520);
    assert_true(one.moved);
}

static void what_lacks_in_one_sample_only_is_not_lost(void **unused)
{
    (void)unused;
    assert_int_equal(sure(sample(500, 100, 4), sample(500, 500, 4)), 0);
    assert_int_equal(sure(sample(500, 500, 4), sample(500, 100, 4)), 0);
}

static void what_consumers_may_hold_is_not_lost_while_jobs_are_claimed(void **unused)
{
    (void)unused;
    struct lost_sample one = sample(500, 484, 16);
    struct lost_sample two = one;
    two.moved = true;
    assert_int_equal(sure(one, two), 0);
    two.moved = false; /* nothing was claimed for the whole pause: nothing is in transit */
    assert_int_equal(sure(one, two), 16);
    one.ready = two.ready = 400;
    two.moved = true;
    assert_int_equal(sure(one, two), 84);
}

static void jobs_that_younger_ones_passed_are_sent_again_while_jobs_are_claimed(void **unused)
{
    (void)unused;
    struct lost_sample one = sample(12, 4, 16);
    one.passed_us = 5000;
    struct lost_sample two = one;
    two.moved = true;
    struct lost_verdict verdict = lost_decide(&one, &two, 0, MARGIN);
    assert_int_equal(verdict.sure, 0);
    assert_int_equal(verdict.passed, 8);
    assert_int_equal(verdict.before_us, 5000 - MARGIN);
}

/* Jobs were cancelled while they waited: their messages are in the queue still. */
static void messages_of_nobody_hide_no_loss_for_ever(void **unused)
{
    (void)unused;
    struct lost_sample one = sample(20, 120, 16);
    one.passed_us = 5000;
    struct lost_sample two = one;
    two.moved = true;
    struct lost_verdict verdict = lost_decide(&one, &two, 4000, MARGIN);
    assert_int_equal(verdict.sure, 0);
    assert_true(verdict.passed > 0 && verdict.passed < 20);
    assert_int_equal(verdict.before_us, 4000 - MARGIN);
    verdict = lost_decide(&one, &two, 5000, MARGIN); /* nothing was passed since the look before */
    assert_int_equal(verdict.passed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_queue_that_has_a_message_for_each_job_lacks_none),
        TEST(all_of_an_empty_queue_are_sent_again),
        TEST(with_newer_messages_the_difference_is_sent_again),
        TEST(what_the_outbox_still_has_is_not_lost),
        TEST(new_messages_that_come_all_the_time_hide_no_loss),
        TEST(of_several_samples_the_one_that_lacks_least_counts),
        TEST(what_lacks_in_one_sample_only_is_not_lost),
        TEST(what_consumers_may_hold_is_not_lost_while_jobs_are_claimed),
        TEST(jobs_that_younger_ones_passed_are_sent_again_while_jobs_are_claimed),
        TEST(messages_of_nobody_hide_no_loss_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
