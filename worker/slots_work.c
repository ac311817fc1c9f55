/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/store.h"
#include "worker/slots_body.h"

enum next {
    NEXT_REST,      /* there is nothing to do */
    NEXT_WORK,      /* the slot has a delivery or an adopted run */
    NEXT_GIVE_BACK, /* it has a delivery that has waited for too long */
    NEXT_CHANNELS,  /* fewer channels are wanted */
    NEXT_END,
};

/* Tells the bus how many channels are wanted, after anything that changes it. */
void slots_tell_channels(struct slots *all)
{
    pthread_mutex_lock(&all->channels_lock);
    pthread_mutex_lock(&all->lock);
    bool ahead = all->ahead.on && all->grown;
    unsigned most = all->setup.count + (ahead ? all->setup.ahead : 0) + all->aside_count;
    unsigned without = all->adopted_count;
    for (unsigned i = 0; i < all->item_count; i++)
        without += all->items[i].busy && all->items[i].delivery_lost;
    unsigned wanted = all->receive && without < most ? most - without : 0;
    pthread_mutex_unlock(&all->lock);
    all->setup.set_channels(all->setup.arg, wanted);
    if (ahead != all->told_ahead)
        log_event(LOG_DEBUG, "worker.slots.ahead", LOG_B("on", ahead), LOG_U("channels", wanted));
    all->told_ahead = ahead;
    pthread_mutex_unlock(&all->channels_lock);
}

void slots_count(struct slots *all)
{
    unsigned here = all->busy + all->queue_count;
    struct slots_counts counts = {all->working, all->busy - all->working,
                                  all->queue_count + all->aside_count};
    if (here < all->setup.count && !all->below)
        all->below_since_ms = clock_mono_ms();
    else if (here >= all->setup.count && all->below)
        all->rest_ms = clock_mono_ms() - all->below_since_ms;
    all->below = here < all->setup.count;
    if (all->setup.counted)
        all->setup.counted(all->setup.arg, &counts);
}

/* ---- rest ----------------------------------------------------------------------------------- */

/* When somebody has to look again even if nothing comes; 0: never. */
static int64_t look_ms(const struct slots *all)
{
    int64_t due_ms = all->ahead.on ? all->ahead.until_ms : 0;
    if (all->queue_count && (due_ms == 0 || all->queue[0].due_ms < due_ms))
        due_ms = all->queue[0].due_ms;
    bool room = all->working < all->setup.count; /* else who makes room looks */
    if (all->aside_count && room && (due_ms == 0 || all->aside[0].due_ms < due_ms))
        due_ms = all->aside[0].due_ms;
    return due_ms;
}

static void rest(struct slot *slot)
{
    struct slots *all = slot->all;
    int64_t due_ms = look_ms(all);
    int64_t late_ms = clock_mono_ms() + AHEAD_LATE_MS;
    if (due_ms > late_ms)
        due_ms = late_ms; /* what comes meanwhile is not due sooner */
    slot->woken = false;
    if (due_ms && !all->watcher) {
        all->watcher = slot;
        while (!slot->woken && clock_cond_wait_until(&slot->news, &all->lock, due_ms))
            ;
        if (all->watcher == slot)
            all->watcher = NULL;
        return;
    }
    slot->below = all->resting;
    all->resting = slot;
    while (!slot->woken)
        pthread_cond_wait(&slot->news, &all->lock);
}

void slots_wake_one(struct slots *all)
{
    struct slot *slot = all->resting;
    if (slot)
        all->resting = slot->below;
    else
        slot = TAKE(all->watcher);
    if (!slot)
        return; /* all are busy, and look when they are not */
    slot->woken = true;
    pthread_cond_signal(&slot->news);
}

void slots_wake_all(struct slots *all)
{
    while (all->resting || all->watcher)
        slots_wake_one(all);
}

/* ---- the next work -------------------------------------------------------------------------- */

static void begin(struct slot *slot, bool works)
{
    struct slots *all = slot->all;
    all->busy++;
    all->working += works;
    slot->busy = true;
    slot->working = works;
    slot->since_ms = clock_mono_ms();
    slot->mail = all->standing;
}

static void take_adopted(struct slot *slot)
{
    struct slots *all = slot->all;
    const struct adopted *adopted = &all->adopted[--all->adopted_count];
    begin(slot, true);
    slot->adopted = adopted->work;
    slot->holds = true;
    slot->job = adopted->job;
    slot->fence = adopted->fence;
    slot->delivery_lost = true;
    slots_count(all);
    pthread_cond_broadcast(&all->idle);
}

static void take_waiting(struct slot *slot, struct waiting *list, unsigned *count, bool works)
{
    begin(slot, works);
    slot->delivery = slots_take_out(list, count, 0);
    slot->delivery_lost = false;
    slots_count(slot->all);
}

/* Nobody waits here for long, nor for a slot that takes nothing any more. */
static bool is_late(struct slots *all, int64_t now_ms)
{
    if (!all->queue_count || !all->setup.give_back)
        return false;
    if (all->receive && now_ms < all->queue[0].due_ms)
        return false;
    if (all->receive)
        ahead_late(&all->ahead, now_ms);
    for (unsigned i = 0; i < all->queue_count; i++)
        all->queue[i].due_ms = now_ms;
    return true;
}

static enum next choose(struct slot *slot)
{
    struct slots *all = slot->all;
    int64_t now_ms = clock_mono_ms();
    if (all->adopted_count) {
        take_adopted(slot);
        return NEXT_WORK;
    }
    if (all->stop)
        return NEXT_END;
    bool takes = all->receive || !all->setup.give_back;
    bool due = all->aside_count && now_ms >= all->aside[0].due_ms;
    if (takes && due && all->working < all->setup.count) {
        take_waiting(slot, all->aside, &all->aside_count, true);
        return NEXT_WORK;
    }
    if (takes && all->queue_count && all->working < all->setup.count) {
        take_waiting(slot, all->queue, &all->queue_count, true);
        return NEXT_WORK;
    }
    if (is_late(all, now_ms)) {
        take_waiting(slot, all->queue, &all->queue_count, false);
        return NEXT_GIVE_BACK;
    }
    if (!takes && all->aside_count) {
        take_waiting(slot, all->aside, &all->aside_count, false);
        return NEXT_GIVE_BACK;
    }
    return ahead_expired(&all->ahead, now_ms) ? NEXT_CHANNELS : NEXT_REST;
}

static enum next next_work(struct slot *slot)
{
    struct slots *all = slot->all;
    enum next next = NEXT_REST;
    pthread_mutex_lock(&all->lock);
    while ((next = choose(slot)) == NEXT_REST)
        rest(slot);
    if (all->resting && !all->watcher && look_ms(all))
        slots_wake_one(all); /* to watch */
    pthread_mutex_unlock(&all->lock);
    return next;
}

/* ---- its end -------------------------------------------------------------------------------- */

void slots_make_room(struct slot *slot)
{
    struct slots *all = slot->all;
    int64_t now_ms = clock_mono_ms();
    int64_t rest_ms = all->below ? now_ms - all->below_since_ms : all->rest_ms;
    bool full = rest_ms <= AHEAD_PROMPT_MS;
    if (!all->below)
        all->rest_ms = 0; /* a rest counts once */
    slot->working = false;
    all->working--;
    if (all->setup.ahead && all->receive)
        ahead_ended(&all->ahead, now_ms, now_ms - slot->since_ms, full);
}

/* The threads that only a worker needs which goes ahead. On a thread that slots_join() awaits
 * before it looks at them. */
static void grow(struct slots *all)
{
    struct err err = {0};
    enum err_code rc = slots_start_threads(all, all->setup.threads, all->item_count, &err);
    if (rc)
        log_err("worker.slots.ahead", &err);
    pthread_mutex_lock(&all->lock);
    all->grown = rc == ERR_OK;
    pthread_mutex_unlock(&all->lock);
}

static void end_work(struct slot *slot)
{
    struct slots *all = slot->all;
    slot_settle(slot, BUS_REQUEUE); /* only what was not settled: nobody has dealt with it */
    slot_release_job(slot);
    pthread_mutex_lock(&all->lock);
    if (slot->working)
        slots_make_room(slot);
    slot->busy = false;
    slot->adopted = NULL;
    slot->mail = 0;
    all->busy--;
    slots_count(all);
    bool grows = all->ahead.on && !all->growing && !all->stop;
    all->growing = all->growing || grows;
    pthread_cond_broadcast(&all->idle);
    pthread_mutex_unlock(&all->lock);
    if (grows)
        grow(all);
    slots_tell_channels(all);
}

static void do_work(struct slot *slot, enum next next)
{
    struct slots *all = slot->all;
    if (next == NEXT_WORK) {
        all->setup.work(all->setup.arg, slot, slot->adopted);
    } else {
        slots_tell_channels(all); /* before it goes back, or its channel would bring another one */
        all->setup.give_back(all->setup.arg, slot);
    }
    log_set_request(NULL);
    end_work(slot);
}

void *slots_thread_main(void *arg)
{
    struct slot *slot = arg;
    for (;;) {
        enum next next = next_work(slot);
        if (next == NEXT_END)
            break;
        if (next == NEXT_CHANNELS)
            slots_tell_channels(slot->all);
        else
            do_work(slot, next);
    }
    store_thread_end();
    return NULL;
}
