/* SPDX-License-Identifier: MIT */
#include "readers/recovery/reconcile.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/tenant_store.h"
#include "readers/recovery/lost.h"
#include "readers/recovery/stats.h"

#include <pthread.h>

#define STRAYS_AT_ONCE 200
#define OWNER_LEASES 3
#define REQUEUED_LEASES 60 /* a message that waits its turn is not sent each time */
#define TENANTS_MS 500     /* a tenant whose jobs begin to wait is served after so long at most */
#define REST_LEASES 3      /* without work before a tenant rests */

enum part { PART_SERVE = 1, PART_REPAIR = 2, PART_COMPARE = 4 }; /* of a look */

struct reconcile {
    struct reconcile_config cfg;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool stopping;
    int64_t repair_ms; /* when the next look is due */
    int64_t serve_ms;  /* when the tenants that wait are looked for */
    unsigned failing;  /* enum part: its last try failed; not 0: this was logged */
    struct lost *lost;
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

/* Tenants with blocked jobs are served at once, those with any active job once per lease: only
 * there is anything to repair. */
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

/* A tenant that fails does not hold up the others; the first failure is returned. */
static enum err_code pass(struct reconcile *reconcile, const struct desk_leads *leads,
                          struct err *err)
{
    for (size_t i = 0; i < leads->count; i++) {
        struct err failure = {0};
        enum err_code rc = repair_tenant(reconcile, &leads->items[i], &failure);
        if (rc == ERR_FENCED)
            desk_fence(reconcile->cfg.desk, &leads->items[i]);
        else if (rc && !err->code)
            *err = failure;
    }
    if (err->code || leads->count == 0)
        return err->code;
    return keep_gauges(reconcile, err);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static bool stops(struct reconcile *reconcile, int64_t until_ms)
{
    pthread_mutex_lock(&reconcile->lock);
    while (!reconcile->stopping &&
           clock_cond_wait_until(&reconcile->news, &reconcile->lock, until_ms))
        ;
    bool stopping = reconcile->stopping;
    pthread_mutex_unlock(&reconcile->lock);
    return stopping;
}

/* A tenant whose jobs begin to wait is served soon, whatever else is done here. */
static enum err_code serve_in_time(struct reconcile *reconcile, struct err *err)
{
    int64_t lease_ms = reconcile->cfg.site->cfg->fleet_lease_ms;
    if (clock_mono_ms() < reconcile->serve_ms)
        return ERR_OK;
    enum err_code rc = serve_tenants(reconcile, false, err);
    reconcile->serve_ms = clock_mono_ms() + (lease_ms < TENANTS_MS ? lease_ms : TENANTS_MS);
    return rc;
}

static bool lost_pause(void *arg, int64_t until_ms)
{
    struct reconcile *reconcile = arg;
    bool stopping = false;
    int64_t next_ms = 0;
    do {
        struct err ignored = {0}; /* the next look fails in the same way, and says so */
        (void)!serve_in_time(reconcile, &ignored);
        next_ms = until_ms < reconcile->serve_ms ? until_ms : reconcile->serve_ms;
        stopping = stops(reconcile, next_ms);
    } while (!stopping && clock_mono_ms() < until_ms);
    return stopping;
}

static void lost_fenced(void *arg, const struct recovery_lead *lead)
{
    const struct reconcile *reconcile = arg;
    desk_fence(reconcile->cfg.desk, lead);
}

/* One line when it begins to fail, one when all of it works again: an outage lasts for many looks,
 * and most looks do not try each part. */
static void note(struct reconcile *reconcile, enum part part, const struct err *err)
{
    unsigned before = reconcile->failing;
    if (err->code)
        reconcile->failing |= (unsigned)part;
    else
        reconcile->failing &= ~(unsigned)part;
    if (reconcile->failing && !before)
        log_err("recovery.reconcile.failed", err);
    if (!reconcile->failing && before)
        log_event(LOG_INFO, "recovery.reconcile.works");
}

/* What is due; false: some of it failed. */
static bool look(struct reconcile *reconcile)
{
    struct desk_leads leads = {0};
    struct err served = {0};
    struct err repaired = {0};
    struct err compared = {0};
    int64_t now_ms = clock_mono_ms();
    bool repairs = now_ms >= reconcile->repair_ms;
    bool compares = now_ms >= lost_due_ms(reconcile->lost);
    enum err_code rc =
        repairs ? serve_tenants(reconcile, true, &served) : serve_in_time(reconcile, &served);
    if (rc == ERR_OK && (repairs || compares))
        rc = desk_leads(reconcile->cfg.desk, &leads, &served);
    note(reconcile, PART_SERVE, &served);
    if (rc == ERR_OK && repairs) {
        reconcile->repair_ms = now_ms + reconcile->cfg.site->cfg->fleet_lease_ms;
        (void)!pass(reconcile, &leads, &repaired);
        note(reconcile, PART_REPAIR, &repaired);
    }
    if (rc == ERR_OK && compares) {
        (void)!lost_run(reconcile->lost, leads.items, leads.count, &compared);
        note(reconcile, PART_COMPARE, &compared);
    }
    free(leads.items);
    return rc == ERR_OK && !repaired.code && !compared.code;
}

static void *reconcile_main(void *arg)
{
    struct reconcile *reconcile = arg;
    bool stopping = false;
    while (!stopping) {
        bool fine = look(reconcile);
        int64_t now_ms = clock_mono_ms();
        int64_t next_ms = lost_due_ms(reconcile->lost);
        if (next_ms > reconcile->serve_ms)
            next_ms = reconcile->serve_ms;
        if (!fine || next_ms < now_ms)
            next_ms = now_ms + (fine ? 0 : TENANTS_MS);
        stopping = stops(reconcile, next_ms);
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
    const struct lost_config lost = {
        .site = cfg->site, .pause = lost_pause, .fenced = lost_fenced, .arg = reconcile};
    reconcile->cfg = *cfg;
    reconcile->lost = lost_new(&lost);
    if (!reconcile->lost) {
        free(reconcile);
        return err_set(err, ERR_NOMEM, "no memory for the reconciler");
    }
    pthread_mutex_init(&reconcile->lock, NULL);
    clock_cond_init(&reconcile->news);
    int failed = pthread_create(&reconcile->thread, NULL, reconcile_main, reconcile);
    if (failed) {
        lost_free(reconcile->lost);
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
    lost_free(reconcile->lost);
    free(reconcile);
}
