/* SPDX-License-Identifier: MIT */
#include "webapp/entity.h"
#include "webapp/filter_view.h"
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/queue_body.h"
#include "webapp/web.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/model/job_request.h"
#include "common/store/overview_store.h"

#define DEPTH_MS 500 /* longest wait for the broker's counts, of all queues together */

static const struct entity_rule name_rule = {"queue name", QUEUE_NAME_SIZE, true};

/* ---- reading --------------------------------------------------------------------------------- */

/* Messages and consumers as the broker counts them; null when it cannot be asked. */
static void put_depth(const struct request *req, const struct job_queue *queue, int64_t deadline_ms,
                      json_t *view)
{
    char name[BUS_NAME_SIZE];
    uint32_t messages = 0;
    uint32_t consumers = 0;
    struct err err = {0};
    enum err_code rc = ERR_BROKER_AWAY;
    if (bus_publisher_state(req->web->pub) != BUS_DOWN && clock_mono_ms() < deadline_ms)
        rc = bus_queue_depth(req->web->pub, bus_submit_queue(queue->tenant, queue->name, name),
                             deadline_ms, &messages, &consumers, &err);
    bool known = rc == ERR_OK || rc == ERR_NOT_FOUND; /* declared with its first message */
    json_object_set_new(view, "depth", known ? json_integer(messages) : json_null());
    json_object_set_new(view, "consumers", known ? json_integer(consumers) : json_null());
}

/* Slots, and since when somebody waits: a wait that is only known to be no longer is said to be so.
 */
static void put_load(const struct queue_loads *loads, const struct job_queue *queue, json_t *view)
{
    const struct queue_load *load = queue_load_find(loads, queue->name);
    int64_t since_us = load && load->waiting_us ? load->waiting_us : loads->looked_until_us;
    bool bound = since_us && !(load && load->waiting_us);
    json_object_set_new(view, "workers", json_integer(load ? load->workers : 0));
    json_object_set_new(view, "takers", json_integer(load ? load->takers : 0));
    json_object_set_new(view, "waiting",
                        json_pack("{s:I,s:b}", "count", (json_int_t)(load ? load->waiting : 0),
                                  "isMore", loads->looked_until_us != 0));
    json_object_set_new(view, "slots", json_integer(load ? load->slots : 0));
    json_object_set_new(view, "busy", json_integer(load ? load->busy : 0));
    json_object_set_new(view, "longestWaitSeconds",
                        since_us ? json_real((double)(loads->now_us - since_us) / 1e6)
                                 : json_null());
    json_object_set_new(view, "longestWaitIsBound", json_boolean(bound));
}

static json_t *queue_view(const struct job_queue *queue)
{
    json_t *view = json_object();
    json_object_set_new(view, "name", json_string(queue->name));
    json_object_set_new(view, "priority", json_integer(queue->priority));
    json_object_set_new(view, "filter", view_text(queue->filter));
    json_object_set_new(view, "queueType", json_string(queue->queue_type));
    json_object_set_new(view, "enabled", json_boolean(queue->enabled));
    json_object_set_new(view, "maxMinutes",
                        queue->max_seconds ? json_integer(queue->max_seconds / 60) : json_null());
    json_object_set_new(view, "description", json_string(queue->description));
    json_object_set_new(view, "isDefault", json_boolean(strcmp(queue->name, QUEUE_DEFAULT) == 0));
    json_object_set_new(view, "version", json_integer(queue->version));
    json_object_set_new(view, "created", view_time(queue->created_us));
    json_object_set_new(view, "updated", view_time(queue->updated_us));
    return view;
}

/* The tenant's default queue exists from the first look on. */
static enum err_code ensure_tenant(const struct request *req, struct err *err)
{
    AUTO(routing_put) struct routing *routing = NULL;
    return router_get(req->web->router, req->who.tenant, &routing, err);
}

enum err_code queue_list(struct request *req, struct err *err)
{
    struct job_queue_list list = {0};
    struct queue_loads loads = {0};
    int64_t deadline_ms = clock_mono_ms() + DEPTH_MS;
    enum err_code rc = ensure_tenant(req, err);
    if (rc == ERR_OK)
        rc = overview_store_queues(req->web->store, req->who.tenant, &loads, err);
    if (rc == ERR_OK)
        rc = queue_store_list(req->web->store, req->who.tenant, &list, err);
    json_t *queues = json_array();
    for (size_t i = 0; rc == ERR_OK && i < list.count; i++) {
        json_t *view = queue_view(&list.items[i]);
        put_depth(req, &list.items[i], deadline_ms, view);
        put_load(&loads, &list.items[i], view);
        json_array_append_new(queues, view);
    }
    job_queue_list_done(&list);
    free(loads.items);
    if (rc) {
        json_decref(queues);
        return rc;
    }
    reply_json(req, MHD_HTTP_OK, json_pack("{s:o}", "queues", queues));
    return ERR_OK;
}

static void warn(json_t *warnings, const char *before, const char *name, const char *behind)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "%s%s%s", before, name, behind);
    json_array_append_new(warnings, json_string(text));
}

static enum err_code put_state(const struct request *req, const struct job_queue *queue,
                               json_t *view, struct err *err)
{
    struct queue_loads loads = {0};
    enum err_code rc = overview_store_queues(req->web->store, req->who.tenant, &loads, err);
    if (rc)
        return rc;
    put_depth(req, queue, clock_mono_ms() + DEPTH_MS, view);
    put_load(&loads, queue, view);
    const struct queue_load *load = queue_load_find(&loads, queue->name);
    json_t *warnings = json_object_get(view, "warnings");
    if (warnings && queue->enabled && !(load && load->takers))
        warn(warnings, "queue ", queue->name, " has no worker: its jobs wait until one serves it");
    free(loads.items);
    return ERR_OK;
}

static enum err_code reply_queue(struct request *req, unsigned status, const char *name,
                                 json_t *warnings, struct err *err)
{
    struct job_queue queue = {0};
    enum err_code rc = queue_store_get(req->web->store, req->who.tenant, name, &queue, err);
    if (rc) {
        json_decref(warnings);
        return rc;
    }
    json_t *view = queue_view(&queue);
    if (warnings)
        json_object_set_new(view, "warnings", warnings);
    rc = put_state(req, &queue, view, err);
    if (rc) {
        json_decref(view);
    } else {
        reply_json(req, status, view);
        reply_tag(req, queue.version);
    }
    job_queue_done(&queue);
    return rc;
}

enum err_code queue_get(struct request *req, struct err *err)
{
    char name[QUEUE_NAME_SIZE];
    enum err_code rc = entity_name(req, 0, &name_rule, name, err);
    if (rc == ERR_OK)
        rc = ensure_tenant(req, err);
    return rc ? rc : reply_queue(req, MHD_HTTP_OK, name, NULL, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* What the filter itself is told, and how it stands to those of the other queues. */
static json_t *warnings_of(const struct request *req, const struct job_queue *queue,
                           const struct filter *filter, const struct filter_report *report)
{
    AUTO(routing_put) struct routing *routing = NULL;
    struct err err = {0};
    json_t *warnings = filter_warnings_view(report);
    if (!filter && strcmp(queue->name, QUEUE_DEFAULT) != 0)
        warn(warnings, "queue ", queue->name, " has no filter: no job is ever put on it");
    if (router_get(req->web->router, req->who.tenant, &routing, &err) != ERR_OK)
        return warnings;
    for (size_t i = 0; filter && queue->enabled && i < routing_count(routing); i++) {
        const struct routing_queue *other = routing_at(routing, i);
        if (!other->filter || !other->queue.enabled || strcmp(other->queue.name, queue->name) == 0)
            continue;
        if (other->queue.priority > queue->priority && filter_covers(other->filter, filter))
            warn(warnings, "never reached: queue ", other->queue.name,
                 ", tried before, takes all of its jobs");
        if (other->queue.priority < queue->priority && filter_covers(filter, other->filter))
            warn(warnings, "queue ", other->queue.name,
                 ", tried later, is never reached now: all of its jobs are taken here");
    }
    return warnings;
}

static enum err_code store_queue(struct request *req, const struct job_queue *queue, bool *ret_made,
                                 struct err *err)
{
    uint32_t expect = EXPECT_ANY;
    uint32_t version = 0;
    enum err_code rc = entity_expect(req, &expect, err);
    if (rc == ERR_OK)
        rc = ensure_tenant(req, err);
    if (rc == ERR_OK)
        rc = queue_store_put(req->web->store, queue, expect, &version, ret_made, err);
    if (rc)
        return rc;
    router_changed(req->web->router, req->who.tenant);
    log_event(LOG_INFO, "queue.put", LOG_S("tenant", queue->tenant), LOG_S("queue", queue->name),
              LOG_S("user", req->who.user), LOG_U("version", version));
    return ERR_OK;
}

static enum err_code put_queue(struct request *req, json_t *root, struct filter_report *report,
                               struct err *err)
{
    AUTO(filter_free) struct filter *filter = NULL;
    struct job_queue queue = {.enabled = true};
    bool made = false;
    (void)snprintf(queue.tenant, sizeof(queue.tenant), "%s", req->who.tenant);
    (void)snprintf(queue.queue_type, sizeof(queue.queue_type), "%s",
                   req->web->cfg->amqp_queue_type);
    enum err_code rc = entity_name(req, 0, &name_rule, queue.name, err);
    if (rc == ERR_OK)
        rc = queue_body_read(root, req->web->cfg->limits_max_minutes, &queue, &filter, report, err);
    if (rc == ERR_OK)
        rc = store_queue(req, &queue, &made, err);
    if (rc == ERR_OK)
        rc = reply_queue(req, made ? MHD_HTTP_CREATED : MHD_HTTP_OK, queue.name,
                         warnings_of(req, &queue, filter, report), err);
    if (rc)
        return rc;
    if (made)
        reply_location(req);
    return ERR_OK;
}

/* A filter that is wrong is answered with its place. */
static enum err_code with_report(struct request *req,
                                 enum err_code (*use)(struct request *req, json_t *root,
                                                      struct filter_report *report,
                                                      struct err *err),
                                 struct err *err)
{
    JSON_AUTO json_t *root = NULL;
    struct filter_report report = {0};
    enum err_code rc = request_json(req, &root, err);
    if (rc == ERR_OK)
        rc = use(req, root, &report, err);
    if (rc != ERR_FILTER)
        return rc;
    reply_filter_problem(req, err, &report);
    return ERR_OK;
}

enum err_code queue_put(struct request *req, struct err *err)
{
    return with_report(req, put_queue, err);
}

static enum err_code check_queue(struct request *req, json_t *root, struct filter_report *report,
                                 struct err *err)
{
    AUTO(filter_free) struct filter *filter = NULL;
    struct job_queue queue = {.enabled = true};
    enum err_code rc = entity_name(req, 0, &name_rule, queue.name, err);
    if (rc == ERR_OK)
        rc = queue_body_read(root, req->web->cfg->limits_max_minutes, &queue, &filter, report, err);
    if (rc == ERR_OK)
        reply_json(req, MHD_HTTP_OK,
                   json_pack("{s:o}", "warnings", warnings_of(req, &queue, filter, report)));
    return rc;
}

enum err_code queue_check(struct request *req, struct err *err)
{
    return with_report(req, check_queue, err);
}

/* Messages that are still there are stale: their jobs have ended. */
static void delete_from_broker(const struct request *req, const char *name)
{
    char queue[BUS_NAME_SIZE];
    struct err err = {0};
    if (bus_queue_delete(req->web->pub, bus_submit_queue(req->who.tenant, name, queue), true,
                         clock_mono_ms() + DEPTH_MS, &err) != ERR_OK)
        log_event(LOG_WARN, "queue.delete.left_in_broker", LOG_S("queue", queue),
                  LOG_S("detail", err.text));
}

enum err_code queue_delete(struct request *req, struct err *err)
{
    char name[QUEUE_NAME_SIZE];
    enum err_code rc = entity_name(req, 0, &name_rule, name, err);
    if (rc == ERR_OK)
        rc = entity_delete(req, queue_store_delete, name, err);
    if (rc)
        return rc;
    router_changed(req->web->router, req->who.tenant);
    log_event(LOG_INFO, "queue.delete", LOG_S("tenant", req->who.tenant), LOG_S("queue", name),
              LOG_S("user", req->who.user));
    delete_from_broker(req, name);
    return ERR_OK;
}
