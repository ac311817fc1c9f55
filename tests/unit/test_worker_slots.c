/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "tests/support/still_clock.h"
#include "tests/support/test.h"
#include "worker/ahead.h"
#include "worker/slots.h"

#include <pthread.h>
#include <sched.h>

#define WAIT_MS 30000

/* Deliveries here are only looked at by their address; settling one counts it. The clock of the
 * slots stands still but in still_clock_pass(). */
/* NOLINTBEGIN(readability-identifier-naming): the linker's names */
void __wrap_bus_settle(struct bus_delivery **take_delivery, enum bus_settle how);

static struct {
    struct slots *slots;
    pthread_mutex_t lock;
    pthread_cond_t news;
    unsigned settled[3];
    unsigned channels;
    unsigned given_back;
    unsigned driven;
    unsigned mail;
    bool hold;                        /* the slots wait for mail before they settle */
    const struct bus_delivery *aside; /* it is set aside, until aside_ms */
    int64_t aside_ms;
    int set_aside;                    /* how often */
    bool finish;                      /* their run has ended before that */
    const struct bus_delivery *giver; /* it is handed over to who holds this job: */
    struct uuid receiver;
    bool giver_loses; /* once it is lost */
    int handover;     /* what came of it; -1: nothing yet */
} seen;

void __wrap_bus_settle(struct bus_delivery **take_delivery, enum bus_settle how)
{
    pthread_mutex_lock(&seen.lock);
    seen.settled[how]++;
    pthread_cond_broadcast(&seen.news);
    pthread_mutex_unlock(&seen.lock);
    *take_delivery = NULL;
}
/* NOLINTEND(readability-identifier-naming) */

static void set_channels(void *arg, unsigned wanted)
{
    (void)arg;
    pthread_mutex_lock(&seen.lock);
    seen.channels = wanted;
    pthread_cond_broadcast(&seen.news);
    pthread_mutex_unlock(&seen.lock);
}

static struct uuid job_of(const void *what)
{
    struct uuid id = {{0}};
    memcpy(id.bytes, &what, sizeof(what));
    return id;
}

static void give(struct slot *slot)
{
    pthread_mutex_lock(&seen.lock);
    seen.driven++;
    pthread_cond_broadcast(&seen.news);
    pthread_mutex_unlock(&seen.lock);
    if (seen.giver_loses)
        assert_int_equal(slot_wait(slot, MAIL_LOST, clock_mono_ms() + WAIT_MS), MAIL_LOST);
    int handover = (int)slots_hand_over(seen.slots, slot, &seen.receiver);
    pthread_mutex_lock(&seen.lock);
    seen.handover = handover;
    pthread_cond_broadcast(&seen.news);
    pthread_mutex_unlock(&seen.lock);
}

static void keep(struct slot *slot)
{
    pthread_mutex_lock(&seen.lock);
    int64_t until_ms = seen.aside_ms;
    pthread_mutex_unlock(&seen.lock);
    bool kept = slot_set_aside(slot, until_ms);
    pthread_mutex_lock(&seen.lock);
    seen.set_aside += kept;
    pthread_cond_broadcast(&seen.news);
    pthread_mutex_unlock(&seen.lock);
}

/* Holds the job that is named by the address of what it drives. */
static void work(void *arg, struct slot *slot, void *adopted)
{
    (void)arg;
    if (!adopted && slot_delivery(slot) == seen.giver) {
        give(slot);
        return;
    }
    if (!adopted && slot_delivery(slot) == seen.aside) {
        keep(slot);
        return;
    }
    struct uuid id = job_of(adopted ? adopted : slot_delivery(slot));
    if (!adopted)
        assert_true(slot_hold_job(slot, &id));
    slot_set_fence(slot, 1);
    if (seen.finish)
        slot_finish(slot);
    pthread_mutex_lock(&seen.lock);
    seen.driven++;
    bool hold = seen.hold;
    pthread_cond_broadcast(&seen.news);
    pthread_mutex_unlock(&seen.lock);
    unsigned mail = MAIL_EXITED;
    if (hold)
        mail = slot_wait(slot, MAIL_EXITED | MAIL_CANCEL | MAIL_FENCED | MAIL_LEAVE,
                         clock_mono_ms() + WAIT_MS);
    pthread_mutex_lock(&seen.lock);
    seen.mail |= mail;
    pthread_mutex_unlock(&seen.lock);
    if (mail & MAIL_EXITED)
        slot_settle(slot, BUS_ACK);
}

#define await(condition)                                                                           \
    do {                                                                                           \
        int64_t until_ms = still_clock_real_ms() + WAIT_MS;                                        \
        pthread_mutex_lock(&seen.lock);                                                            \
        while (!(condition) && still_clock_really_wait(&seen.news, &seen.lock, until_ms))          \
            ;                                                                                      \
        bool met = (condition);                                                                    \
        pthread_mutex_unlock(&seen.lock);                                                          \
        assert_true(met);                                                                          \
    } while (0)

static void give_back(void *arg, struct slot *slot)
{
    (void)arg;
    slot_settle(slot, BUS_REQUEUE);
    pthread_mutex_lock(&seen.lock);
    seen.given_back++;
    pthread_cond_broadcast(&seen.news);
    pthread_mutex_unlock(&seen.lock);
}

static struct slots *open_ahead(unsigned count, unsigned threads, unsigned ahead, bool hold)
{
    struct slots_setup setup = {.count = count,
                                .threads = threads,
                                .ahead = ahead,
                                .aside = 1,
                                .work = work,
                                .set_channels = set_channels,
                                .give_back = ahead ? give_back : NULL};
    struct slots *slots = NULL;
    struct err err = {0};
    pthread_mutex_lock(&seen.lock);
    memset(seen.settled, 0, sizeof(seen.settled));
    seen.channels = 0;
    seen.driven = 0;
    seen.mail = 0;
    seen.given_back = 0;
    seen.finish = false;
    seen.hold = hold;
    seen.giver = NULL;
    seen.giver_loses = false;
    seen.aside = NULL;
    seen.set_aside = 0;
    pthread_mutex_unlock(&seen.lock);
    assert_ok(slots_open(&setup, &slots, &err));
    seen.slots = slots;
    return slots;
}

static struct slots *open_slots(unsigned count, unsigned threads, bool hold)
{
    return open_ahead(count, threads, 0, hold);
}

static void close_slots(struct slots *slots)
{
    slots_stop(slots);
    slots_free(slots);
}

static void offer(struct slots *slots, struct bus_delivery *delivery)
{
    struct bus_delivery *given = delivery;
    slots_offer(slots, &given);
    assert_null(given);
}

static void each_delivery_is_driven_and_settled_once(void **unused)
{
    (void)unused;
    static struct bus_delivery deliveries[4];
    struct slots *slots = open_slots(4, 4, false);
    slots_receive(slots, true);
    for (size_t i = 0; i < ARRAY_LEN(deliveries); i++)
        offer(slots, &deliveries[i]);
    await(seen.settled[BUS_ACK] == 4);
    assert_true(slots_wait_idle(slots, clock_mono_ms() + WAIT_MS));
    await(seen.channels == 4);
    close_slots(slots);
    assert_int_equal(seen.settled[BUS_REQUEUE], 0);
}

static int hand_over(struct bus_delivery *giver, const struct uuid *receiver)
{
    pthread_mutex_lock(&seen.lock);
    seen.giver = giver;
    seen.receiver = *receiver;
    seen.handover = -1;
    pthread_mutex_unlock(&seen.lock);
    unsigned driven = seen.driven + 1;
    offer(seen.slots, giver);
    await(seen.driven == driven);
    if (seen.giver_loses)
        slots_lose(seen.slots, giver);
    await(seen.handover >= 0);
    return seen.handover;
}

static void a_lost_delivery_costs_a_channel_until_the_message_is_back(void **unused)
{
    (void)unused;
    static struct bus_delivery deliveries[2];
    struct uuid id = job_of(&deliveries[0]);
    struct slots *slots = open_slots(3, 3, true);
    slots_receive(slots, true);
    offer(slots, &deliveries[0]);
    await(seen.driven == 1);
    slots_lose(slots, &deliveries[0]);
    await(seen.channels == 2);
    assert_int_equal(hand_over(&deliveries[1], &id), HANDOVER_DONE);
    await(seen.channels == 3);
    assert_true(slots_post(slots, &id, MAIL_LEAVE));
    assert_true(slots_wait_idle(slots, clock_mono_ms() + WAIT_MS));
    assert_int_equal(hand_over(&deliveries[1], &id), HANDOVER_NOBODY);
    close_slots(slots);
}

static void of_two_deliveries_of_a_job_the_newer_one_is_kept(void **unused)
{
    (void)unused;
    static struct bus_delivery deliveries[2];
    struct uuid id = job_of(&deliveries[0]);
    struct slots *slots = open_slots(2, 2, true);
    slots_receive(slots, true);
    offer(slots, &deliveries[0]);
    await(seen.driven == 1);
    assert_int_equal(hand_over(&deliveries[1], &id), HANDOVER_DUPLICATE);
    await(seen.settled[BUS_ACK] == 1);
    slots_lose(slots, &deliveries[0]); /* the broker's word on the older one comes late */
    await(seen.channels == 2);
    slots_lose(slots, &deliveries[1]);
    await(seen.channels == 1);
    slots_post_all(slots, MAIL_LEAVE);
    close_slots(slots);
}

static void a_delivery_that_is_lost_meanwhile_is_not_handed_over(void **unused)
{
    (void)unused;
    static struct bus_delivery deliveries[2];
    struct uuid id = job_of(&deliveries[0]);
    struct slots *slots = open_slots(2, 2, true);
    slots_receive(slots, true);
    offer(slots, &deliveries[0]);
    await(seen.driven == 1);
    seen.giver_loses = true;
    assert_int_equal(hand_over(&deliveries[1], &id), HANDOVER_LOST);
    assert_int_equal(seen.settled[BUS_ACK], 0);
    slots_post_all(slots, MAIL_LEAVE);
    close_slots(slots);
}

static void adopted_runs_hold_their_job_before_deliveries_come(void **unused)
{
    (void)unused;
    static char runs[5];
    struct slots *slots = open_slots(2, 5, true);
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        struct uuid id = job_of(&runs[i]);
        slots_adopt(slots, &runs[i], &id, 1);
    }
    slots_receive(slots, true);
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        struct uuid id = job_of(&runs[i]);
        assert_true(slots_hold(slots, &id));
    }
    assert_int_equal(seen.channels, 0);
    slots_post_all(slots, MAIL_LEAVE);
    await(seen.channels == 2);
    close_slots(slots);
}

static void only_the_end_of_the_held_fence_is_told(void **unused)
{
    (void)unused;
    static struct bus_delivery delivery;
    struct slots *slots = open_slots(1, 1, true);
    struct runner_record record = {.job = job_of(&delivery), .fence = 2};
    slots_receive(slots, true);
    offer(slots, &delivery);
    await(seen.driven == 1);
    assert_false(slots_post_exit(slots, &record));
    record.fence = 1;
    assert_true(slots_post_exit(slots, &record));
    await(seen.settled[BUS_ACK] == 1);
    close_slots(slots);
}

static void what_is_not_begun_goes_back_when_the_worker_stops(void **unused)
{
    (void)unused;
    static struct bus_delivery deliveries[3];
    struct uuid id = job_of(&deliveries[0]);
    struct slots *slots = open_slots(2, 1, true);
    slots_receive(slots, true);
    offer(slots, &deliveries[0]);
    await(seen.driven == 1);
    offer(slots, &deliveries[1]);
    slots_stop(slots);
    await(seen.settled[BUS_REQUEUE] == 1);
    assert_int_equal(seen.channels, 0);
    offer(slots, &deliveries[2]);
    await(seen.settled[BUS_REQUEUE] == 2);
    assert_true(slots_post(slots, &id, MAIL_LEAVE));
    slots_free(slots);
    assert_int_equal(seen.settled[BUS_REQUEUE], 3);
    assert_int_equal(seen.driven, 1);
}

static void all_that_wait_go_back_when_the_worker_stops(void **unused)
{
    (void)unused;
    static struct bus_delivery deliveries[6];
    struct uuid id = job_of(&deliveries[0]);
    struct slots *slots = open_slots(ARRAY_LEN(deliveries), 1, true);
    slots_receive(slots, true);
    for (size_t i = 0; i < ARRAY_LEN(deliveries); i++)
        offer(slots, &deliveries[i]);
    await(seen.driven == 1);
    slots_stop(slots);
    assert_int_equal(seen.settled[BUS_REQUEUE], ARRAY_LEN(deliveries) - 1);
    assert_true(slots_post(slots, &id, MAIL_LEAVE));
    slots_free(slots);
    assert_int_equal(seen.settled[BUS_REQUEUE], ARRAY_LEN(deliveries));
    assert_int_equal(seen.driven, 1);
}

static void what_is_set_aside_takes_no_slot_and_comes_again(void **unused)
{
    (void)unused;
    static struct bus_delivery deliveries[2];
    struct uuid id = job_of(&deliveries[1]);
    struct slots *slots = open_slots(1, 1, true);
    slots_receive(slots, true);
    seen.aside = &deliveries[0];
    seen.aside_ms = clock_mono_ms();
    offer(slots, &deliveries[0]);
    await(seen.set_aside >= 3); /* due at once: it comes again and again */
    await(seen.channels == 2);
    pthread_mutex_lock(&seen.lock);
    seen.aside_ms = clock_mono_ms() + WAIT_MS;
    pthread_mutex_unlock(&seen.lock);
    offer(slots, &deliveries[1]);
    await(seen.driven == 1);
    assert_int_equal(seen.settled[BUS_REQUEUE], 0);
    slots_lose(slots, &deliveries[0]);
    assert_int_equal(seen.settled[BUS_REQUEUE], 1);
    await(seen.channels == 1);
    assert_true(slots_post(slots, &id, MAIL_LEAVE));
    close_slots(slots);
}

static void what_is_set_aside_goes_back_when_the_worker_stops(void **unused)
{
    (void)unused;
    static struct bus_delivery delivery;
    struct slots *slots = open_slots(1, 1, true);
    slots_receive(slots, true);
    seen.aside = &delivery;
    seen.aside_ms = clock_mono_ms() + WAIT_MS;
    offer(slots, &delivery);
    await(seen.set_aside == 1);
    slots_stop(slots);
    assert_int_equal(seen.settled[BUS_REQUEUE], 1);
    slots_free(slots);
}

static void a_fence_for_all_reaches_those_that_begin_later(void **unused)
{
    (void)unused;
    static struct bus_delivery delivery;
    struct slots *slots = open_slots(1, 1, true);
    slots_receive(slots, true);
    slots_post_all(slots, MAIL_FENCED);
    offer(slots, &delivery);
    await(seen.settled[BUS_REQUEUE] == 1);
    assert_int_equal(seen.mail & MAIL_FENCED, MAIL_FENCED);
    close_slots(slots);
}

static void many_deliveries_and_losses_at_once_leave_nothing_behind(void **unused)
{
    (void)unused;
    static struct bus_delivery deliveries[200];
    struct slots *slots = open_slots(200, 16, false);
    slots_receive(slots, true);
    for (size_t i = 0; i < ARRAY_LEN(deliveries); i++) {
        offer(slots, &deliveries[i]);
        if (i % 3 == 0)
            slots_lose(slots, &deliveries[i]);
    }
    assert_true(slots_busy(slots) <= 200);
    await(seen.settled[BUS_ACK] + seen.settled[BUS_REQUEUE] == 200);
    assert_true(slots_wait_idle(slots, clock_mono_ms() + WAIT_MS));
    await(seen.channels == 200);
    close_slots(slots);
}

static void end_all(struct slots *slots, struct bus_delivery *deliveries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct uuid id = job_of(&deliveries[i]);
        assert_true(slots_post(slots, &id, MAIL_LEAVE));
    }
    assert_true(slots_wait_idle(slots, clock_mono_ms() + WAIT_MS));
}

static unsigned channels_now(void)
{
    pthread_mutex_lock(&seen.lock);
    unsigned channels = seen.channels;
    pthread_mutex_unlock(&seen.lock);
    return channels;
}

/* Two slots that go two ahead, after many runs that were short. */
static struct slots *open_quick(void)
{
    static struct bus_delivery quick[2];
    struct slots *slots = open_ahead(2, 2, 2, true);
    slots_receive(slots, true);
    for (unsigned driven = 2; channels_now() != 4 && driven <= 4 * AHEAD_STREAK; driven += 2) {
        offer(slots, &quick[0]);
        offer(slots, &quick[1]);
        await(seen.driven == driven);
        end_all(slots, quick, 2);
    }
    await(seen.channels == 4);
    pthread_mutex_lock(&seen.lock);
    seen.driven = 0;
    memset(seen.settled, 0, sizeof(seen.settled));
    pthread_mutex_unlock(&seen.lock);
    return slots;
}

static void a_job_that_finishes_makes_room_for_the_next_one(void **unused)
{
    (void)unused;
    static struct bus_delivery deliveries[5];
    struct slots *slots = open_quick();
    seen.finish = true;
    offer(slots, &deliveries[0]);
    offer(slots, &deliveries[1]);
    await(seen.driven == 2);
    while (slots_working(slots) > 0) /* until these are the two that finish */
        sched_yield();
    offer(slots, &deliveries[2]);
    offer(slots, &deliveries[3]);
    await(seen.driven == 4);
    assert_int_equal(slots_busy(slots), 4);
    assert_int_equal(slots_working(slots), 2); /* as many finish as may */
    offer(slots, &deliveries[4]);
    struct uuid id = job_of(&deliveries[0]);
    assert_true(slots_post(slots, &id, MAIL_LEAVE));
    await(seen.settled[BUS_REQUEUE] == 1);
    assert_int_equal(seen.driven, 4); /* what has ended beside the slots frees none of them */
    id = job_of(&deliveries[3]);
    assert_true(slots_post(slots, &id, MAIL_LEAVE));
    await(seen.driven == 5);
    slots_post_all(slots, MAIL_LEAVE);
    close_slots(slots);
}

static void what_waits_for_too_long_goes_back_and_so_does_the_rest(void **unused)
{
    (void)unused;
    static struct bus_delivery deliveries[4];
    struct slots *slots = open_quick();
    offer(slots, &deliveries[0]);
    offer(slots, &deliveries[1]);
    await(seen.driven == 2); /* those that come now find somebody who watches for later */
    still_clock_pass(1);
    int64_t late_ms = clock_mono_ms() + AHEAD_LATE_MS;
    offer(slots, &deliveries[2]);
    still_clock_pass(AHEAD_LATE_MS - 1);
    offer(slots, &deliveries[3]);
    assert_true(still_clock_await(late_ms, WAIT_MS));
    assert_int_equal(seen.given_back, 0);
    still_clock_pass(1);
    await(seen.given_back == 2);
    await(seen.channels == 2);
    assert_int_equal(seen.driven, 2);
    assert_int_equal(slots_working(slots), 2);
    slots_post_all(slots, MAIL_LEAVE);
    close_slots(slots);
}

static void what_waits_goes_back_when_nothing_is_received_any_more(void **unused)
{
    (void)unused;
    static struct bus_delivery deliveries[4];
    struct slots *slots = open_quick();
    for (size_t i = 0; i < 4; i++)
        offer(slots, &deliveries[i]);
    await(seen.driven == 2);
    slots_receive(slots, false); /* at once: the clock stands still */
    await(seen.given_back == 2);
    assert_int_equal(channels_now(), 0);
    slots_post_all(slots, MAIL_LEAVE);
    close_slots(slots);
}

static void without_short_runs_it_ends_by_itself(void **unused)
{
    (void)unused;
    struct slots *slots = open_quick();
    int64_t end_ms = clock_mono_ms() + AHEAD_LASTS_MS;
    still_clock_pass(AHEAD_LASTS_MS - 1);
    assert_true(still_clock_await(end_ms, WAIT_MS));
    assert_int_equal(channels_now(), 4);
    still_clock_pass(1);
    await(seen.channels == 2);
    assert_int_equal(seen.given_back, 0);
    close_slots(slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_delivery_is_driven_and_settled_once),
        TEST(a_lost_delivery_costs_a_channel_until_the_message_is_back),
        TEST(of_two_deliveries_of_a_job_the_newer_one_is_kept),
        TEST(a_delivery_that_is_lost_meanwhile_is_not_handed_over),
        TEST(adopted_runs_hold_their_job_before_deliveries_come),
        TEST(only_the_end_of_the_held_fence_is_told),
        TEST(what_is_not_begun_goes_back_when_the_worker_stops),
        TEST(all_that_wait_go_back_when_the_worker_stops),
        TEST(what_is_set_aside_takes_no_slot_and_comes_again),
        TEST(what_is_set_aside_goes_back_when_the_worker_stops),
        TEST(a_fence_for_all_reaches_those_that_begin_later),
        TEST(a_job_that_finishes_makes_room_for_the_next_one),
        TEST(what_waits_for_too_long_goes_back_and_so_does_the_rest),
        TEST(what_waits_goes_back_when_nothing_is_received_any_more),
        TEST(without_short_runs_it_ends_by_itself),
        TEST(many_deliveries_and_losses_at_once_leave_nothing_behind),
    };
    pthread_mutex_init(&seen.lock, NULL);
    clock_cond_init(&seen.news);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
