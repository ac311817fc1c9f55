/* SPDX-License-Identifier: MIT */
#include "webapp/pool.h"

#include "common/store/store.h"

#include <pthread.h>

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct pool_item *first, *last;
    unsigned waiting, busy;
    bool stopping;
    void (*run)(struct pool_item *item);
    pthread_t *threads;
    unsigned thread_count;
};

static void *pool_main(void *arg)
{
    struct pool *pool = arg;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->first && !pool->stopping)
            pthread_cond_wait(&pool->filled, &pool->lock);
        struct pool_item *item = pool->first;
        if (!item)
            break;
        pool->first = item->next;
        if (!pool->first)
            pool->last = NULL;
        pool->waiting--;
        pool->busy++;
        pthread_mutex_unlock(&pool->lock);
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

void pool_push(struct pool *pool, struct pool_item *item)
{
    item->next = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->last)
        pool->last->next = item;
    else
        pool->first = item;
    pool->last = item;
    pool->waiting++;
    pthread_cond_signal(&pool->filled);
    pthread_mutex_unlock(&pool->lock);
}

unsigned pool_waiting(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    unsigned waiting = pool->waiting;
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
