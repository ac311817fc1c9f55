/* SPDX-License-Identifier: MIT */
#include "worker/slots.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/store.h"
#include "worker/slots_body.h"

#define SLOT_STACK_BYTES ((size_t)256 * 1024)

/* Tells the bus how many channels are wanted, after anything that changes it. */
static void tell_channels(struct slots *all)
{
    pthread_mutex_lock(&all->channels_lock);
    pthread_mutex_lock(&all->lock);
    unsigned without = all->adopted_count;
    for (unsigned i = 0; i < all->setup.threads; i++)
        without += all->items[i].busy && all->items[i].delivery_lost;
    unsigned wanted = all->receive && without < all->setup.count ? all->setup.count - without : 0;
    pthread_mutex_unlock(&all->lock);
    all->setup.set_channels(all->setup.arg, wanted);
    pthread_mutex_unlock(&all->channels_lock);
}

/* Gives the slot its next work; false: none will come. */
static bool next_work(struct slot *slot)
{
    struct slots *all = slot->all;
    bool found = false;
    pthread_mutex_lock(&all->lock);
    while (!all->stop && !all->adopted_count && !all->queue_count)
        pthread_cond_wait(&all->work, &all->lock);
    if (!all->stop || all->adopted_count) {
        found = true;
        all->busy++;
        slot->busy = true;
        slot->mail = all->standing;
        if (all->adopted_count) {
            const struct adopted *adopted = &all->adopted[--all->adopted_count];
            slot->adopted = adopted->work;
            slot->holds = true;
            slot->job = adopted->job;
            slot->fence = adopted->fence;
            slot->delivery_lost = true;
            pthread_cond_broadcast(&all->idle);
        } else {
            slot->delivery = all->queue[0];
            slot->delivery_lost = false;
            all->queue_count--;
            memmove(&all->queue[0], &all->queue[1],
                    all->queue_count * sizeof(struct bus_delivery *));
        }
    }
    pthread_mutex_unlock(&all->lock);
    return found;
}

static void end_work(struct slot *slot)
{
    struct slots *all = slot->all;
    slot_settle(slot, BUS_REQUEUE); /* only what was not settled: nobody has dealt with it */
    slot_release_job(slot);
    pthread_mutex_lock(&all->lock);
    slot->busy = false;
    slot->adopted = NULL;
    slot->mail = 0;
    all->busy--;
    pthread_cond_broadcast(&all->idle);
    pthread_mutex_unlock(&all->lock);
    tell_channels(all);
}

static void *slot_main(void *arg)
{
    struct slot *slot = arg;
    while (next_work(slot)) {
        slot->all->setup.work(slot->all->setup.arg, slot, slot->adopted);
        log_set_request(NULL);
        end_work(slot);
    }
    store_thread_end();
    return NULL;
}

static enum err_code start_threads(struct slots *all, struct err *err)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, SLOT_STACK_BYTES);
    int failed = 0;
    for (unsigned i = 0; i < all->setup.threads && !failed; i++) {
        failed = pthread_create(&all->items[i].thread, &attr, slot_main, &all->items[i]);
        all->items[i].started = !failed;
    }
    pthread_attr_destroy(&attr);
    if (failed)
        return err_set_errno(err, ERR_NOMEM, failed, "cannot start %u threads", all->setup.threads);
    return ERR_OK;
}

enum err_code slots_open(const struct slots_setup *setup, struct slots **ret_slots, struct err *err)
{
    AUTO(slots_free) struct slots *all = calloc(1, sizeof(*all));
    if (!all)
        return err_set(err, ERR_NOMEM, "no memory for the slots");
    all->setup = *setup;
    pthread_mutex_init(&all->channels_lock, NULL);
    pthread_mutex_init(&all->lock, NULL);
    clock_cond_init(&all->work);
    clock_cond_init(&all->idle);
    all->items = calloc(setup->threads, sizeof(*all->items));
    all->queue = calloc(setup->count, sizeof(struct bus_delivery *));
    all->adopted = calloc(setup->threads, sizeof(*all->adopted));
    if (!all->items || !all->queue || !all->adopted) {
        all->setup.threads = 0;
        return err_set(err, ERR_NOMEM, "no memory for %u slots", setup->threads);
    }
    for (unsigned i = 0; i < setup->threads; i++) {
        all->items[i].all = all;
        all->items[i].delivery_lost = true;
        clock_cond_init(&all->items[i].news);
    }
    enum err_code rc = start_threads(all, err);
    if (rc) {
        slots_stop(all);
        return rc;
    }
    *ret_slots = TAKE(all);
    return ERR_OK;
}

void slots_join(struct slots *all)
{
    for (unsigned i = 0; i < all->setup.threads; i++) {
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
    for (unsigned i = 0; i < all->setup.threads; i++)
        pthread_cond_destroy(&all->items[i].news);
    pthread_cond_destroy(&all->work);
    pthread_cond_destroy(&all->idle);
    pthread_mutex_destroy(&all->lock);
    pthread_mutex_destroy(&all->channels_lock);
    free(all->items);
    free(all->queue);
    free(all->adopted);
    free(all);
}

void slots_receive(struct slots *all, bool receive)
{
    pthread_mutex_lock(&all->lock);
    while (receive && all->adopted_count)
        pthread_cond_wait(&all->idle, &all->lock);
    all->receive = receive && !all->stop;
    pthread_mutex_unlock(&all->lock);
    tell_channels(all);
}

void slots_offer(struct slots *all, struct bus_delivery **take_delivery)
{
    bool taken = false;
    pthread_mutex_lock(&all->lock);
    if (!all->stop && all->queue_count < all->setup.count) {
        all->queue[all->queue_count++] = TAKE(*take_delivery);
        pthread_cond_signal(&all->work);
        taken = true;
    }
    pthread_mutex_unlock(&all->lock);
    if (!taken)
        bus_settle(take_delivery, BUS_REQUEUE);
}

void slots_lose(struct slots *all, const struct bus_delivery *delivery)
{
    struct bus_delivery *dropped = NULL;
    pthread_mutex_lock(&all->lock);
    for (unsigned i = 0; i < all->queue_count; i++) {
        if (all->queue[i] != delivery)
            continue;
        dropped = all->queue[i];
        all->queue_count--;
        memmove(&all->queue[i], &all->queue[i + 1],
                (all->queue_count - i) * sizeof(struct bus_delivery *));
        break;
    }
    for (unsigned i = 0; i < all->setup.threads && !dropped; i++) {
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
    tell_channels(all);
}

void slots_adopt(struct slots *all, void *adopted, const struct uuid *job, uint64_t fence)
{
    pthread_mutex_lock(&all->lock);
    all->adopted[all->adopted_count++] = (struct adopted){adopted, *job, fence};
    pthread_cond_signal(&all->work);
    pthread_mutex_unlock(&all->lock);
}

void slots_stop(struct slots *all)
{
    struct bus_delivery *back = NULL;
    pthread_mutex_lock(&all->lock);
    all->stop = true;
    pthread_mutex_unlock(&all->lock);
    slots_receive(all, false);
    do {
        back = NULL;
        pthread_mutex_lock(&all->lock);
        if (all->queue_count)
            back = all->queue[--all->queue_count];
        pthread_cond_broadcast(&all->work);
        pthread_mutex_unlock(&all->lock);
        if (back)
            bus_settle(&back, BUS_REQUEUE);
    } while (back);
}

/* Under the lock. */
static struct slot *find(struct slots *all, const struct uuid *job)
{
    for (unsigned i = 0; i < all->setup.threads; i++) {
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
    for (unsigned i = 0; i < all->setup.threads; i++) {
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
        tell_channels(all);
    return done;
}

unsigned slots_busy(struct slots *all)
{
    pthread_mutex_lock(&all->lock);
    unsigned busy = all->busy + all->adopted_count;
    pthread_mutex_unlock(&all->lock);
    return busy;
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
