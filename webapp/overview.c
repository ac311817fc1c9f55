/* SPDX-License-Identifier: MIT */
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/web.h"

#include "common/base/clock.h"
#include "common/store/overview_store.h"

#define MINUTES_DEFAULT 60
#define MINUTES_MAX 1440
#define MINUTE_US INT64_C(60000000)

/* {"count": 7, "isMore": false}; nothing is counted further than the limit. */
static json_t *count_view(uint64_t count)
{
    bool more = count > OVERVIEW_COUNT_MAX;
    return json_pack("{s:I,s:b}", "count", (json_int_t)(more ? OVERVIEW_COUNT_MAX : count),
                     "isMore", more);
}

/* ---- rates ----------------------------------------------------------------------------------- */

static json_t *rate_view(uint64_t minute, const struct job_rate *rate)
{
    return json_pack("{s:o,s:I,s:I,s:I,s:I,s:I}", "minute", view_time((int64_t)minute * MINUTE_US),
                     "accepted", (json_int_t)rate->accepted, "started", (json_int_t)rate->started,
                     "finished", (json_int_t)rate->finished, "failed", (json_int_t)rate->failed,
                     "cancelled", (json_int_t)rate->cancelled);
}

/* A row for each minute, also for those in which nothing happened. */
static json_t *rate_views(const struct job_rate_list *list, uint64_t first, uint64_t last)
{
    static const struct job_rate nothing = {0};
    json_t *views = json_array();
    size_t at = 0;
    for (uint64_t minute = first; minute <= last; minute++) {
        while (at < list->count && list->items[at].minute < minute)
            at++;
        bool found = at < list->count && list->items[at].minute == minute;
        json_array_append_new(views, rate_view(minute, found ? &list->items[at] : &nothing));
    }
    return views;
}

static enum err_code put_rates(const struct request *req, int64_t now_us, json_t *view,
                               struct err *err)
{
    struct job_rate_list list = {0};
    uint64_t minutes = MINUTES_DEFAULT;
    enum err_code rc = request_number(req, "minutes", 1, MINUTES_MAX, &minutes, err);
    uint64_t last = (uint64_t)(now_us / MINUTE_US);
    uint64_t first = last - minutes + 1;
    if (rc == ERR_OK)
        rc = rate_store_read(req->web->store, req->who.tenant, first, &list, err);
    if (rc)
        return rc;
    json_object_set_new(view, "rates", rate_views(&list, first, last));
    free(list.items);
    return ERR_OK;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static json_t *state_views(const struct overview *overview)
{
    json_t *views = json_object();
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        if (!job_state_ends((enum job_state)i))
            json_object_set_new(views, job_state_text((enum job_state)i),
                                count_view(overview->jobs[i]));
    }
    return views;
}

static json_t *oldest_view(const struct overview_job *job, int64_t now_us, bool runs)
{
    if (!job->found)
        return json_null();
    json_t *view = json_object();
    json_object_set_new(view, "id", view_uuid(&job->id));
    json_object_set_new(view, "name", json_string(job->name));
    json_object_set_new(view, "owner", json_string(job->owner));
    json_object_set_new(view, "queue", json_string(job->queue));
    json_object_set_new(view, runs ? "started" : "created", view_time(job->since_us));
    json_object_set_new(view, "seconds", json_real((double)(now_us - job->since_us) / 1e6));
    if (runs)
        json_object_set_new(view, "maxSeconds", json_integer(job->max_seconds));
    return view;
}

static json_t *blocked_views(const struct overview *overview)
{
    json_t *views = json_array();
    for (size_t i = 0; i < overview->blocked_count; i++) {
        const struct overview_blocked *row = &overview->blocked[i];
        json_array_append_new(views, json_pack("{s:s,s:i,s:I,s:o}", "condition",
                                               job_condition_text(row->condition), "groups",
                                               (int)row->causes, "jobs", (json_int_t)row->jobs,
                                               "since", view_time(row->first_us)));
    }
    return views;
}

/* Queues with waiting jobs that no worker takes. */
static enum err_code put_unserved(const struct request *req, json_t *view, struct err *err)
{
    struct queue_loads loads = {0};
    json_t *queues = json_array();
    enum err_code rc = overview_store_queues(req->web->store, req->who.tenant, &loads, err);
    for (size_t i = 0; i < loads.count; i++) {
        const struct queue_load *load = &loads.items[i];
        if (queue_load_unserved(load))
            json_array_append_new(queues,
                                  json_pack("{s:s,s:{s:I,s:b},s:f,s:I}", "queue", load->queue,
                                            "waiting", "count", (json_int_t)load->waiting, "isMore",
                                            loads.looked_until_us != 0, "longestWaitSeconds",
                                            (double)(loads.now_us - load->waiting_us) / 1e6,
                                            "workers", (json_int_t)load->workers));
    }
    free(loads.items);
    json_object_set_new(view, "unserved", queues);
    return rc;
}

/* ---- processes ------------------------------------------------------------------------------- */

static json_t *fleet_views(const struct overview *overview)
{
    json_t *views = json_array();
    for (size_t i = 0; i < overview->fleet_count; i++) {
        const struct overview_fleet *row = &overview->fleet[i];
        json_array_append_new(views,
                              json_pack("{s:s,s:I,s:I,s:I}", "version", row->version, "workers",
                                        (json_int_t)row->workers, "slots", (json_int_t)row->slots,
                                        "busy", (json_int_t)row->busy));
    }
    return views;
}

static json_t *health_view(const struct request *req, const struct overview *overview,
                           int64_t took_us)
{
    static const char *const broker[] = {
        [BUS_DOWN] = "down", [BUS_UP] = "up", [BUS_BLOCKED] = "blocked"};
    json_t *database = json_pack("{s:s,s:s,s:f}", "status", "up", "version",
                                 overview->database_version, "tookSeconds", (double)took_us / 1e6);
    json_t *recovery = json_pack(
        "{s:b,s:o}", "isLed", overview->has_leader, "lastSignSeconds",
        overview->has_leader ? json_real((double)overview->leader_age_us / 1e6) : json_null());
    json_t *outbox = count_view(overview->outbox);
    json_object_set_new(outbox, "oldestSeconds", json_real((double)overview->outbox_age_us / 1e6));
    return json_pack("{s:o,s:{s:s},s:o,s:o,s:{s:s},s:o}", "database", database, "broker", "status",
                     broker[bus_publisher_state(req->web->pub)], "recovery", recovery, "outbox",
                     outbox, "web", "version", SLUICE_VERSION, "workers", fleet_views(overview));
}

enum err_code overview(struct request *req, struct err *err)
{
    OVERVIEW_AUTO struct overview seen = {0};
    int64_t began_us = clock_mono_us();
    enum err_code rc = overview_store_read(req->web->store, req->who.tenant, &seen, err);
    int64_t took_us = clock_mono_us() - began_us;
    if (rc)
        return rc;
    json_t *view = json_object();
    rc = put_rates(req, seen.now_us, view, err);
    if (rc == ERR_OK)
        rc = put_unserved(req, view, err);
    if (rc) {
        json_decref(view);
        return rc;
    }
    json_object_set_new(view, "time", view_time(seen.now_us));
    json_object_set_new(view, "jobs", state_views(&seen));
    json_object_set_new(view, "longestWaiting", oldest_view(&seen.waiting, seen.now_us, false));
    json_object_set_new(view, "longestRunning", oldest_view(&seen.running, seen.now_us, true));
    json_object_set_new(view, "blocked", blocked_views(&seen));
    json_object_set_new(view, "deadMessages", count_view(seen.dead));
    json_object_set_new(view, "health", health_view(req, &seen, took_us));
    reply_json(req, MHD_HTTP_OK, view);
    return ERR_OK;
}
