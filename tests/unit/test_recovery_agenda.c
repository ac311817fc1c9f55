/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "readers/recovery/agenda.h"

static int one_owner;
static int other_owner;

static struct agenda_item item(void *owner)
{
    return (struct agenda_item){uuid_v7(), owner};
}

static void causes_come_in_the_order_of_their_due_times(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct agenda_item got;
    AUTO(agenda_free) struct agenda *agenda = agenda_new();
    for (int i = 0; i < 1000; i++) {
        struct agenda_item one = item(&one_owner);
        assert_ok(agenda_put(agenda, &one, 1 + (int64_t)random_below(500), &err));
        if (i % 3 == 0)
            assert_ok(agenda_put(agenda, &one, 1 + (int64_t)random_below(500), &err));
    }
    assert_int_equal(agenda_count(agenda), 1000);
    int64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        int64_t due = agenda_due_ms(agenda);
        assert_true(due >= last);
        assert_false(agenda_next(agenda, due - 1, &got));
        assert_true(agenda_next(agenda, due, &got));
        last = due;
    }
    assert_int_equal(agenda_due_ms(agenda), INT64_MAX);
}

static void a_cause_that_is_out_does_not_come_again_before_it_is_done(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct agenda_item got;
    struct agenda_item one = item(&one_owner);
    AUTO(agenda_free) struct agenda *agenda = agenda_new();
    assert_ok(agenda_put(agenda, &one, 5, &err));
    assert_true(agenda_next(agenda, 5, &got));
    assert_ok(agenda_put(agenda, &one, 1, &err));
    assert_false(agenda_next(agenda, 100, &got));
    agenda_done(agenda, &one.id, 50);
    assert_int_equal(agenda_due_ms(agenda), 50);
}

static void a_wake_while_it_is_out_makes_it_due_when_it_is_done(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct agenda_item got;
    struct agenda_item one = item(&one_owner);
    AUTO(agenda_free) struct agenda *agenda = agenda_new();
    assert_ok(agenda_put(agenda, &one, 5, &err));
    assert_true(agenda_next(agenda, 5, &got));
    assert_ok(agenda_wake(agenda, &one, 7, &err));
    agenda_done(agenda, &one.id, -1);
    assert_true(agenda_has(agenda, &one.id));
    assert_true(agenda_next(agenda, 7, &got));
    agenda_done(agenda, &one.id, -1);
    assert_false(agenda_has(agenda, &one.id));
    assert_int_equal(agenda_count(agenda), 0);
}

static void a_wake_never_makes_it_later(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct agenda_item one = item(&one_owner);
    AUTO(agenda_free) struct agenda *agenda = agenda_new();
    assert_ok(agenda_wake(agenda, &one, 50, &err));
    assert_ok(agenda_wake(agenda, &one, 90, &err));
    assert_int_equal(agenda_due_ms(agenda), 50);
    assert_ok(agenda_wake(agenda, &one, 10, &err));
    assert_int_equal(agenda_due_ms(agenda), 10);
}

static void those_of_one_owner_are_forgotten_the_others_stay(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct agenda_item got;
    struct agenda_item out = item(&one_owner);
    AUTO(agenda_free) struct agenda *agenda = agenda_new();
    assert_ok(agenda_put(agenda, &out, 1, &err));
    assert_true(agenda_next(agenda, 1, &got));
    for (int i = 0; i < 200; i++) {
        struct agenda_item one = item(i % 2 ? &one_owner : &other_owner);
        assert_ok(agenda_put(agenda, &one, 100 - i % 50, &err));
    }
    agenda_forget(agenda, &one_owner);
    assert_int_equal(agenda_count(agenda), 101);
    agenda_done(agenda, &out.id, 3);
    assert_false(agenda_has(agenda, &out.id));
    while (agenda_next(agenda, 1000, &got))
        assert_ptr_equal(got.owner, &other_owner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(causes_come_in_the_order_of_their_due_times),
        TEST(a_cause_that_is_out_does_not_come_again_before_it_is_done),
        TEST(a_wake_while_it_is_out_makes_it_due_when_it_is_done),
        TEST(a_wake_never_makes_it_later),
        TEST(those_of_one_owner_are_forgotten_the_others_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
