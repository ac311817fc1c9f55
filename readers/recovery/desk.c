/* SPDX-License-Identifier: MIT */
#include "readers/recovery/desk.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/consumer.h"
#include "common/service/daemon.h"
#include "readers/recovery/agenda.h"
#include "readers/recovery/stats.h"

#include <jansson.h>
#include <pthread.h>

#define RETRY_MS 1000
#define CREW_MAX 64

struct tenant {
    struct tenant *next;
    struct desk *desk;
    char name[TENANT_SIZE];
    struct bus_consumer *consumer;
    /* lock: */
    bool heard; /* a message came since the mind last looked */
    int64_t heard_ms;
    bool leading;
    struct recovery_lead lead;
    int64_t renew_ms;
    int64_t reread_ms;
};

struct desk {
    struct desk_config cfg;
    struct uuid self;
    pthread_mutex_t lock;
    pthread_cond_t due;  /* the agenda has changed */
    pthread_cond_t mind; /* leading has */
    struct agenda *agenda;
    struct tenant *tenants;
    bool stopping;
    bool fenced;
    bool look; /* at the tenants, at once */
    pthread_t minder;
    pthread_t crew[CREW_MAX];
    unsigned crew_count;
    bool has_minder;
};

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

/* ---- messages ------------------------------------------------------------------------------- */

/* {"v":1,"recovery":id}: a job was blocked by it; with "now" an operator waits. Others are ticks.
 */
static bool read_wake(struct sv body, struct uuid *ret_id, bool *ret_now)
{
    json_t *message = json_loadb(body.ptr, body.len, 0, NULL);
    const char *text = json_string_value(json_object_get(message, "recovery"));
    bool found = text && uuid_parse(sv_of(text), ret_id);
    *ret_now = json_is_true(json_object_get(message, "now"));
    json_decref(message);
    return found;
}

static void wake_cause(struct tenant *tenant, const struct uuid *id, bool now)
{
    struct desk *desk = tenant->desk;
    const struct agenda_item item = {*id, tenant};
    struct err err = {0};
    if (!tenant->leading || (!now && agenda_has(desk->agenda, id)))
        return;
    (void)!agenda_wake(desk->agenda, &item, clock_mono_ms(), &err);
    pthread_cond_signal(&desk->due);
}

static void on_delivery(void *arg, struct bus_delivery **take_delivery)
{
    struct tenant *tenant = arg;
    struct desk *desk = tenant->desk;
    struct uuid id;
    bool now = false;
    bool wakes = read_wake((*take_delivery)->body, &id, &now);
    pthread_mutex_lock(&desk->lock);
    tenant->heard = true;
    tenant->heard_ms = clock_mono_ms();
    if (!tenant->leading) {
        desk->look = true;
        pthread_cond_signal(&desk->mind);
    }
    if (wakes)
        wake_cause(tenant, &id, now);
    pthread_mutex_unlock(&desk->lock);
    bus_settle(take_delivery, BUS_ACK);
}

/* The lock is held. */
static void step_down(struct tenant *tenant, const char *why)
{
    tenant->heard = false;
    if (!tenant->leading)
        return;
    tenant->leading = false;
    agenda_forget(tenant->desk->agenda, tenant);
    metric_set(&stat_leading, metric_value(&stat_leading, 0) - 1);
    log_event(LOG_INFO, "recovery.stands_by", LOG_S("tenant", tenant->name), LOG_S("reason", why));
}

static void on_state(void *arg, enum bus_state state, uint32_t generation)
{
    struct tenant *tenant = arg;
    struct desk *desk = tenant->desk;
    (void)generation;
    pthread_mutex_lock(&desk->lock);
    if (state == BUS_DOWN)
        step_down(tenant, "the connection to the broker is lost");
    desk->look = true;
    pthread_cond_signal(&desk->mind);
    pthread_mutex_unlock(&desk->lock);
}

/* ---- leading -------------------------------------------------------------------------------- */

static void tick(struct desk *desk, const struct tenant *tenant)
{
    char body[80];
    char id[UUID_TEXT_SIZE];
    struct err err = {0};
    (void)snprintf(body, sizeof(body), "{\"v\":1,\"tick\":\"%s\"}", uuid_text(&desk->self, id));
    const struct bus_message message = {.exchange = BUS_RECOVERY,
                                        .routing_key = tenant->name,
                                        .body = sv_of(body),
                                        .transient = true};
    (void)!bus_publish(desk->cfg.publisher, &message, NULL, NULL, &err);
}

static enum err_code reread(struct desk *desk, struct tenant *tenant, struct err *err)
{
    struct recovery_list list = {0};
    enum err_code rc = recovery_store_list(desk->cfg.site->test.store, tenant->name, &list, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&desk->lock);
    int64_t now_ms = clock_mono_ms();
    for (size_t i = 0; i < list.count && rc == ERR_OK && tenant->leading; i++) {
        const struct agenda_item item = {list.items[i].id, tenant};
        rc = agenda_put(desk->agenda, &item, now_ms + list.items[i].next_in_us / 1000, err);
    }
    tenant->reread_ms = now_ms + desk->cfg.site->cfg->recovery_reread_ms;
    pthread_cond_broadcast(&desk->due);
    pthread_mutex_unlock(&desk->lock);
    free(list.items);
    return rc;
}

static enum err_code take_lead(struct desk *desk, struct tenant *tenant, struct err *err)
{
    struct recovery_lead lead = {.holder = desk->self};
    memcpy(lead.tenant, tenant->name, sizeof(lead.tenant));
    enum err_code rc = recovery_lead_take(desk->cfg.site->test.store, &lead, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&desk->lock);
    tenant->lead = lead;
    tenant->leading = true;
    tenant->heard_ms = clock_mono_ms();
    tenant->renew_ms = tenant->heard_ms + desk->cfg.site->cfg->fleet_lease_ms;
    pthread_mutex_unlock(&desk->lock);
    metric_count(&stat_takeovers, 0, 1);
    metric_set(&stat_leading, metric_value(&stat_leading, 0) + 1);
    log_event(LOG_INFO, "recovery.leads", LOG_S("tenant", tenant->name),
              LOG_U("fencing", lead.fencing));
    return reread(desk, tenant, err);
}

static int64_t silence_ms(const struct desk *desk)
{
    const struct config *cfg = desk->cfg.site->cfg;
    int64_t ticks_ms = (int64_t)cfg->recovery_tick_ms * 3;
    return ticks_ms > cfg->fleet_lease_ms ? ticks_ms : cfg->fleet_lease_ms;
}

enum duty { DUTY_NONE, DUTY_TAKE, DUTY_RENEW, DUTY_REREAD };

static enum duty duty_of(struct desk *desk, struct tenant *tenant, struct recovery_lead *ret_lead)
{
    enum duty duty = DUTY_NONE;
    pthread_mutex_lock(&desk->lock);
    int64_t now_ms = clock_mono_ms();
    if (tenant->leading && now_ms - tenant->heard_ms > silence_ms(desk))
        step_down(tenant, "no message came for long");
    if (!tenant->leading)
        duty = tenant->heard ? DUTY_TAKE : DUTY_NONE;
    else if (now_ms >= tenant->renew_ms)
        duty = DUTY_RENEW;
    else if (now_ms >= tenant->reread_ms)
        duty = DUTY_REREAD;
    *ret_lead = tenant->lead;
    if (duty == DUTY_RENEW)
        tenant->renew_ms = now_ms + desk->cfg.site->cfg->fleet_lease_ms;
    pthread_mutex_unlock(&desk->lock);
    return duty;
}

static void mind_tenant(struct desk *desk, struct tenant *tenant)
{
    struct err err = {0};
    struct recovery_lead lead;
    enum err_code rc = ERR_OK;
    switch (duty_of(desk, tenant, &lead)) {
    case DUTY_TAKE:
        rc = take_lead(desk, tenant, &err);
        break;
    case DUTY_RENEW:
        rc = recovery_lead_renew(desk->cfg.site->test.store, &lead, &err);
        break;
    case DUTY_REREAD:
        rc = reread(desk, tenant, &err);
        break;
    case DUTY_NONE:
        break;
    }
    if (rc == ERR_OK)
        return;
    log_err("recovery.lead.failed", &err);
    if (rc == ERR_FENCED)
        desk_fence(desk);
}

/* The list only grows, at its head. */
static struct tenant *first_tenant(struct desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    struct tenant *first = desk->tenants;
    pthread_mutex_unlock(&desk->lock);
    return first;
}

static void *mind(void *arg)
{
    struct desk *desk = arg;
    int64_t tick_ms = clock_mono_ms();
    bool stopping = false;
    while (!stopping) {
        bool ticks = clock_mono_ms() >= tick_ms;
        if (ticks)
            tick_ms = clock_mono_ms() + desk->cfg.site->cfg->recovery_tick_ms;
        for (struct tenant *at = first_tenant(desk); at; at = at->next) {
            if (ticks)
                tick(desk, at);
            mind_tenant(desk, at);
        }
        pthread_mutex_lock(&desk->lock);
        while (!desk->stopping && !desk->look &&
               clock_cond_wait_until(&desk->mind, &desk->lock, tick_ms))
            ;
        desk->look = false;
        stopping = desk->stopping;
        pthread_mutex_unlock(&desk->lock);
    }
    store_thread_end();
    return NULL;
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
    int failed = pthread_create(&desk->minder, NULL, mind, desk);
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
                                             .on_delivery = on_delivery,
                                             .on_state = on_state};
    enum err_code rc = bus_consumer_open(tenant->desk->cfg.bus, &setup, &tenant->consumer, err);
    if (rc == ERR_OK)
        bus_consumer_set_channels(tenant->consumer, 1);
    return rc;
}

enum err_code desk_serve(struct desk *desk, const char *name, struct err *err)
{
    for (const struct tenant *at = first_tenant(desk); at; at = at->next) {
        if (strcmp(at->name, name) == 0)
            return ERR_OK;
    }
    struct tenant *tenant = calloc(1, sizeof(*tenant));
    if (!tenant)
        return err_set(err, ERR_NOMEM, "no memory for a tenant");
    tenant->desk = desk;
    (void)snprintf(tenant->name, sizeof(tenant->name), "%s", name);
    enum err_code rc = consume(tenant, err);
    if (rc) {
        free(tenant);
        return rc;
    }
    pthread_mutex_lock(&desk->lock);
    tenant->next = desk->tenants;
    desk->tenants = tenant;
    pthread_mutex_unlock(&desk->lock);
    log_event(LOG_INFO, "recovery.serves", LOG_S("tenant", name));
    return ERR_OK;
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
