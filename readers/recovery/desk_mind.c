/* SPDX-License-Identifier: MIT */
#include "readers/recovery/desk_body.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/service/watchdog.h"
#include "readers/recovery/stats.h"

#include <jansson.h>

#define TURN_MS 120000 /* one tenant, with a database that is away or slow */

/* ---- messages ------------------------------------------------------------------------------- */

/* {"v":1,"recovery":id}: a job was blocked by it; with "now" an operator waits. {"v":1,"job":id}:
 * the message of a blocked job came back, and perhaps nobody told us its cause. Others are ticks.
 */
static bool read_wake(struct sv body, struct uuid *ret_id, bool *ret_now, bool *ret_reread)
{
    json_t *message = json_loadb(body.ptr, body.len, 0, NULL);
    const char *text = json_string_value(json_object_get(message, "recovery"));
    bool found = text && uuid_parse(sv_of(text), ret_id);
    *ret_now = json_is_true(json_object_get(message, "now"));
    *ret_reread = !found && json_is_string(json_object_get(message, "job"));
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
    if (now && lane_recall(tenant, id)) /* somebody waits for it: it is looked at again at once */
        agenda_done(desk->agenda, id, clock_mono_ms());
    (void)!agenda_wake(desk->agenda, &item, clock_mono_ms(), &err);
    pthread_cond_signal(&desk->due);
}

void desk_on_delivery(void *arg, struct bus_delivery **take_delivery)
{
    struct tenant *tenant = arg;
    struct desk *desk = tenant->desk;
    struct uuid id;
    bool now = false;
    bool again = false;
    bool wakes = read_wake((*take_delivery)->body, &id, &now, &again);
    pthread_mutex_lock(&desk->lock);
    tenant->heard = true;
    tenant->heard_ms = clock_mono_ms();
    if (again)
        tenant->reread_ms = 0;
    if (!tenant->leading || again) {
        desk->look = true;
        pthread_cond_signal(&desk->mind);
    }
    if (wakes)
        wake_cause(tenant, &id, now);
    pthread_mutex_unlock(&desk->lock);
    bus_settle(take_delivery, BUS_ACK);
}

void desk_step_down(struct tenant *tenant, const char *why)
{
    tenant->heard = false;
    if (!tenant->leading)
        return;
    tenant->leading = false;
    lanes_forget(tenant);
    agenda_forget(tenant->desk->agenda, tenant);
    metric_set(&stat_leading, metric_value(&stat_leading, 0) - 1);
    log_event(LOG_INFO, "recovery.stands_by", LOG_S("tenant", tenant->name), LOG_S("reason", why));
}

void desk_on_state(void *arg, enum bus_state state, uint32_t generation)
{
    struct tenant *tenant = arg;
    struct desk *desk = tenant->desk;
    (void)generation;
    pthread_mutex_lock(&desk->lock);
    if (state == BUS_DOWN)
        desk_step_down(tenant, "the connection to the broker is lost");
    desk->look = true;
    pthread_cond_signal(&desk->mind);
    pthread_mutex_unlock(&desk->lock);
}

/* ---- leading -------------------------------------------------------------------------------- */

static bool rests(struct desk *desk, const struct tenant *tenant)
{
    pthread_mutex_lock(&desk->lock);
    bool does = tenant->rests;
    pthread_mutex_unlock(&desk->lock);
    return does;
}

static void tick(struct desk *desk, const struct tenant *tenant)
{
    char body[80];
    char id[UUID_TEXT_SIZE];
    struct err err = {0};
    if (rests(desk, tenant))
        return;
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
    if (tenant->rests) {
        pthread_mutex_unlock(&desk->lock);
        return DUTY_NONE;
    }
    if (tenant->leading && now_ms - tenant->heard_ms > silence_ms(desk))
        desk_step_down(tenant, "no message came for long");
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
    if (rc == ERR_FENCED)
        desk_fence(desk, &lead);
    else
        log_err("recovery.lead.failed", &err);
}

void *desk_mind(void *arg)
{
    struct desk *desk = arg;
    int64_t tick_ms = clock_mono_ms();
    struct watchdog_loop loop = {.name = "recovery.mind"};
    bool stopping = false;
    while (!stopping) {
        bool ticks = clock_mono_ms() >= tick_ms;
        if (ticks)
            tick_ms = clock_mono_ms() + desk->cfg.site->cfg->recovery_tick_ms;
        for (struct tenant *at = desk_first(desk); at; at = at->next) {
            watchdog_turn(&loop, TURN_MS + desk->cfg.site->cfg->recovery_tick_ms);
            if (ticks)
                tick(desk, at);
            mind_tenant(desk, at);
        }
        watchdog_turn(&loop, TURN_MS + desk->cfg.site->cfg->recovery_tick_ms);
        pthread_mutex_lock(&desk->lock);
        while (!desk->stopping && !desk->look &&
               clock_cond_wait_until(&desk->mind, &desk->lock, tick_ms))
            ;
        desk->look = false;
        stopping = desk->stopping;
        pthread_mutex_unlock(&desk->lock);
    }
    watchdog_leave(&loop);
    store_thread_end();
    return NULL;
}
