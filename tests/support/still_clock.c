/* SPDX-License-Identifier: MIT */
#include "tests/support/still_clock.h"

#include "common/base/clock.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define WAITERS 256
#define LONGEST_MS 60000

/* NOLINTBEGIN(readability-identifier-naming): the linker's names */
int64_t __real_clock_mono_ms(void);
int64_t __wrap_clock_mono_ms(void);
bool __real_clock_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  int64_t deadline_ms);
bool __wrap_clock_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  int64_t deadline_ms);

/* Who waits until when by this clock, and since when. */
struct waiter {
    pthread_cond_t *cond; /* NULL: this place is free */
    pthread_mutex_t *mutex;
    int64_t due_ms;
    int64_t since_ms;
};

static struct {
    pthread_mutex_t lock; /* taken last */
    pthread_cond_t news;
    int64_t now_ms;
    struct waiter waiters[WAITERS];
} still = {.lock = PTHREAD_MUTEX_INITIALIZER, .now_ms = 1000000};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_news(void)
{
    clock_cond_init(&still.news);
}

int64_t __wrap_clock_mono_ms(void)
{
    pthread_mutex_lock(&still.lock);
    int64_t now_ms = still.now_ms;
    pthread_mutex_unlock(&still.lock);
    return now_ms;
}

bool __wrap_clock_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms)
{
    size_t at = 0;
    pthread_mutex_lock(&still.lock);
    bool in_time = still.now_ms < deadline_ms;
    while (at < WAITERS && still.waiters[at].cond)
        at++;
    if (at == WAITERS)
        abort();
    still.waiters[at] = (struct waiter){cond, mutex, deadline_ms, still.now_ms};
    (void)pthread_once(&once, make_news);
    pthread_cond_broadcast(&still.news);
    pthread_mutex_unlock(&still.lock);
    if (in_time)
        in_time = still_clock_really_wait(cond, mutex, still_clock_real_ms() + LONGEST_MS);
    pthread_mutex_lock(&still.lock);
    still.waiters[at].cond = NULL;
    in_time = in_time && still.now_ms < deadline_ms;
    pthread_mutex_unlock(&still.lock);
    return in_time;
}

int64_t still_clock_real_ms(void)
{
    return __real_clock_mono_ms();
}

bool still_clock_really_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms)
{
    return __real_clock_cond_wait_until(cond, mutex, deadline_ms);
}
/* NOLINTEND(readability-identifier-naming) */

/* Under the lock. */
static bool waits_until(int64_t due_ms)
{
    for (size_t i = 0; i < WAITERS; i++) {
        const struct waiter *waiter = &still.waiters[i];
        if (waiter->cond && waiter->due_ms == due_ms && waiter->since_ms == still.now_ms)
            return true;
    }
    return false;
}

bool still_clock_await(int64_t due_ms, int64_t real_ms)
{
    int64_t until_ms = still_clock_real_ms() + real_ms;
    (void)pthread_once(&once, make_news);
    pthread_mutex_lock(&still.lock);
    while (!waits_until(due_ms) && still_clock_really_wait(&still.news, &still.lock, until_ms))
        ;
    bool waits = waits_until(due_ms);
    pthread_mutex_unlock(&still.lock);
    return waits;
}

/* One that begins to wait meanwhile has read the new time. */
void still_clock_pass(int64_t ms)
{
    struct waiter waiters[WAITERS];
    pthread_mutex_lock(&still.lock);
    still.now_ms += ms;
    memcpy(waiters, still.waiters, sizeof(waiters));
    pthread_mutex_unlock(&still.lock);
    for (size_t i = 0; i < WAITERS; i++) {
        if (!waiters[i].cond)
            continue;
        pthread_mutex_lock(waiters[i].mutex);
        pthread_cond_broadcast(waiters[i].cond);
        pthread_mutex_unlock(waiters[i].mutex);
    }
}
