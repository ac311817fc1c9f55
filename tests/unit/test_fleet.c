/* SPDX-License-Identifier: MIT */
#include "common/service/fleet_judge.h"
#include "tests/support/test.h"

#define BEAT_MS 500
#define LEASE_MS 2000

static const struct uuid w = {{7}};

struct watch {
    struct fleet_judge judge;
    int64_t now_ms;
};

static int set_up(void **state)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    fleet_judge_init(&watch->judge, LEASE_MS);
    watch->now_ms = 1000000;
    *state = watch;
    return watch ? 0 : -1;
}

static int tear_down(void **state)
{
    struct watch *watch = *state;
    fleet_judge_done(&watch->judge);
    free(watch);
    return 0;
}

enum answer { HELD, MISSING, FAILED };

/* One look, a beat interval after the last one. true: the worker is dead. */
static bool look_at(struct watch *watch, uint64_t beat, uint32_t lease_ms, enum answer answer)
{
    const struct worker_beat row = {.id = w, .beat = beat, .lease_ms = lease_ms};
    struct err err = {0};
    bool ask = false;
    bool dead = false;
    watch->now_ms += BEAT_MS;
    fleet_judge_begin(&watch->judge, watch->now_ms);
    assert_ok(fleet_judge_beat(&watch->judge, &row, &ask, &err));
    if (ask && answer == FAILED)
        fleet_judge_failed(&watch->judge, &w);
    else if (ask)
        dead = fleet_judge_held(&watch->judge, &w, answer == HELD, watch->now_ms);
    fleet_judge_forget(&watch->judge);
    return dead;
}

static bool look(struct watch *watch, uint64_t beat, enum answer answer)
{
    return look_at(watch, beat, LEASE_MS, answer);
}

static void silence_of_both_witnesses_for_a_lease_is_death(void **state)
{
    struct watch *watch = *state;
    assert_false(look(watch, 1, MISSING)); /* the first look: nothing to compare with */
    for (int i = 0; i < LEASE_MS / BEAT_MS; i++)
        assert_false(look(watch, 1, MISSING));
    assert_true(look(watch, 1, MISSING));
}

static void a_worker_is_waited_for_by_the_larger_lease(void **state)
{
    struct watch *watch = *state;
    const uint32_t longer_ms = 3 * LEASE_MS;
    assert_false(look_at(watch, 1, longer_ms, MISSING));
    for (uint32_t i = 0; i < longer_ms / BEAT_MS; i++)
        assert_false(look_at(watch, 1, longer_ms, MISSING));
    assert_true(look_at(watch, 1, longer_ms, MISSING));
}

static void a_shorter_lease_of_the_worker_changes_nothing(void **state)
{
    struct watch *watch = *state;
    assert_false(look_at(watch, 1, LEASE_MS / 2, MISSING));
    for (int i = 0; i < LEASE_MS / BEAT_MS; i++)
        assert_false(look_at(watch, 1, LEASE_MS / 2, MISSING));
    assert_true(look_at(watch, 1, LEASE_MS / 2, MISSING));
}

static void the_end_of_a_lease_is_due_by_itself(void **state)
{
    struct watch *watch = *state;
    (void)look(watch, 1, MISSING);
    assert_true(fleet_judge_due_ms(&watch->judge) == INT64_MAX);
    (void)look(watch, 1, MISSING);
    assert_int_equal(fleet_judge_due_ms(&watch->judge), watch->now_ms + LEASE_MS);
    (void)look(watch, 2, MISSING);
    assert_true(fleet_judge_due_ms(&watch->judge) == INT64_MAX);
}

static void a_beat_keeps_a_worker_alive(void **state)
{
    struct watch *watch = *state;
    for (uint64_t i = 0; i < 40; i++)
        assert_false(look(watch, i / 3, MISSING));
}

static void a_held_queue_keeps_a_worker_alive(void **state)
{
    struct watch *watch = *state;
    for (int i = 0; i < 40; i++)
        assert_false(look(watch, 1, HELD));
}

static void one_look_at_a_held_queue_starts_the_lease_anew(void **state)
{
    struct watch *watch = *state;
    for (int i = 0; i < 5; i++)
        assert_false(look(watch, 1, MISSING));
    assert_false(look(watch, 1, HELD));
    for (int i = 0; i < LEASE_MS / BEAT_MS; i++)
        assert_false(look(watch, 1, MISSING));
    assert_true(look(watch, 1, MISSING));
}

static void a_failed_look_starts_the_lease_anew(void **state)
{
    struct watch *watch = *state;
    for (int i = 0; i < 5; i++)
        assert_false(look(watch, 1, MISSING));
    assert_false(look(watch, 1, FAILED));
    for (int i = 0; i < LEASE_MS / BEAT_MS; i++)
        assert_false(look(watch, 1, MISSING));
    assert_true(look(watch, 1, MISSING));
}

static void a_failed_reading_of_all_beats_starts_every_lease_anew(void **state)
{
    struct watch *watch = *state;
    for (int i = 0; i < 5; i++)
        assert_false(look(watch, 1, MISSING));
    watch->now_ms += BEAT_MS;
    fleet_judge_begin(&watch->judge, watch->now_ms);
    fleet_judge_failed(&watch->judge, NULL);
    for (int i = 0; i < LEASE_MS / BEAT_MS; i++)
        assert_false(look(watch, 1, MISSING));
    assert_true(look(watch, 1, MISSING));
}

static void a_watcher_that_slept_starts_every_lease_anew(void **state)
{
    struct watch *watch = *state;
    for (int i = 0; i < 3; i++)
        assert_false(look(watch, 1, MISSING));
    watch->now_ms += (int64_t)100 * LEASE_MS;
    for (int i = 0; i < LEASE_MS / BEAT_MS; i++)
        assert_false(look(watch, 1, MISSING));
    assert_true(look(watch, 1, MISSING));
}

static void a_flapping_queue_with_beats_between_is_no_silence(void **state)
{
    struct watch *watch = *state;
    for (uint64_t i = 0; i < 60; i++)
        assert_false(look(watch, i / 4, i % 2 ? HELD : MISSING));
}

static void a_worker_that_is_not_live_any_more_is_forgotten(void **state)
{
    struct watch *watch = *state;
    (void)look(watch, 1, MISSING);
    assert_int_equal(watch->judge.count, 1);
    fleet_judge_begin(&watch->judge, watch->now_ms);
    fleet_judge_forget(&watch->judge);
    assert_int_equal(watch->judge.count, 0);
    assert_false(fleet_judge_held(&watch->judge, &w, false, watch->now_ms));
}

#define WATCH_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCH_TEST(silence_of_both_witnesses_for_a_lease_is_death),
        WATCH_TEST(a_worker_is_waited_for_by_the_larger_lease),
        WATCH_TEST(a_shorter_lease_of_the_worker_changes_nothing),
        WATCH_TEST(the_end_of_a_lease_is_due_by_itself),
        WATCH_TEST(a_beat_keeps_a_worker_alive),
        WATCH_TEST(a_held_queue_keeps_a_worker_alive),
        WATCH_TEST(one_look_at_a_held_queue_starts_the_lease_anew),
        WATCH_TEST(a_failed_look_starts_the_lease_anew),
        WATCH_TEST(a_failed_reading_of_all_beats_starts_every_lease_anew),
        WATCH_TEST(a_watcher_that_slept_starts_every_lease_anew),
        WATCH_TEST(a_flapping_queue_with_beats_between_is_no_silence),
        WATCH_TEST(a_worker_that_is_not_live_any_more_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
