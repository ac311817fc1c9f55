/* SPDX-License-Identifier: MIT */
#include "common/service/submitter.h"

#include "common/base/clock.h"

#include <pthread.h>

#define GROUP_MAX 128u
#define GROUP_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define SLOW_MS 100   /* a transaction that takes longer does not hold up the next one */
#define WRITERS_MAX 4 /* transactions side by side, if they are slow */
#define THREADS 2     /* one stores while the other tells what became of the last group */

struct submitter {
    struct store *store;
    unsigned waiting_max;
    pthread_mutex_t lock;
    pthread_cond_t wake;              /* something waits, or may be stored now */
    pthread_cond_t ended;             /* a group has ended */
    struct submit_item *first, *last; /* lock; and all below */
    unsigned waiting;
    unsigned writers; /* transactions on their way */
    unsigned telling; /* threads that call done() */
    int64_t began_ms; /* the last transaction */
    bool stopping;
    struct submitter_counters counters;
    pthread_t threads[THREADS];
    unsigned thread_count;
};

/* What goes into one transaction; the lock is held. */
static size_t take_group(struct submitter *submitter, struct job_item **group)
{
    size_t count = 0;
    size_t bytes = 0;
    while (submitter->first && count < GROUP_MAX && (count == 0 || bytes < GROUP_BYTES_MAX)) {
        struct submit_item *item = submitter->first;
        submitter->first = item->next;
        bytes += item->item.job.request.len;
        group[count++] = &item->item;
        submitter->waiting--;
    }
    if (!submitter->first)
        submitter->last = NULL;
    return count;
}

static struct submit_item *take_all(struct submitter *submitter)
{
    struct submit_item *all = submitter->first;
    submitter->first = submitter->last = NULL;
    submitter->waiting = 0;
    return all;
}

static void tell(struct job_item *item)
{
    struct submit_item *one = (struct submit_item *)item;
    one->done(one);
}

static void tell_all(struct submit_item *items, const struct err *err)
{
    while (items) {
        struct submit_item *next = items->next;
        items->item.err = *err;
        items->done(items);
        items = next;
    }
}

/* One transaction may begin; the lock is held. */
static bool may_store(const struct submitter *submitter)
{
    if (!submitter->first || submitter->writers >= WRITERS_MAX)
        return false;
    return submitter->writers == 0 || clock_mono_ms() - submitter->began_ms > SLOW_MS;
}

/* Stores one group and tells what became of it. The lock is held, and released meanwhile. */
static void store_group(struct submitter *submitter)
{
    struct job_item *group[GROUP_MAX];
    size_t count = take_group(submitter, group);
    struct submit_item *hopeless = NULL;
    submitter->writers++;
    submitter->began_ms = clock_mono_ms();
    pthread_mutex_unlock(&submitter->lock);
    job_store_submit_group(submitter->store, group, count);
    const struct err err = group[0]->err;
    pthread_mutex_lock(&submitter->lock);
    submitter->writers--;
    submitter->counters.groups++;
    submitter->counters.items += count;
    if (err.code == ERR_DB_AWAY)
        hopeless = take_all(submitter);
    if (may_store(submitter))
        pthread_cond_signal(&submitter->wake);
    submitter->telling++;
    pthread_mutex_unlock(&submitter->lock);
    for (size_t i = 0; i < count; i++)
        tell(group[i]);
    tell_all(hopeless, &err);
    pthread_mutex_lock(&submitter->lock);
    submitter->telling--;
    if (submitter->stopping)
        pthread_cond_broadcast(&submitter->ended);
}

/* Until there is something to store, or the transaction on its way has had its time. */
static void wait(struct submitter *submitter)
{
    if (submitter->first && submitter->writers < WRITERS_MAX)
        (void)clock_cond_wait_until(&submitter->wake, &submitter->lock,
                                    submitter->began_ms + SLOW_MS + 1);
    else
        pthread_cond_wait(&submitter->wake, &submitter->lock);
}

static void *submitter_main(void *arg)
{
    struct submitter *submitter = arg;
    pthread_mutex_lock(&submitter->lock);
    while (submitter->first || !submitter->stopping) {
        if (may_store(submitter))
            store_group(submitter);
        else
            wait(submitter);
    }
    pthread_mutex_unlock(&submitter->lock);
    store_thread_end();
    return NULL;
}

enum err_code submitter_open(struct store *store, unsigned waiting_max,
                             struct submitter **ret_submitter, struct err *err)
{
    struct submitter *submitter = calloc(1, sizeof(*submitter));
    if (!submitter)
        return err_set(err, ERR_NOMEM, "out of memory");
    submitter->store = store;
    submitter->waiting_max = waiting_max;
    pthread_mutex_init(&submitter->lock, NULL);
    clock_cond_init(&submitter->wake);
    pthread_cond_init(&submitter->ended, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        int rc = pthread_create(&submitter->threads[i], NULL, submitter_main, submitter);
        if (rc) {
            submitter_free(submitter);
            return err_set_errno(err, ERR_NOMEM, rc, "cannot start the submitter's threads");
        }
        submitter->thread_count++;
    }
    *ret_submitter = submitter;
    return ERR_OK;
}

enum err_code submitter_add(struct submitter *submitter, struct submit_item *item, struct err *err)
{
    enum err_code rc = ERR_OK;
    item->next = NULL;
    pthread_mutex_lock(&submitter->lock);
    if (submitter->stopping) {
        rc = err_set(err, ERR_STOPPING, "this process is stopping: ask again");
    } else if (submitter->waiting >= submitter->waiting_max) {
        rc = err_set(err, ERR_OVERLOADED, "%u jobs wait to be stored: try again soon",
                     submitter->waiting);
    } else {
        if (submitter->last)
            submitter->last->next = item;
        else
            submitter->first = item;
        submitter->last = item;
        submitter->waiting++;
        if (may_store(submitter))
            store_group(submitter);
        else if (submitter->first == item) /* somebody has to see to it */
            pthread_cond_signal(&submitter->wake);
    }
    pthread_mutex_unlock(&submitter->lock);
    return rc;
}

void submitter_stop(struct submitter *submitter)
{
    if (!submitter)
        return;
    pthread_mutex_lock(&submitter->lock);
    submitter->stopping = true;
    pthread_cond_broadcast(&submitter->wake);
    while (submitter->first || submitter->writers > 0 || submitter->telling > 0)
        pthread_cond_wait(&submitter->ended, &submitter->lock);
    pthread_cond_broadcast(&submitter->wake);
    pthread_mutex_unlock(&submitter->lock);
    for (unsigned i = 0; i < submitter->thread_count; i++)
        (void)pthread_join(submitter->threads[i], NULL);
    submitter->thread_count = 0;
}

void submitter_free(struct submitter *submitter)
{
    if (!submitter)
        return;
    submitter_stop(submitter);
    pthread_cond_destroy(&submitter->ended);
    pthread_cond_destroy(&submitter->wake);
    pthread_mutex_destroy(&submitter->lock);
    free(submitter);
}

void submitter_counters(struct submitter *submitter, struct submitter_counters *ret_counters)
{
    pthread_mutex_lock(&submitter->lock);
    *ret_counters = submitter->counters;
    ret_counters->waiting = submitter->waiting;
    ret_counters->under_way = submitter->writers;
    pthread_mutex_unlock(&submitter->lock);
}
