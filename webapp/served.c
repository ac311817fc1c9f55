/* SPDX-License-Identifier: MIT */
#include "webapp/served.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/overview_store.h"

#include <pthread.h>
#include <stdatomic.h>

#define FRESH_MS 20 /* of what says that nobody is there: a worker may have come since */

struct served {
    atomic_bool looking;   /* for a request */
    _Atomic int64_t at_ms; /* when the newest look began */
    pthread_rwlock_t lock;
    bool known;                 /* lock, as are these */
    struct queue_taker *queues; /* in order */
    size_t count;
};

enum err_code served_new(struct served **ret_served, struct err *err)
{
    struct served *served = calloc(1, sizeof(*served));
    if (!served)
        return err_set(err, ERR_NOMEM, "out of memory");
    pthread_rwlock_init(&served->lock, NULL);
    *ret_served = served;
    return ERR_OK;
}

void served_free(struct served *served)
{
    if (!served)
        return;
    free(served->queues);
    pthread_rwlock_destroy(&served->lock);
    free(served);
}

static int compare(const void *a, const void *b)
{
    const struct queue_taker *one = a;
    const struct queue_taker *other = b;
    int order = strcmp(one->tenant, other->tenant);
    return order ? order : strcmp(one->queue, other->queue);
}

void served_look(struct served *served, struct store *store)
{
    struct queue_taker *queues = NULL;
    size_t count = 0;
    struct err err = {0};
    int64_t at_ms = clock_mono_ms();
    enum err_code rc = overview_store_takers(store, &queues, &count, &err);
    if (rc)
        log_event(LOG_DEBUG, "served.look.failed", LOG_S("detail", err.text));
    else if (count > 0)
        qsort(queues, count, sizeof(*queues), compare);
    pthread_rwlock_wrlock(&served->lock);
    struct queue_taker *old = served->queues;
    served->known = rc == ERR_OK;
    served->queues = queues;
    served->count = count;
    pthread_rwlock_unlock(&served->lock);
    atomic_store(&served->at_ms, at_ms);
    free(old);
}

static bool served_find(struct served *served, const char *tenant, const char *queue)
{
    struct queue_taker wanted;
    (void)snprintf(wanted.tenant, sizeof(wanted.tenant), "%s", tenant);
    (void)snprintf(wanted.queue, sizeof(wanted.queue), "%s", queue);
    pthread_rwlock_rdlock(&served->lock);
    bool has = !served->known ||
               (served->count > 0 &&
                bsearch(&wanted, served->queues, served->count, sizeof(wanted), compare) != NULL);
    pthread_rwlock_unlock(&served->lock);
    return has;
}

bool served_has(struct served *served, struct store *store, const char *tenant, const char *queue)
{
    bool has = served_find(served, tenant, queue);
    if (has || clock_mono_ms() - atomic_load(&served->at_ms) < FRESH_MS)
        return has;
    if (atomic_exchange(&served->looking, true))
        return true; /* one request asks for all of them; the others warn of nothing */
    served_look(served, store);
    atomic_store(&served->looking, false);
    return served_find(served, tenant, queue);
}
