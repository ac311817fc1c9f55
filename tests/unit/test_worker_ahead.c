/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "worker/ahead.h"

static struct ahead after_short_runs(unsigned slots, unsigned runs, int64_t *io_ms)
{
    struct ahead ahead;
    ahead_init(&ahead, slots);
    for (unsigned i = 0; i < runs; i++)
        ahead_ended(&ahead, ++*io_ms, 5, true);
    return ahead;
}

static void again(struct ahead *ahead, int64_t now_ms)
{
    for (unsigned i = 0; i < AHEAD_STREAK; i++)
        ahead_ended(ahead, now_ms, 5, true);
}

static void it_begins_after_as_many_short_runs_as_there_are_slots(void **unused)
{
    (void)unused;
    int64_t now_ms = 0;
    struct ahead ahead = after_short_runs(20, 19, &now_ms);
    assert_false(ahead.on);
    ahead_ended(&ahead, ++now_ms, 5, true);
    assert_true(ahead.on);
    ahead = after_short_runs(1, AHEAD_STREAK - 1, &now_ms);
    assert_false(ahead.on);
    ahead_ended(&ahead, ++now_ms, AHEAD_SHORT_MS, true);
    assert_true(ahead.on);
}

static void a_long_run_or_a_rest_begins_the_streak_anew(void **unused)
{
    (void)unused;
    int64_t now_ms = 0;
    struct ahead ahead = after_short_runs(1, AHEAD_STREAK - 1, &now_ms);
    ahead_ended(&ahead, ++now_ms, AHEAD_SHORT_MS + 1, true);
    ahead_ended(&ahead, ++now_ms, 5, true);
    assert_false(ahead.on);
    ahead = after_short_runs(1, AHEAD_STREAK - 1, &now_ms);
    ahead_ended(&ahead, ++now_ms, 5, false);
    ahead_ended(&ahead, ++now_ms, 5, true);
    assert_false(ahead.on);
}

static void it_ends_a_while_after_the_last_short_run(void **unused)
{
    (void)unused;
    int64_t now_ms = 0;
    struct ahead ahead = after_short_runs(1, AHEAD_STREAK, &now_ms);
    assert_true(ahead.on);
    ahead_ended(&ahead, now_ms + 400, 5, true);
    ahead_ended(&ahead, now_ms + 450, 1000, true); /* these keep it up no longer */
    ahead_ended(&ahead, now_ms + 460, 5, false);
    assert_false(ahead_expired(&ahead, now_ms + 400 + AHEAD_LASTS_MS - 1));
    assert_true(ahead_expired(&ahead, now_ms + 400 + AHEAD_LASTS_MS));
    assert_false(ahead.on);
    assert_false(ahead_expired(&ahead, now_ms + 400 + AHEAD_LASTS_MS));
}

static void each_time_that_a_delivery_waits_too_long_the_pause_doubles(void **unused)
{
    (void)unused;
    int64_t now_ms = 0;
    struct ahead ahead = after_short_runs(1, AHEAD_STREAK, &now_ms);
    for (int64_t pause_ms = AHEAD_PAUSE_MS; pause_ms < 4 * AHEAD_PAUSE_MAX_MS; pause_ms *= 2) {
        int64_t expected_ms = pause_ms < AHEAD_PAUSE_MAX_MS ? pause_ms : AHEAD_PAUSE_MAX_MS;
        ahead_late(&ahead, now_ms);
        assert_false(ahead.on);
        ahead_late(&ahead, now_ms + 1); /* a further one of the same time is not counted */
        again(&ahead, now_ms + expected_ms - 1);
        assert_false(ahead.on);
        now_ms += expected_ms;
        again(&ahead, now_ms);
        assert_true(ahead.on);
    }
}

static void the_pause_is_short_again_after_it_went_well_for_long(void **unused)
{
    (void)unused;
    int64_t now_ms = 0;
    struct ahead ahead = after_short_runs(1, AHEAD_STREAK, &now_ms);
    ahead_late(&ahead, now_ms);
    now_ms += AHEAD_PAUSE_MS;
    again(&ahead, now_ms);
    ahead_late(&ahead, now_ms);
    now_ms += 2 * AHEAD_PAUSE_MS;
    again(&ahead, now_ms);
    now_ms += AHEAD_CALM_MS;
    ahead_late(&ahead, now_ms);
    again(&ahead, now_ms + AHEAD_PAUSE_MS);
    assert_true(ahead.on);
}

static void it_is_no_more_than_the_slots_and_what_the_connection_holds(void **unused)
{
    (void)unused;
    assert_int_equal(ahead_most(1, 1000), 1);
    assert_int_equal(ahead_most(300, 1000), AHEAD_MOST);
    assert_int_equal(ahead_most(990, 1000), 10);
    assert_int_equal(ahead_most(1000, 1000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_begins_after_as_many_short_runs_as_there_are_slots),
        TEST(a_long_run_or_a_rest_begins_the_streak_anew),
        TEST(it_ends_a_while_after_the_last_short_run),
        TEST(each_time_that_a_delivery_waits_too_long_the_pause_doubles),
        TEST(it_is_no_more_than_the_slots_and_what_the_connection_holds),
        TEST(the_pause_is_short_again_after_it_went_well_for_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
