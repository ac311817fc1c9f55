/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "worker/slots_body.h"

struct bus_delivery *slot_delivery(struct slot *slot)
{
    pthread_mutex_lock(&slot->all->lock);
    struct bus_delivery *delivery = slot->delivery;
    pthread_mutex_unlock(&slot->all->lock);
    return delivery;
}

bool slot_delivery_lost(struct slot *slot)
{
    pthread_mutex_lock(&slot->all->lock);
    bool lost = slot->delivery_lost;
    pthread_mutex_unlock(&slot->all->lock);
    return lost;
}

bool slot_hold_job(struct slot *slot, const struct uuid *job)
{
    struct slots *all = slot->all;
    bool free_to_hold = true;
    pthread_mutex_lock(&all->lock);
    for (unsigned i = 0; i < all->item_count; i++) {
        const struct slot *other = &all->items[i];
        if (other != slot && other->holds && uuid_eq(&other->job, job))
            free_to_hold = false;
    }
    if (free_to_hold) {
        slot->holds = true;
        slot->job = *job;
        slot->fence = 0;
        slot->mail &= MAIL_FENCED | MAIL_LEAVE | MAIL_LOST;
    }
    pthread_mutex_unlock(&all->lock);
    return free_to_hold;
}

void slot_set_fence(struct slot *slot, uint64_t fence)
{
    pthread_mutex_lock(&slot->all->lock);
    slot->fence = fence;
    slot->mail &= ~(unsigned)MAIL_EXITED;
    pthread_mutex_unlock(&slot->all->lock);
}

void slot_release_job(struct slot *slot)
{
    pthread_mutex_lock(&slot->all->lock);
    slot->holds = false;
    slot->mail &= ~(unsigned)(MAIL_EXITED | MAIL_CANCEL);
    pthread_mutex_unlock(&slot->all->lock);
}

void slot_finish(struct slot *slot)
{
    struct slots *all = slot->all;
    pthread_mutex_lock(&all->lock);
    if (slot->working && all->busy - all->working < all->setup.ahead) {
        slots_make_room(slot);
        slots_count(all);
        if (all->queue_count || all->aside_count)
            slots_wake_one(all);
    }
    pthread_mutex_unlock(&all->lock);
}

bool slot_is_finishing(struct slot *slot)
{
    pthread_mutex_lock(&slot->all->lock);
    bool finishing = !slot->working;
    pthread_mutex_unlock(&slot->all->lock);
    return finishing;
}

unsigned slot_wait(struct slot *slot, unsigned mask, int64_t deadline_ms)
{
    bool in_time = true;
    pthread_mutex_lock(&slot->all->lock);
    while (!(slot->mail & mask) && in_time)
        in_time = clock_cond_wait_until(&slot->news, &slot->all->lock, deadline_ms);
    unsigned mail = slot->mail & mask;
    pthread_mutex_unlock(&slot->all->lock);
    return mail;
}

unsigned slot_mail(struct slot *slot)
{
    pthread_mutex_lock(&slot->all->lock);
    unsigned mail = slot->mail;
    pthread_mutex_unlock(&slot->all->lock);
    return mail;
}

void slot_take_exit(struct slot *slot, struct runner_record *ret_record)
{
    pthread_mutex_lock(&slot->all->lock);
    *ret_record = slot->record;
    slot->mail &= ~(unsigned)MAIL_EXITED;
    pthread_mutex_unlock(&slot->all->lock);
}

struct bus_delivery *slot_take_delivery(struct slot *slot)
{
    pthread_mutex_lock(&slot->all->lock);
    struct bus_delivery *delivery = TAKE(slot->delivery);
    pthread_mutex_unlock(&slot->all->lock);
    return delivery;
}

bool slot_set_aside(struct slot *slot, int64_t due_ms)
{
    struct slots *all = slot->all;
    pthread_mutex_lock(&all->lock);
    bool kept = !all->stop && all->receive && slot->delivery && !slot->delivery_lost &&
                all->aside_count < all->setup.aside;
    if (kept) {
        unsigned at = all->aside_count++;
        for (; at > 0 && all->aside[at - 1].due_ms > due_ms; at--)
            all->aside[at] = all->aside[at - 1];
        all->aside[at] = (struct waiting){TAKE(slot->delivery), due_ms};
        slots_count(all);
    }
    pthread_mutex_unlock(&all->lock);
    return kept;
}

void slot_settle(struct slot *slot, enum bus_settle how)
{
    struct bus_delivery *delivery = slot_take_delivery(slot);
    if (delivery)
        bus_settle(&delivery, how);
}
