/* SPDX-License-Identifier: MIT */
#include "common/store/group.h"

#include "common/base/clock.h"

void group_init(struct group *group, group_fn *fn, void *arg)
{
    *group = (struct group){.fn = fn, .arg = arg};
    group->end = &group->first;
    group->apart_us = 8 * GROUP_BUSY_US;
    pthread_mutex_init(&group->lock, NULL);
}

void group_done(struct group *group)
{
    pthread_mutex_destroy(&group->lock);
}

static bool may_begin(const struct group *group)
{
    if (group->gathers)
        return false;
    if (group->under_way == 0)
        return true;
    return group->under_way < GROUP_SIDE_BY_SIDE &&
           clock_mono_ms() >= group->began_ms + GROUP_PATIENCE_MS;
}

static size_t take(struct group *group, struct group_item **ret_items)
{
    size_t count = 0;
    while (group->first && count < GROUP_MAX) {
        struct group_item *item = group->first;
        group->first = item->next;
        item->waits = false;
        group->waiting--;
        ret_items[count++] = item;
    }
    if (!group->first)
        group->end = &group->first;
    return count;
}

/* Under the lock, which is given up while the work is done. */
static void work(struct group *group)
{
    struct group_item *items[GROUP_MAX];
    size_t count = take(group, items);
    group->under_way++;
    group->began_ms = clock_mono_ms();
    if (group->first) /* too many for one: it has its patience to count */
        pthread_cond_signal(&group->first->news);
    pthread_mutex_unlock(&group->lock);
    group->fn(group->arg, items, count);
    pthread_mutex_lock(&group->lock);
    group->under_way--;
    for (size_t i = 0; i < count; i++) {
        items[i]->done = true;
        pthread_cond_signal(&items[i]->news);
    }
    if (group->first)
        pthread_cond_signal(&group->first->news);
}

/* Not for a lone job: only while they come so close that waiting brings some. */
static void gather(struct group *group, struct group_item *item)
{
    int64_t until_ms = clock_mono_ms() + GROUP_GATHER_MS;
    if (group->apart_us >= GROUP_BUSY_US)
        return;
    group->gathers = item;
    while (item->waits && group->waiting < GROUP_MAX &&
           clock_cond_wait_until(&item->news, &group->lock, until_ms))
        ;
    group->gathers = NULL;
}

static void come(struct group *group, struct group_item *item)
{
    int64_t now_us = clock_mono_us();
    int64_t since_us = now_us - group->came_us;
    if (since_us > 8 * GROUP_BUSY_US)
        since_us = 8 * GROUP_BUSY_US;
    group->apart_us += (since_us - group->apart_us) / 8;
    group->came_us = now_us;
    *group->end = item;
    group->end = &item->next;
    group->waiting++;
    if (group->gathers && group->waiting == GROUP_MAX)
        pthread_cond_signal(&group->gathers->news);
}

static void wait(struct group *group, struct group_item *item)
{
    if (item->waits && !group->gathers && group->under_way < GROUP_SIDE_BY_SIDE)
        (void)clock_cond_wait_until(&item->news, &group->lock, group->began_ms + GROUP_PATIENCE_MS);
    else
        pthread_cond_wait(&item->news, &group->lock);
}

void group_do(struct group *group, struct group_item *item)
{
    item->next = NULL;
    item->waits = true;
    item->done = false;
    clock_cond_init(&item->news);
    pthread_mutex_lock(&group->lock);
    come(group, item);
    while (!item->done) {
        if (item->waits && may_begin(group)) {
            gather(group, item);
            work(group);
        } else {
            wait(group, item);
        }
    }
    pthread_mutex_unlock(&group->lock);
    pthread_cond_destroy(&item->news);
}
