/* SPDX-License-Identifier: MIT */
#include "readers/recovery/desk.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/service/daemon.h"
#include "readers/recovery/desk_body.h"
#include "readers/recovery/stats.h"

#include <assert.h>

#define RETRY_MS 1000

void desk_fence(struct desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    bool first = !desk->fenced;
    desk->fenced = true;
    pthread_mutex_unlock(&desk->lock);
    metric_count(&stat_fenced, 0, 1);
    if (first)
        daemon_ask_stop();
}

bool desk_is_fenced(struct desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    bool fenced = desk->fenced;
    pthread_mutex_unlock(&desk->lock);
    return fenced;
}

struct tenant *desk_first(struct desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    struct tenant *first = desk->tenants;
    pthread_mutex_unlock(&desk->lock);
    return first;
}

/* ---- handling causes ------------------------------------------------------------------------ */

static int64_t handle(struct desk *desk, const struct recovery_lead *lead, const struct uuid *id)
{
    struct err err = {0};
    int64_t due_ms = 0;
    enum err_code rc = handle_cause(desk->cfg.site, lead, id, &due_ms, &err);
    if (rc == ERR_OK)
        return due_ms == HANDLE_GONE ? HANDLE_GONE : clock_mono_ms() + due_ms;
    log_err(rc == ERR_FENCED ? "recovery.fenced" : "recovery.failed", &err);
    if (rc == ERR_FENCED) {
        desk_fence(desk);
        return HANDLE_GONE;
    }
    return clock_mono_ms() + RETRY_MS;
}

/* The lock is held, and released meanwhile. */
static void handle_next(struct desk *desk, const struct agenda_item *item)
{
    const struct tenant *tenant = item->owner;
    const struct recovery_lead lead = tenant->lead;
    int64_t due_ms = HANDLE_GONE;
    if (tenant->leading && !desk->fenced) {
        pthread_mutex_unlock(&desk->lock);
        due_ms = handle(desk, &lead, &item->id);
        pthread_mutex_lock(&desk->lock);
    }
    agenda_done(desk->agenda, &item->id, due_ms);
    pthread_cond_signal(&desk->due);
}

static void *work(void *arg)
{
    struct desk *desk = arg;
    struct agenda_item item;
    pthread_mutex_lock(&desk->lock);
    while (!desk->stopping) {
        int64_t now_ms = clock_mono_ms();
        int64_t due_ms = agenda_due_ms(desk->agenda);
        if (agenda_next(desk->agenda, now_ms, &item))
            handle_next(desk, &item);
        else if (due_ms == INT64_MAX)
            pthread_cond_wait(&desk->due, &desk->lock);
        else
            (void)clock_cond_wait_until(&desk->due, &desk->lock, due_ms);
    }
    pthread_mutex_unlock(&desk->lock);
    store_thread_end();
    return NULL;
}

/* ---- open, serve, close --------------------------------------------------------------------- */

static enum err_code start_threads(struct desk *desk, struct err *err)
{
    unsigned wanted = desk->cfg.site->cfg->recovery_testers;
    int failed = pthread_create(&desk->minder, NULL, desk_mind, desk);
    desk->has_minder = failed == 0;
    while (!failed && desk->crew_count < wanted && desk->crew_count < CREW_MAX) {
        failed = pthread_create(&desk->crew[desk->crew_count], NULL, work, desk);
        desk->crew_count += failed == 0;
    }
    return failed ? err_set_errno(err, ERR_NOMEM, failed, "cannot start recovery's threads")
                  : ERR_OK;
}

enum err_code desk_open(const struct desk_config *cfg, struct desk **ret_desk, struct err *err)
{
    struct desk *desk = calloc(1, sizeof(*desk));
    if (!desk)
        return err_set(err, ERR_NOMEM, "no memory for recovery");
    desk->cfg = *cfg;
    desk->self = uuid_v7();
    pthread_mutex_init(&desk->lock, NULL);
    clock_cond_init(&desk->due);
    clock_cond_init(&desk->mind);
    desk->agenda = agenda_new();
    enum err_code rc =
        desk->agenda ? start_threads(desk, err) : err_set(err, ERR_NOMEM, "no memory for recovery");
    if (rc) {
        desk_close(desk);
        return rc;
    }
    *ret_desk = desk;
    return ERR_OK;
}

static enum err_code consume(struct tenant *tenant, struct err *err)
{
    char queue[BUS_NAME_SIZE];
    const struct bus_consumer_setup setup = {.queue = bus_recovery_queue(tenant->name, queue),
                                             .queue_kind = BUS_QUEUE_RECOVERY,
                                             .binding_key = tenant->name,
                                             .arg = tenant,
                                             .on_delivery = desk_on_delivery,
                                             .on_state = desk_on_state};
    enum err_code rc = bus_consumer_open(tenant->desk->cfg.bus, &setup, &tenant->consumer, err);
    if (rc == ERR_OK)
        bus_consumer_set_channels(tenant->consumer, 1);
    return rc;
}

static struct tenant *find(struct desk *desk, const char *name)
{
    struct tenant *at = desk_first(desk);
    while (at && strcmp(at->name, name) != 0)
        at = at->next;
    return at;
}

/* It rests until it is waked. */
static enum err_code add(struct desk *desk, const char *name, struct tenant **ret_tenant,
                         struct err *err)
{
    struct tenant *tenant = calloc(1, sizeof(*tenant));
    if (!tenant)
        return err_set(err, ERR_NOMEM, "no memory for a tenant");
    tenant->desk = desk;
    tenant->rests = true;
    (void)snprintf(tenant->name, sizeof(tenant->name), "%s", name);
    pthread_mutex_lock(&desk->lock);
    tenant->next = desk->tenants;
    desk->tenants = tenant;
    pthread_mutex_unlock(&desk->lock);
    *ret_tenant = tenant;
    return ERR_OK;
}

static void set_rests(struct tenant *tenant, bool rests)
{
    struct desk *desk = tenant->desk;
    pthread_mutex_lock(&desk->lock);
    tenant->rests = rests;
    if (rests)
        desk_step_down(tenant, "it has no work");
    tenant->heard = false;
    pthread_mutex_unlock(&desk->lock);
}

static enum err_code wake(struct tenant *tenant, struct err *err)
{
    set_rests(tenant, false);
    enum err_code rc = consume(tenant, err);
    if (rc)
        set_rests(tenant, true);
    else
        log_event(LOG_INFO, "recovery.serves", LOG_S("tenant", tenant->name));
    return rc;
}

enum err_code desk_serve(struct desk *desk, const char *name, struct err *err)
{
    struct tenant *tenant = find(desk, name);
    enum err_code rc = tenant ? ERR_OK : add(desk, name, &tenant, err);
    if (rc)
        return rc;
    assert(tenant);
    tenant->needed_ms = clock_mono_ms();
    return tenant->consumer ? ERR_OK : wake(tenant, err);
}

void desk_rest(struct desk *desk, int64_t unneeded_ms)
{
    for (struct tenant *at = desk_first(desk); at; at = at->next) {
        if (!at->consumer || clock_mono_ms() - at->needed_ms < unneeded_ms)
            continue;
        set_rests(at, true);
        bus_consumer_free(at->consumer); /* no callback runs after this */
        at->consumer = NULL;
        log_event(LOG_INFO, "recovery.rests", LOG_S("tenant", at->name));
    }
}

void desk_close(struct desk *desk)
{
    if (!desk)
        return;
    pthread_mutex_lock(&desk->lock);
    desk->stopping = true;
    pthread_cond_broadcast(&desk->due);
    pthread_cond_broadcast(&desk->mind);
    pthread_mutex_unlock(&desk->lock);
    if (desk->has_minder)
        (void)pthread_join(desk->minder, NULL);
    for (unsigned i = 0; i < desk->crew_count; i++)
        (void)pthread_join(desk->crew[i], NULL);
    for (struct tenant *next = NULL, *at = desk->tenants; at; at = next) {
        next = at->next;
        bus_consumer_free(at->consumer);
        free(at);
    }
    agenda_free(desk->agenda);
    pthread_cond_destroy(&desk->due);
    pthread_cond_destroy(&desk->mind);
    pthread_mutex_destroy(&desk->lock);
    free(desk);
}

enum err_code desk_leads(struct desk *desk, struct desk_leads *ret_leads, struct err *err)
{
    size_t count = 0;
    pthread_mutex_lock(&desk->lock);
    for (const struct tenant *at = desk->tenants; at; at = at->next)
        count += at->leading;
    struct recovery_lead *leads = calloc(count + 1, sizeof(*leads));
    size_t n = 0;
    for (const struct tenant *at = desk->tenants; at && leads; at = at->next) {
        if (at->leading)
            leads[n++] = at->lead;
    }
    pthread_mutex_unlock(&desk->lock);
    if (!leads)
        return err_set(err, ERR_NOMEM, "no memory for a list of tenants");
    *ret_leads = (struct desk_leads){leads, n};
    return ERR_OK;
}
