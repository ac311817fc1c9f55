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
static bool look(struct watch *watch, uint64_t beat, enum answer answer)
{
    struct err err = {0};
    bool ask = false;
    bool dead = false;
    watch->now_ms += BEAT_MS;
    fleet_judge_begin(&watch->judge, watch->now_ms);
    assert_ok(fleet_judge_beat(&watch->judge, &w, beat, &ask, &err));
    if (ask && answer == FAILED)
        fleet_judge_failed(&watch->judge, &w);
    else if (ask)
        dead = fleet_judge_held(&watch->judge, &w, answer == HELD, watch->now_ms);
    fleet_judge_forget(&watch->judge);
    return dead;
}

static void silence_of_both_witnesses_for_a_lease_is_death(void **state)
{
    struct watch *watch = *state;
    assert_false(look(watch, 1, MISSING)); /* the first look: nothing to compare with */
    for (int i = 0; i < LEASE_MS / BEAT_MS; i++)
        assert_false(look(watch, 1, MISSING));
    assert_true(look(watch, 1, MISSING));
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
