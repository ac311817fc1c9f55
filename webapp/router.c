/* SPDX-License-Identifier: MIT */
#include "webapp/router.h"

#include "webapp/served.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define POLL_MS 500

struct routing {
    atomic_uint refs;
    uint64_t version; /* of the queues, at least */
    struct job_queue_list list;
    struct routing_queue *queues;
};

struct tenant {
    struct tenant *next;
    char name[TENANT_SIZE];
    struct routing *routing; /* lock; NULL until it was read */
};

struct router {
    struct store *store;
    struct served *served;
    pthread_rwlock_t lock;
    struct tenant *tenants; /* lock; entries are never removed */
    pthread_mutex_t stop_lock;
    pthread_cond_t stop;
    bool stopping;
    pthread_t thread;
    bool has_thread;
};

void routing_put(struct routing *routing)
{
    if (!routing || atomic_fetch_sub(&routing->refs, 1) != 1)
        return;
    for (size_t i = 0; routing->queues && i < routing->list.count; i++)
        filter_free(routing->queues[i].filter);
    free(routing->queues);
    job_queue_list_done(&routing->list);
    free(routing);
}

size_t routing_count(const struct routing *routing)
{
    return routing->list.count;
}

const struct routing_queue *routing_at(const struct routing *routing, size_t index)
{
    return &routing->queues[index];
}

const struct routing_queue *routing_choose(const struct routing *routing,
                                           const struct filter_row *row)
{
    const struct routing_queue *fallback = NULL;
    for (size_t i = 0; i < routing->list.count; i++) {
        const struct routing_queue *queue = &routing->queues[i];
        if (!queue->queue.enabled)
            continue;
        if (queue->filter && filter_eval(queue->filter, row) == FILTER_TRUE)
            return queue;
        if (queue->is_default)
            fallback = queue;
    }
    return fallback;
}

static void compile(struct routing_queue *queue)
{
    struct err err = {0};
    queue->is_default = strcmp(queue->queue.name, QUEUE_DEFAULT) == 0;
    if (queue->queue.filter && filter_compile(&filter_queue_schema, sv_of(queue->queue.filter),
                                              &queue->filter, NULL, &err) != ERR_OK)
        log_event(LOG_ERROR, "router.filter.unusable", LOG_S("tenant", queue->queue.tenant),
                  LOG_S("queue", queue->queue.name), LOG_S("detail", err.text));
}

static enum err_code routing_read(struct router *router, const char *tenant,
                                  struct routing **ret_routing, struct err *err)
{
    AUTO(routing_put) struct routing *routing = calloc(1, sizeof(*routing));
    if (!routing)
        return err_set(err, ERR_NOMEM, "out of memory");
    routing->refs = 1;
    /* The version first: a change between the two reads is then seen by the next look. */
    enum err_code rc = queue_store_version(router->store, &routing->version, err);
    if (rc == ERR_OK)
        rc = queue_store_list(router->store, tenant, &routing->list, err);
    if (rc)
        return rc;
    routing->queues = calloc(routing->list.count + 1, sizeof(*routing->queues));
    if (!routing->queues)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < routing->list.count; i++) {
        routing->queues[i].queue = routing->list.items[i]; /* the list owns the texts */
        compile(&routing->queues[i]);
    }
    *ret_routing = TAKE(routing);
    return ERR_OK;
}

static struct tenant *find(struct router *router, const char *name)
{
    struct tenant *tenant = router->tenants;
    while (tenant && strcmp(tenant->name, name) != 0)
        tenant = tenant->next;
    return tenant;
}

static struct routing *current(struct router *router, const char *name)
{
    pthread_rwlock_rdlock(&router->lock);
    struct tenant *tenant = find(router, name);
    struct routing *routing = tenant ? tenant->routing : NULL;
    if (routing)
        atomic_fetch_add(&routing->refs, 1);
    pthread_rwlock_unlock(&router->lock);
    return routing;
}

/* Puts a snapshot in place unless a newer one is there. */
static enum err_code install(struct router *router, const char *name, struct routing *routing,
                             struct err *err)
{
    struct routing *old = NULL;
    pthread_rwlock_wrlock(&router->lock);
    struct tenant *tenant = find(router, name);
    if (!tenant) {
        tenant = calloc(1, sizeof(*tenant));
        if (!tenant) {
            pthread_rwlock_unlock(&router->lock);
            return err_set(err, ERR_NOMEM, "out of memory");
        }
        (void)snprintf(tenant->name, sizeof(tenant->name), "%s", name);
        tenant->next = router->tenants;
        router->tenants = tenant;
    }
    if (!tenant->routing || tenant->routing->version <= routing->version) {
        old = tenant->routing;
        tenant->routing = routing;
        atomic_fetch_add(&routing->refs, 1);
    }
    pthread_rwlock_unlock(&router->lock);
    routing_put(old);
    return ERR_OK;
}

static enum err_code reload(struct router *router, const char *name, struct err *err)
{
    AUTO(routing_put) struct routing *routing = NULL;
    enum err_code rc = routing_read(router, name, &routing, err);
    if (rc)
        return rc;
    assert(routing);
    return install(router, name, routing, err);
}

enum err_code router_get(struct router *router, const char *tenant, struct routing **ret_routing,
                         struct err *err)
{
    struct routing *routing = current(router, tenant);
    if (!routing) {
        enum err_code rc = tenant_store_ensure(router->store, tenant, err);
        if (rc == ERR_OK)
            rc = reload(router, tenant, err);
        if (rc)
            return rc;
        routing = current(router, tenant);
    }
    *ret_routing = routing;
    return ERR_OK;
}

bool router_serves(struct router *router, const char *tenant, const char *queue)
{
    return served_has(router->served, router->store, tenant, queue);
}

void router_changed(struct router *router, const char *tenant)
{
    struct err err = {0};
    if (reload(router, tenant, &err) != ERR_OK) /* the thread reads them as soon as it can */
        log_event(LOG_WARN, "router.reload.failed", LOG_S("tenant", tenant),
                  LOG_S("detail", err.text));
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* A tenant whose snapshot is older than this version; entries live as long as the router. */
static const char *next_stale(struct router *router, uint64_t version)
{
    const char *name = NULL;
    pthread_rwlock_rdlock(&router->lock);
    for (struct tenant *tenant = router->tenants; tenant && !name; tenant = tenant->next) {
        if (tenant->routing && tenant->routing->version < version)
            name = tenant->name;
    }
    pthread_rwlock_unlock(&router->lock);
    return name;
}

static void look(struct router *router)
{
    uint64_t version = 0;
    struct err err = {0};
    enum err_code rc = queue_store_version(router->store, &version, &err);
    const char *name = NULL;
    while (rc == ERR_OK && (name = next_stale(router, version)) != NULL)
        rc = reload(router, name, &err);
    if (rc)
        log_event(LOG_DEBUG, "router.look.failed", LOG_S("detail", err.text));
}

static void *router_main(void *arg)
{
    struct router *router = arg;
    pthread_mutex_lock(&router->stop_lock);
    while (!router->stopping) {
        pthread_mutex_unlock(&router->stop_lock);
        look(router);
        served_look(router->served, router->store);
        pthread_mutex_lock(&router->stop_lock);
        int64_t until_ms = clock_mono_ms() + POLL_MS;
        while (!router->stopping &&
               clock_cond_wait_until(&router->stop, &router->stop_lock, until_ms))
            continue;
    }
    pthread_mutex_unlock(&router->stop_lock);
    store_thread_end();
    return NULL;
}

enum err_code router_open(struct store *store, struct router **ret_router, struct err *err)
{
    struct router *router = calloc(1, sizeof(*router));
    if (!router)
        return err_set(err, ERR_NOMEM, "out of memory");
    router->store = store;
    enum err_code served = served_new(&router->served, err);
    if (served) {
        free(router);
        return served;
    }
    pthread_rwlock_init(&router->lock, NULL);
    pthread_mutex_init(&router->stop_lock, NULL);
    clock_cond_init(&router->stop);
    int rc = pthread_create(&router->thread, NULL, router_main, router);
    if (rc) {
        router_free(router);
        return err_set_errno(err, ERR_NOMEM, rc, "cannot start the router thread");
    }
    router->has_thread = true;
    *ret_router = router;
    return ERR_OK;
}

void router_free(struct router *router)
{
    if (!router)
        return;
    pthread_mutex_lock(&router->stop_lock);
    router->stopping = true;
    pthread_cond_broadcast(&router->stop);
    pthread_mutex_unlock(&router->stop_lock);
    if (router->has_thread)
        (void)pthread_join(router->thread, NULL);
    while (router->tenants) {
        struct tenant *tenant = router->tenants;
        router->tenants = tenant->next;
        routing_put(tenant->routing);
        free(tenant);
    }
    pthread_cond_destroy(&router->stop);
    pthread_mutex_destroy(&router->stop_lock);
    pthread_rwlock_destroy(&router->lock);
    served_free(router->served);
    free(router);
}
