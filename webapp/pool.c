/* SPDX-License-Identifier: MIT */
#include "webapp/pool.h"

#include "common/store/store.h"

#include <pthread.h>

struct line {
    struct pool_item *first, *last;
    unsigned count;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct line lines[POOL_LINE_COUNT];
    unsigned turn; /* the line that is looked at first */
    unsigned busy;
    unsigned asleep;
    bool waking; /* a thread was woken and has not looked yet */
    bool stopping;
    void (*run)(struct pool_item *item);
    pthread_t *threads;
    unsigned thread_count;
};

/* The lines take turns; the lock is held. */
static struct pool_item *take(struct pool *pool)
{
    if (!pool->lines[pool->turn].first)
        pool->turn = (pool->turn + 1) % POOL_LINE_COUNT;
    struct line *line = &pool->lines[pool->turn];
    struct pool_item *item = line->first;
    if (!item)
        return NULL;
    pool->turn = (pool->turn + 1) % POOL_LINE_COUNT;
    line->first = item->next;
    if (!line->first)
        line->last = NULL;
    line->count--;
    return item;
}

/* Whether to wake a thread; the lock is held. One at a time: it wakes the next one if it finds more
 * than it takes, so that a burst of short requests does not wake all of them for nothing. */
static bool shall_wake(struct pool *pool)
{
    if (pool->waking || pool->asleep == 0)
        return false;
    pool->waking = true;
    return true;
}

static bool has_items(const struct pool *pool)
{
    return pool->lines[POOL_NEW].first || pool->lines[POOL_RESUMED].first;
}

static void sleep_until_woken(struct pool *pool)
{
    pool->asleep++;
    pthread_cond_wait(&pool->filled, &pool->lock);
    pool->asleep--;
    pool->waking = false;
}

static void *pool_main(void *arg)
{
    struct pool *pool = arg;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct pool_item *item = take(pool);
        if (!item && pool->stopping)
            break;
        if (!item) {
            sleep_until_woken(pool);
            continue;
        }
        pool->busy++;
        bool wake = has_items(pool) && shall_wake(pool);
        pthread_mutex_unlock(&pool->lock);
        if (wake)
            pthread_cond_signal(&pool->filled);
        pool->run(item);
        pthread_mutex_lock(&pool->lock);
        pool->busy--;
    }
    pthread_mutex_unlock(&pool->lock);
    store_thread_end();
    return NULL;
}

enum err_code pool_open(unsigned threads, void (*run)(struct pool_item *item),
                        struct pool **ret_pool, struct err *err)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return err_set(err, ERR_NOMEM, "out of memory");
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->filled, NULL);
    pool->run = run;
    pool->threads = calloc(threads, sizeof(*pool->threads));
    for (unsigned i = 0; pool->threads && i < threads; i++) {
        int rc = pthread_create(&pool->threads[i], NULL, pool_main, pool);
        if (rc) {
            pool_free(pool);
            return err_set_errno(err, ERR_NOMEM, rc, "cannot start thread %u of %u", i + 1,
                                 threads);
        }
        pool->thread_count++;
    }
    *ret_pool = pool;
    return ERR_OK;
}

void pool_push(struct pool *pool, enum pool_line which, struct pool_item *item)
{
    struct line *line = &pool->lines[which];
    item->next = NULL;
    pthread_mutex_lock(&pool->lock);
    if (line->last)
        line->last->next = item;
    else
        line->first = item;
    line->last = item;
    line->count++;
    bool wake = shall_wake(pool);
    pthread_mutex_unlock(&pool->lock);
    if (wake)
        pthread_cond_signal(&pool->filled);
}

unsigned pool_waiting(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    unsigned waiting = pool->lines[POOL_NEW].count;
    pthread_mutex_unlock(&pool->lock);
    return waiting;
}

unsigned pool_busy(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    unsigned busy = pool->busy;
    pthread_mutex_unlock(&pool->lock);
    return busy;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->filled);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->thread_count; i++)
        (void)pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->filled);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}
