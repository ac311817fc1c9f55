/* SPDX-License-Identifier: MIT */
#include "readers/recovery/desk.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "readers/recovery/desk_body.h"
#include "readers/recovery/stats.h"

#include <assert.h>

#define RETRY_MS 1000
#define CREW_JUDGED_MS 5000

struct tenant *desk_first(struct desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    struct tenant *first = desk->tenants;
    pthread_mutex_unlock(&desk->lock);
    return first;
}

static struct tenant *find(struct desk *desk, const char *name)
{
    struct tenant *at = desk_first(desk);
    while (at && strcmp(at->name, name) != 0)
        at = at->next;
    return at;
}

void desk_fence(struct desk *desk, const struct recovery_lead *lead)
{
    struct tenant *tenant = find(desk, lead->tenant);
    metric_count(&stat_fenced, 0, 1);
    if (!tenant)
        return;
    pthread_mutex_lock(&desk->lock);
    if (tenant->leading && tenant->lead.fencing == lead->fencing) {
        log_event(LOG_WARN, "recovery.fenced", LOG_S("tenant", lead->tenant),
                  LOG_U("fencing", lead->fencing));
        desk_step_down(tenant, "another process leads");
        tenant->fenced = true;
    }
    pthread_mutex_unlock(&desk->lock);
}

/* ---- handling causes ------------------------------------------------------------------------ */

struct handling {
    struct tenant *tenant;
    const struct uuid *id;
    struct lane *lane; /* it has entered this one */
    bool parked;
};

/* A test is about to go out. */
static bool enter(void *arg, const char *user)
{
    struct handling *handling = arg;
    struct desk *desk = handling->tenant->desk;
    if (handling->lane)
        return true;
    pthread_mutex_lock(&desk->lock);
    enum lane_answer answer = lane_enter(handling->tenant, user, handling->id, &handling->lane);
    handling->parked = answer == LANE_PARKED;
    pthread_mutex_unlock(&desk->lock);
    return answer == LANE_ENTERED;
}

static int64_t handle(struct desk *desk, const struct recovery_lead *lead,
                      struct handling *handling)
{
    struct err err = {0};
    int64_t due_ms = 0;
    const struct handle_gate gate = {.enter = enter, .arg = handling};
    enum err_code rc = handle_cause(desk->cfg.site, lead, handling->id, &gate, &due_ms, &err);
    if (rc == ERR_OK && due_ms != HANDLE_LATER)
        return due_ms == HANDLE_GONE ? HANDLE_GONE : clock_mono_ms() + due_ms;
    if (rc == ERR_FENCED) {
        desk_fence(desk, lead);
        return HANDLE_GONE;
    }
    if (rc)
        log_err("recovery.failed", &err);
    return clock_mono_ms() + RETRY_MS;
}

/* The lock is held, and released meanwhile. lane: NULL, or the one that it has entered. */
static void handle_next(struct desk *desk, const struct agenda_item *item, struct lane *lane)
{
    struct tenant *tenant = item->owner;
    struct handling handling = {.tenant = tenant, .id = &item->id, .lane = lane};
    const struct recovery_lead lead = tenant->lead;
    int64_t due_ms = HANDLE_GONE;
    if (tenant->leading) {
        pthread_mutex_unlock(&desk->lock);
        due_ms = handle(desk, &lead, &handling);
        pthread_mutex_lock(&desk->lock);
    }
    if (handling.lane)
        lane_leave(handling.lane);
    if (!handling.parked)
        agenda_done(desk->agenda, &item->id, due_ms);
    pthread_cond_signal(&desk->due);
}

static void *work(void *arg);

/* The lock is held. Failure: the others do the work, more slowly. */
static int add_thread(struct desk *desk)
{
    struct crew_member *member = desk->crew;
    while (member->state == CREW_WORKS)
        member++;
    if (member->state == CREW_ENDED)
        (void)pthread_join(member->thread, NULL); /* it takes no lock any more */
    member->desk = desk;
    int failed = pthread_create(&member->thread, NULL, work, member);
    member->state = failed ? CREW_NONE : CREW_WORKS;
    desk->crew_count += failed == 0;
    return failed;
}

static void take_part(struct desk *desk, const struct agenda_item *item, struct lane *lane)
{
    if (desk->idle < desk->least_idle)
        desk->least_idle = desk->idle;
    if (desk->idle == 0 && desk->crew_count < CREW_MAX)
        (void)add_thread(desk);
    handle_next(desk, item, lane);
}

/* The lock is held. Whether this idle thread is one of those that were not needed since the last
 * judgement; one always stays idle. */
static bool ends_as_surplus(struct desk *desk, int64_t now_ms)
{
    if (now_ms - desk->judged_ms >= CREW_JUDGED_MS) {
        desk->surplus = desk->least_idle > 1 ? desk->least_idle - 1 : 0;
        desk->least_idle = desk->idle;
        desk->judged_ms = now_ms;
        pthread_cond_broadcast(&desk->due);
    }
    if (desk->surplus == 0 || desk->idle <= 1)
        return false;
    desk->surplus--;
    return true;
}

/* The lock is held, and released meanwhile. true: the thread ends. */
static bool idle_until(struct desk *desk, int64_t due_ms)
{
    int64_t judge_ms = desk->judged_ms + CREW_JUDGED_MS;
    bool judges = desk->crew_count > 1 && judge_ms < due_ms;
    desk->idle++;
    if (judges)
        (void)clock_cond_wait_until(&desk->due, &desk->lock, judge_ms);
    else if (due_ms == INT64_MAX)
        pthread_cond_wait(&desk->due, &desk->lock);
    else
        (void)clock_cond_wait_until(&desk->due, &desk->lock, due_ms);
    bool ends = !desk->stopping && ends_as_surplus(desk, clock_mono_ms());
    desk->idle--;
    return ends;
}

static void *work(void *arg)
{
    struct crew_member *self = arg;
    struct desk *desk = self->desk;
    struct agenda_item item;
    struct lane *lane = NULL;
    bool ends = false;
    pthread_mutex_lock(&desk->lock);
    while (!desk->stopping && !ends) {
        int64_t due_ms = agenda_due_ms(desk->agenda);
        if (lane_next(desk, &item, &lane))
            take_part(desk, &item, lane);
        else if (agenda_next(desk->agenda, clock_mono_ms(), &item))
            take_part(desk, &item, NULL);
        else
            ends = idle_until(desk, due_ms);
    }
    desk->crew_count--;
    self->state = CREW_ENDED;
    pthread_mutex_unlock(&desk->lock);
    store_thread_end();
    return NULL;
}

/* ---- open, serve, close --------------------------------------------------------------------- */

static enum err_code start_threads(struct desk *desk, struct err *err)
{
    int failed = pthread_create(&desk->minder, NULL, desk_mind, desk);
    desk->has_minder = failed == 0;
    pthread_mutex_lock(&desk->lock);
    if (!failed)
        failed = add_thread(desk);
    pthread_mutex_unlock(&desk->lock);
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

static void put_to_rest(struct tenant *tenant)
{
    set_rests(tenant, true);
    bus_consumer_free(tenant->consumer); /* no callback runs after this */
    tenant->consumer = NULL;
    log_event(LOG_INFO, "recovery.rests", LOG_S("tenant", tenant->name));
}

static bool take_fenced(struct tenant *tenant)
{
    pthread_mutex_lock(&tenant->desk->lock);
    bool fenced = tenant->fenced;
    tenant->fenced = false;
    pthread_mutex_unlock(&tenant->desk->lock);
    return fenced;
}

enum err_code desk_serve(struct desk *desk, const char *name, struct err *err)
{
    struct tenant *tenant = find(desk, name);
    enum err_code rc = tenant ? ERR_OK : add(desk, name, &tenant, err);
    if (rc)
        return rc;
    assert(tenant);
    tenant->needed_ms = clock_mono_ms();
    if (take_fenced(tenant) && tenant->consumer)
        put_to_rest(tenant);
    return tenant->consumer ? ERR_OK : wake(tenant, err);
}

void desk_rest(struct desk *desk, int64_t unneeded_ms)
{
    for (struct tenant *at = desk_first(desk); at; at = at->next) {
        if (at->consumer && clock_mono_ms() - at->needed_ms >= unneeded_ms)
            put_to_rest(at);
    }
}

void desk_close(struct desk *desk)
{
    bool joins[CREW_MAX] = {0};
    if (!desk)
        return;
    pthread_mutex_lock(&desk->lock);
    desk->stopping = true; /* nobody starts a thread any more */
    for (unsigned i = 0; i < CREW_MAX; i++)
        joins[i] = desk->crew[i].state != CREW_NONE;
    pthread_cond_broadcast(&desk->due);
    pthread_cond_broadcast(&desk->mind);
    pthread_mutex_unlock(&desk->lock);
    if (desk->has_minder)
        (void)pthread_join(desk->minder, NULL);
    for (unsigned i = 0; i < CREW_MAX; i++) {
        if (joins[i])
            (void)pthread_join(desk->crew[i].thread, NULL);
    }
    for (struct tenant *next = NULL, *at = desk->tenants; at; at = next) {
        next = at->next;
        bus_consumer_free(at->consumer);
        lanes_forget(at);
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
