/* SPDX-License-Identifier: MIT */
#include "worker/slots.h"

#include "common/base/clock.h"
#include "worker/slots_body.h"

#include <assert.h>

#define SLOT_STACK_BYTES ((size_t)256 * 1024)

enum err_code slots_start_threads(struct slots *all, unsigned from, unsigned to, struct err *err)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, SLOT_STACK_BYTES);
    int failed = 0;
    for (unsigned i = from; i < to && !failed; i++) {
        struct slot *slot = &all->items[i];
        failed = pthread_create(&slot->thread, &attr, slots_thread_main, slot);
        slot->started = !failed;
    }
    pthread_attr_destroy(&attr);
    if (failed)
        return err_set_errno(err, ERR_NOMEM, failed, "cannot start %u threads", to - from);
    return ERR_OK;
}

enum err_code slots_open(const struct slots_setup *setup, struct slots **ret_slots, struct err *err)
{
    AUTO(slots_free) struct slots *all = calloc(1, sizeof(*all));
    if (!all)
        return err_set(err, ERR_NOMEM, "no memory for the slots");
    all->setup = *setup;
    all->item_count = setup->threads + setup->ahead;
    all->below = true;
    all->below_since_ms = clock_mono_ms();
    ahead_init(&all->ahead, setup->count);
    pthread_mutex_init(&all->channels_lock, NULL);
    pthread_mutex_init(&all->lock, NULL);
    clock_cond_init(&all->idle);
    all->items = calloc(all->item_count, sizeof(*all->items));
    all->queue = calloc(setup->count + setup->ahead, sizeof(*all->queue));
    all->adopted = calloc(setup->threads, sizeof(*all->adopted));
    all->aside = calloc(setup->aside + 1, sizeof(*all->aside));
    if (!all->items || !all->queue || !all->adopted || !all->aside) {
        all->item_count = 0;
        return err_set(err, ERR_NOMEM, "no memory for %u slots", setup->threads);
    }
    for (unsigned i = 0; i < all->item_count; i++) {
        all->items[i].all = all;
        all->items[i].delivery_lost = true;
        clock_cond_init(&all->items[i].news);
    }
    enum err_code rc = slots_start_threads(all, 0, setup->threads, err);
    if (rc) {
        slots_stop(all);
        return rc;
    }
    *ret_slots = TAKE(all);
    return ERR_OK;
}

void slots_join(struct slots *all)
{
    for (unsigned i = 0; i < all->item_count; i++) {
        if (all->items[i].started)
            pthread_join(all->items[i].thread, NULL);
        all->items[i].started = false;
    }
}

void slots_free(struct slots *all)
{
    if (!all)
        return;
    slots_join(all);
    assert(all->queue_count + all->aside_count == 0); /* slots_stop() gave them back */
    for (unsigned i = 0; i < all->item_count; i++)
        pthread_cond_destroy(&all->items[i].news);
    pthread_cond_destroy(&all->idle);
    pthread_mutex_destroy(&all->lock);
    pthread_mutex_destroy(&all->channels_lock);
    free(all->items);
    free(all->queue);
    free(all->aside);
    free(all->adopted);
    free(all);
}

void slots_receive(struct slots *all, bool receive)
{
    pthread_mutex_lock(&all->lock);
    while (receive && all->adopted_count)
        pthread_cond_wait(&all->idle, &all->lock);
    all->receive = receive && !all->stop;
    if (!all->receive)
        slots_wake_all(all); /* what waits is given back */
    pthread_mutex_unlock(&all->lock);
    slots_tell_channels(all);
}

void slots_offer(struct slots *all, struct bus_delivery **take_delivery)
{
    bool taken = false;
    pthread_mutex_lock(&all->lock);
    if (!all->stop && all->queue_count < all->setup.count + all->setup.ahead) {
        int64_t due_ms = clock_mono_ms() + AHEAD_LATE_MS;
        all->queue[all->queue_count++] = (struct waiting){TAKE(*take_delivery), due_ms};
        slots_count(all);
        if (all->working < all->setup.count || !all->receive || !all->watcher)
            slots_wake_one(all); /* to work, or to watch */
        taken = true;
    }
    pthread_mutex_unlock(&all->lock);
    if (!taken)
        bus_settle(take_delivery, BUS_REQUEUE);
}

struct bus_delivery *slots_take_out(struct waiting *list, unsigned *count, unsigned at)
{
    struct bus_delivery *taken = list[at].delivery;
    --*count;
    memmove(&list[at], &list[at + 1], (*count - at) * sizeof(struct waiting));
    return taken;
}

/* Under the lock; NULL: it is not in this list. */
static struct bus_delivery *drop(struct waiting *list, unsigned *count,
                                 const struct bus_delivery *delivery)
{
    for (unsigned i = 0; i < *count; i++) {
        if (list[i].delivery == delivery)
            return slots_take_out(list, count, i);
    }
    return NULL;
}

void slots_lose(struct slots *all, const struct bus_delivery *delivery)
{
    pthread_mutex_lock(&all->lock);
    struct bus_delivery *dropped = drop(all->queue, &all->queue_count, delivery);
    if (!dropped)
        dropped = drop(all->aside, &all->aside_count, delivery);
    if (dropped)
        slots_count(all);
    for (unsigned i = 0; i < all->item_count && !dropped; i++) {
        struct slot *slot = &all->items[i];
        if (slot->delivery != delivery)
            continue;
        slot->delivery_lost = true;
        slot->mail |= MAIL_LOST;
        pthread_cond_signal(&slot->news);
    }
    pthread_mutex_unlock(&all->lock);
    if (dropped)
        bus_settle(&dropped, BUS_REQUEUE);
    slots_tell_channels(all);
}

void slots_adopt(struct slots *all, void *adopted, const struct uuid *job, uint64_t fence)
{
    pthread_mutex_lock(&all->lock);
    all->adopted[all->adopted_count++] = (struct adopted){adopted, *job, fence};
    slots_wake_one(all);
    pthread_mutex_unlock(&all->lock);
}

/* The delivery that came last; false: none waits. */
static bool take_back(struct slots *all, struct bus_delivery **ret_delivery)
{
    pthread_mutex_lock(&all->lock);
    bool waits = all->queue_count + all->aside_count > 0;
    if (all->queue_count > 0)
        *ret_delivery = all->queue[--all->queue_count].delivery;
    else if (waits)
        *ret_delivery = all->aside[--all->aside_count].delivery;
    slots_count(all);
    slots_wake_all(all);
    pthread_mutex_unlock(&all->lock);
    return waits;
}

void slots_stop(struct slots *all)
{
    struct bus_delivery *back = NULL;
    pthread_mutex_lock(&all->lock);
    all->stop = true;
    pthread_mutex_unlock(&all->lock);
    slots_receive(all, false);
    while (take_back(all, &back))
        bus_settle(&back, BUS_REQUEUE); /* takes `back`: it says nothing about what still waits */
}

/* Under the lock. */
static struct slot *find(struct slots *all, const struct uuid *job)
{
    for (unsigned i = 0; i < all->item_count; i++) {
        if (all->items[i].holds && uuid_eq(&all->items[i].job, job))
            return &all->items[i];
    }
    return NULL;
}

bool slots_post(struct slots *all, const struct uuid *job, unsigned mail)
{
    pthread_mutex_lock(&all->lock);
    struct slot *slot = find(all, job);
    if (slot) {
        slot->mail |= mail;
        pthread_cond_signal(&slot->news);
    }
    pthread_mutex_unlock(&all->lock);
    return slot != NULL;
}

void slots_post_all(struct slots *all, unsigned mail)
{
    pthread_mutex_lock(&all->lock);
    all->standing |= mail;
    for (unsigned i = 0; i < all->item_count; i++) {
        if (!all->items[i].busy)
            continue;
        all->items[i].mail |= mail;
        pthread_cond_signal(&all->items[i].news);
    }
    pthread_mutex_unlock(&all->lock);
}

bool slots_post_exit(struct slots *all, const struct runner_record *record)
{
    pthread_mutex_lock(&all->lock);
    struct slot *slot = find(all, &record->job);
    bool ours = slot && slot->fence == record->fence;
    if (ours) {
        slot->record = *record;
        slot->mail |= MAIL_EXITED;
        pthread_cond_signal(&slot->news);
    }
    pthread_mutex_unlock(&all->lock);
    return ours;
}

enum slots_handover slots_hand_over(struct slots *all, struct slot *from, const struct uuid *job)
{
    struct bus_delivery *former = NULL;
    enum slots_handover done = HANDOVER_NOBODY;
    pthread_mutex_lock(&all->lock);
    struct slot *slot = find(all, job);
    if (!from->delivery || from->delivery_lost) {
        done = HANDOVER_LOST;
    } else if (slot) {
        done = slot->delivery_lost ? HANDOVER_DONE : HANDOVER_DUPLICATE;
        former = slot->delivery;
        slot->delivery = TAKE(from->delivery);
        slot->delivery_lost = false;
        slot->mail &= ~(unsigned)MAIL_LOST;
    }
    pthread_mutex_unlock(&all->lock);
    if (former)
        bus_settle(&former, BUS_ACK);
    if (done == HANDOVER_DONE)
        slots_tell_channels(all);
    return done;
}

unsigned slots_busy(struct slots *all)
{
    pthread_mutex_lock(&all->lock);
    unsigned busy = all->busy + all->adopted_count;
    pthread_mutex_unlock(&all->lock);
    return busy;
}

unsigned slots_working(struct slots *all)
{
    pthread_mutex_lock(&all->lock);
    unsigned working = all->working + all->adopted_count;
    pthread_mutex_unlock(&all->lock);
    return working;
}

bool slots_hold(struct slots *all, const struct uuid *job)
{
    pthread_mutex_lock(&all->lock);
    bool held = find(all, job) != NULL;
    pthread_mutex_unlock(&all->lock);
    return held;
}

bool slots_wait_idle(struct slots *all, int64_t deadline_ms)
{
    bool in_time = true;
    pthread_mutex_lock(&all->lock);
    while (in_time && (all->busy || all->adopted_count))
        in_time = clock_cond_wait_until(&all->idle, &all->lock, deadline_ms);
    bool idle = !all->busy && !all->adopted_count;
    pthread_mutex_unlock(&all->lock);
    return idle;
}
