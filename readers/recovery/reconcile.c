/* SPDX-License-Identifier: MIT */
#include "readers/recovery/reconcile.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/queue_store.h"
#include "common/store/tenant_store.h"
#include "readers/recovery/stats.h"

#include <pthread.h>

#define STRAYS_AT_ONCE 200
#define OWNER_LEASES 3
#define QUEUE_LEASES 15    /* between two looks at the queues */
#define REQUEUED_LEASES 60 /* a message that waits its turn is not sent each time */
#define DEPTH_MS 2000
#define TENANTS_MS 500 /* a tenant whose jobs begin to wait is served after so long at most */
#define REST_LEASES 3  /* without work before a tenant rests */

struct reconcile {
    struct reconcile_config cfg;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool stopping;
    int64_t repair_ms; /* when the next look is due */
    int64_t queues_ms; /* at the queues, too */
    pthread_t thread;
};

/* ---- tenants -------------------------------------------------------------------------------- */

/* Those that the setting lists, separated by commas. */
static enum err_code serve_listed(struct desk *desk, const char *list, struct err *err)
{
    enum err_code rc = ERR_OK;
    char name[TENANT_SIZE];
    while (*list && rc == ERR_OK) {
        size_t length = strcspn(list, ", ");
        if (length >= sizeof(name))
            return err_set(err, ERR_CONFIG, "recovery.tenants: '%.70s...' is too long", list);
        memcpy(name, list, length);
        name[length] = 0;
        if (length > 0)
            rc = desk_serve(desk, name, err);
        list += length;
        list += strspn(list, ", ");
    }
    return rc;
}

typedef enum err_code (*tenant_list_fn)(struct store *, struct tenant_name **, size_t *,
                                        struct err *);

static enum err_code serve_found(struct reconcile *reconcile, tenant_list_fn list, struct err *err)
{
    struct tenant_name *names = NULL;
    size_t count = 0;
    enum err_code rc = list(reconcile->cfg.site->test.store, &names, &count, err);
    for (size_t i = 0; i < count && rc == ERR_OK; i++)
        rc = desk_serve(reconcile->cfg.desk, names[i].text, err);
    free(names);
    return rc;
}

/* Whoever waits is served at once, whoever has work at all once per lease: only there is anything
 * to repair. */
static enum err_code serve_tenants(struct reconcile *reconcile, bool busy_too, struct err *err)
{
    const struct handle_site *site = reconcile->cfg.site;
    if (site->cfg->recovery_tenants[0])
        return serve_listed(reconcile->cfg.desk, site->cfg->recovery_tenants, err);
    enum err_code rc = serve_found(reconcile, tenant_store_list_waiting, err);
    if (rc == ERR_OK && busy_too)
        rc = serve_found(reconcile, tenant_store_list_busy, err);
    if (rc == ERR_OK && busy_too)
        desk_rest(reconcile->cfg.desk, (int64_t)site->cfg->fleet_lease_ms * REST_LEASES);
    return rc;
}

/* ---- repairs -------------------------------------------------------------------------------- */

static enum err_code repair(struct reconcile *reconcile, const struct recovery_lead *lead,
                            const struct stray *stray, struct err *err)
{
    static const char *const kinds[STRAY_KIND_COUNT] = {
        [STRAY_BLOCKED] = "BLOCKED without a blocked row",
        [STRAY_ROW] = "a blocked row without BLOCKED",
        [STRAY_OWNED] = "its owner is gone",
        [STRAY_QUEUED] = "its message is lost",
    };
    char id[UUID_TEXT_SIZE];
    bool done = false;
    enum err_code rc =
        reconcile_store_repair(reconcile->cfg.site->test.store, lead, stray, &done, err);
    if (rc || !done)
        return rc;
    stats_repaired(stray->kind);
    log_event(LOG_WARN, "recovery.repaired", LOG_S("tenant", lead->tenant),
              LOG_S("job", uuid_text(&stray->job, id)), LOG_S("was", kinds[stray->kind]));
    return ERR_OK;
}

static struct stray_search search_of(const struct reconcile *reconcile,
                                     const struct recovery_lead *lead)
{
    int64_t lease_ms = reconcile->cfg.site->cfg->fleet_lease_ms;
    return (struct stray_search){.tenant = lead->tenant,
                                 .limit = STRAYS_AT_ONCE,
                                 .owner_ms = lease_ms * OWNER_LEASES,
                                 .requeued_ms = lease_ms * REQUEUED_LEASES};
}

static enum err_code repair_all(struct reconcile *reconcile, const struct recovery_lead *lead,
                                const struct stray_list *list, struct err *err)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < list->count && rc == ERR_OK; i++)
        rc = repair(reconcile, lead, &list->items[i], err);
    return rc;
}

static enum err_code repair_tenant(struct reconcile *reconcile, const struct recovery_lead *lead,
                                   struct err *err)
{
    const struct stray_search search = search_of(reconcile, lead);
    struct stray_list list = {0};
    enum err_code rc = reconcile_store_find(reconcile->cfg.site->test.store, &search, &list, err);
    if (rc == ERR_OK)
        rc = repair_all(reconcile, lead, &list, err);
    free(list.items);
    return rc;
}

/* true: the broker has told that nothing is ready in it. A queue that somebody deleted and another
 * declared again is empty, and the jobs on it would wait for ever. */
static bool is_empty(const struct reconcile *reconcile, const struct job_queue *queue)
{
    char name[BUS_NAME_SIZE];
    uint32_t messages = 0;
    struct err err = {0};
    enum err_code rc = bus_queue_depth(reconcile->cfg.site->test.publisher,
                                       bus_submit_queue(queue->tenant, queue->name, name),
                                       clock_mono_ms() + DEPTH_MS, &messages, NULL, &err);
    return rc == ERR_NOT_FOUND || (rc == ERR_OK && messages == 0);
}

static enum err_code repair_queue(struct reconcile *reconcile, const struct recovery_lead *lead,
                                  const struct job_queue *queue, struct err *err)
{
    const struct stray_search search = search_of(reconcile, lead);
    struct stray_list list = {0};
    if (!is_empty(reconcile, queue))
        return ERR_OK;
    enum err_code rc = reconcile_store_find_queued(reconcile->cfg.site->test.store, &search,
                                                   queue->name, &list, err);
    if (rc == ERR_OK)
        rc = repair_all(reconcile, lead, &list, err);
    free(list.items);
    return rc;
}

static enum err_code repair_queues(struct reconcile *reconcile, const struct recovery_lead *lead,
                                   struct err *err)
{
    struct job_queue_list list = {0};
    enum err_code rc = queue_store_list(reconcile->cfg.site->test.store, lead->tenant, &list, err);
    for (size_t i = 0; i < list.count && rc == ERR_OK; i++)
        rc = repair_queue(reconcile, lead, &list.items[i], err);
    job_queue_list_done(&list);
    return rc;
}

static enum err_code keep_gauges(struct reconcile *reconcile, struct err *err)
{
    uint64_t blocked[JOB_CONDITION_COUNT];
    struct outbox_counters outbox;
    outbox_counters(reconcile->cfg.site->outbox, &outbox);
    stats_relayed(outbox.relayed);
    enum err_code rc = recovery_store_counts(reconcile->cfg.site->test.store, blocked, err);
    if (rc == ERR_OK)
        stats_blocked(blocked);
    return rc;
}

static enum err_code pass(struct reconcile *reconcile, struct err *err)
{
    struct desk_leads leads = {0};
    int64_t lease_ms = reconcile->cfg.site->cfg->fleet_lease_ms;
    bool queues_too = clock_mono_ms() >= reconcile->queues_ms;
    enum err_code rc = desk_leads(reconcile->cfg.desk, &leads, err);
    for (size_t i = 0; i < leads.count && rc == ERR_OK; i++) {
        rc = repair_tenant(reconcile, &leads.items[i], err);
        if (rc == ERR_OK && queues_too)
            rc = repair_queues(reconcile, &leads.items[i], err);
    }
    if (rc == ERR_OK && queues_too && leads.count > 0)
        reconcile->queues_ms = clock_mono_ms() + lease_ms * QUEUE_LEASES;
    if (rc == ERR_OK && leads.count > 0)
        rc = keep_gauges(reconcile, err);
    free(leads.items);
    return rc;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static enum err_code look(struct reconcile *reconcile, int64_t now_ms, struct err *err)
{
    bool repairs = now_ms >= reconcile->repair_ms;
    enum err_code rc = serve_tenants(reconcile, repairs, err);
    if (rc || !repairs)
        return rc;
    reconcile->repair_ms = now_ms + reconcile->cfg.site->cfg->fleet_lease_ms;
    return pass(reconcile, err);
}

static void *reconcile_main(void *arg)
{
    struct reconcile *reconcile = arg;
    int64_t lease_ms = reconcile->cfg.site->cfg->fleet_lease_ms;
    bool stopping = false;
    while (!stopping) {
        struct err err = {0};
        int64_t now_ms = clock_mono_ms();
        int64_t next_ms = now_ms + (lease_ms < TENANTS_MS ? lease_ms : TENANTS_MS);
        enum err_code rc = look(reconcile, now_ms, &err);
        if (rc)
            log_err("recovery.reconcile.failed", &err);
        if (rc == ERR_FENCED)
            desk_fence(reconcile->cfg.desk);
        pthread_mutex_lock(&reconcile->lock);
        while (!reconcile->stopping &&
               clock_cond_wait_until(&reconcile->news, &reconcile->lock, next_ms))
            ;
        stopping = reconcile->stopping;
        pthread_mutex_unlock(&reconcile->lock);
    }
    store_thread_end();
    return NULL;
}

enum err_code reconcile_start(const struct reconcile_config *cfg, struct reconcile **ret_reconcile,
                              struct err *err)
{
    struct reconcile *reconcile = calloc(1, sizeof(*reconcile));
    if (!reconcile)
        return err_set(err, ERR_NOMEM, "no memory for the reconciler");
    reconcile->cfg = *cfg;
    pthread_mutex_init(&reconcile->lock, NULL);
    clock_cond_init(&reconcile->news);
    int failed = pthread_create(&reconcile->thread, NULL, reconcile_main, reconcile);
    if (failed) {
        free(reconcile);
        return err_set_errno(err, ERR_NOMEM, failed, "cannot start the reconciler");
    }
    *ret_reconcile = reconcile;
    return ERR_OK;
}

void reconcile_stop(struct reconcile *reconcile)
{
    if (!reconcile)
        return;
    pthread_mutex_lock(&reconcile->lock);
    reconcile->stopping = true;
    pthread_cond_signal(&reconcile->news);
    pthread_mutex_unlock(&reconcile->lock);
    (void)pthread_join(reconcile->thread, NULL);
    pthread_cond_destroy(&reconcile->news);
    pthread_mutex_destroy(&reconcile->lock);
    free(reconcile);
}
