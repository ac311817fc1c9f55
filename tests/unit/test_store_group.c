/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "common/store/group.h"
#include "tests/support/test.h"

#include <stdatomic.h>

#define MEMBERS 40
#define WAIT_MS 30000

struct member {
    struct group_item item;
    struct group *group;
    pthread_t thread;
    int done_in; /* number of the call that did the work for it */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    unsigned calls;
    unsigned inside;
    unsigned most_inside;
    size_t most_items;
    unsigned held; /* calls up to this one wait until it is lowered */
} seen;

static void work(void *arg, struct group_item **items, size_t count)
{
    (void)arg;
    pthread_mutex_lock(&seen.lock);
    unsigned call = ++seen.calls;
    seen.inside++;
    if (seen.inside > seen.most_inside)
        seen.most_inside = seen.inside;
    if (count > seen.most_items)
        seen.most_items = count;
    pthread_cond_broadcast(&seen.news);
    while (call <= seen.held)
        pthread_cond_wait(&seen.news, &seen.lock);
    for (size_t i = 0; i < count; i++)
        ((struct member *)items[i])->done_in = (int)call;
    seen.inside--;
    pthread_mutex_unlock(&seen.lock);
}

static void *join_in(void *arg)
{
    struct member *member = arg;
    group_do(member->group, &member->item);
    return NULL;
}

static void begin(struct member *member, struct group *group)
{
    *member = (struct member){.group = group};
    assert_int_equal(pthread_create(&member->thread, NULL, join_in, member), 0);
}

static void wait_calls(unsigned calls)
{
    int64_t until_ms = clock_mono_ms() + WAIT_MS;
    pthread_mutex_lock(&seen.lock);
    while (seen.calls < calls)
        assert_true(clock_cond_wait_until(&seen.news, &seen.lock, until_ms));
    pthread_mutex_unlock(&seen.lock);
}

static void let_go(void)
{
    pthread_mutex_lock(&seen.lock);
    seen.held = 0;
    pthread_cond_broadcast(&seen.news);
    pthread_mutex_unlock(&seen.lock);
}

static size_t waiting(struct group *group)
{
    pthread_mutex_lock(&group->lock);
    size_t count = group->waiting;
    pthread_mutex_unlock(&group->lock);
    return count;
}

static int set_up(void **unused)
{
    (void)unused;
    seen.calls = seen.inside = seen.most_inside = seen.held = 0;
    seen.most_items = 0;
    return 0;
}

static void one_that_comes_alone_is_served_at_once(void **unused)
{
    (void)unused;
    struct group group;
    struct member member = {.group = &group};
    group_init(&group, work, NULL);
    group_do(&group, &member.item);
    assert_int_equal(member.done_in, 1);
    assert_int_equal(seen.most_items, 1);
    group_done(&group);
}

static void those_that_come_meanwhile_are_served_together(void **unused)
{
    (void)unused;
    struct group group;
    struct member members[GROUP_SIDE_BY_SIDE + MEMBERS];
    group_init(&group, work, NULL);
    seen.held = GROUP_SIDE_BY_SIDE;
    for (unsigned i = 0; i < GROUP_SIDE_BY_SIDE; i++) { /* patience is over for each in turn */
        begin(&members[i], &group);
        wait_calls(i + 1);
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        begin(&members[GROUP_SIDE_BY_SIDE + i], &group);
    while (waiting(&group) < MEMBERS)
        sched_yield();
    let_go();
    for (unsigned i = 0; i < ARRAY_LEN(members); i++) {
        pthread_join(members[i].thread, NULL);
        assert_true(members[i].done_in > 0);
    }
    assert_int_equal(seen.most_items, GROUP_MAX);
    assert_int_equal(seen.calls, GROUP_SIDE_BY_SIDE + (MEMBERS + GROUP_MAX - 1) / GROUP_MAX);
    group_done(&group);
}

static void one_that_takes_long_does_not_hold_up_the_others(void **unused)
{
    (void)unused;
    struct group group;
    struct member slow, quick;
    group_init(&group, work, NULL);
    seen.held = 1;
    begin(&slow, &group);
    wait_calls(1);
    begin(&quick, &group);
    pthread_join(quick.thread, NULL);
    assert_int_equal(quick.done_in, 2);
    assert_int_equal(seen.inside, 1);
    let_go();
    pthread_join(slow.thread, NULL);
    assert_int_equal(slow.done_in, 1);
    group_done(&group);
}

static void *come_often(void *arg)
{
    for (int i = 0; i < 200; i++)
        (void)join_in(arg);
    return NULL;
}

static void nobody_is_forgotten_where_they_come_thick_and_fast(void **unused)
{
    (void)unused;
    struct group group;
    struct member members[MEMBERS];
    group_init(&group, work, NULL);
    for (unsigned i = 0; i < MEMBERS; i++) {
        members[i] = (struct member){.group = &group};
        assert_int_equal(pthread_create(&members[i].thread, NULL, come_often, &members[i]), 0);
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        pthread_join(members[i].thread, NULL);
    assert_true(seen.most_inside <= GROUP_SIDE_BY_SIDE);
    assert_true(seen.calls < MEMBERS * 200 / 4);
    group_done(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_that_comes_alone_is_served_at_once, set_up),
        cmocka_unit_test_setup(those_that_come_meanwhile_are_served_together, set_up),
        cmocka_unit_test_setup(one_that_takes_long_does_not_hold_up_the_others, set_up),
        cmocka_unit_test_setup(nobody_is_forgotten_where_they_come_thick_and_fast, set_up),
    };
    pthread_mutex_init(&seen.lock, NULL);
    clock_cond_init(&seen.news);
    return cmocka_run_group_tests_name("store_group", tests, NULL, NULL);
}
