/* SPDX-License-Identifier: MIT */
#include "common/service/watchdog.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#include <pthread.h>
#ifdef SLUICE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#define SHARE 4 /* systemd is told so often in its time */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watchdog_loop *loops; /* lock */

static void set_due(struct watchdog_loop *loop, int64_t due_ms)
{
    pthread_mutex_lock(&lock);
    if (!loop->known) {
        loop->next = loops;
        loops = loop;
        loop->known = true;
    }
    loop->due_ms = due_ms;
    pthread_mutex_unlock(&lock);
}

void watchdog_turn(struct watchdog_loop *loop, int64_t within_ms)
{
    set_due(loop, clock_mono_ms() + within_ms);
}

void watchdog_rest(struct watchdog_loop *loop)
{
    set_due(loop, INT64_MAX);
}

void watchdog_leave(struct watchdog_loop *loop)
{
    pthread_mutex_lock(&lock);
    struct watchdog_loop **at = &loops;
    while (*at && *at != loop)
        at = &(*at)->next;
    if (*at)
        *at = loop->next;
    loop->known = false;
    pthread_mutex_unlock(&lock);
}

bool watchdog_look(void)
{
    bool good = true;
    pthread_mutex_lock(&lock);
    int64_t now_ms = clock_mono_ms();
    for (struct watchdog_loop *loop = loops; loop; loop = loop->next) {
        bool late = now_ms > loop->due_ms;
        if (late && !loop->told)
            log_event(LOG_ERROR, "watchdog.late", LOG_S("loop", loop->name),
                      LOG_I("ms", now_ms - loop->due_ms));
        loop->told = late;
        good = good && !late;
    }
    pthread_mutex_unlock(&lock);
    return good;
}

int64_t watchdog_interval_ms(void)
{
    uint64_t most_us = 0;
#ifdef SLUICE_SYSTEMD
    if (sd_watchdog_enabled(0, &most_us) <= 0)
        return 0;
#endif
    return (int64_t)(most_us / 1000 / SHARE);
}
