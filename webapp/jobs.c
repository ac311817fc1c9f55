/* SPDX-License-Identifier: MIT */
#include "webapp/jobs.h"

#include "common/base/log.h"
#include "webapp/handlers.h"
#include "webapp/job_fields.h"
#include "webapp/job_view.h"

#define EVENTS_DEFAULT 200
#define EVENTS_MAX 1000
#define COMMAND_SIZE 128

enum err_code job_path_id(const struct request *req, struct uuid *ret_id, struct err *err)
{
    struct sv text = req->match.params[0];
    if (uuid_parse(text, ret_id))
        return ERR_OK;
    return err_set(err, ERR_NOT_FOUND,
                   "there is no job %.*s: the id of a job is a UUID, and 'sluice jobs' lists them",
                   (int)(text.len < 64 ? text.len : 64), text.ptr);
}

enum err_code job_of_path(const struct request *req, struct job **ret_job, struct err *err)
{
    struct uuid id;
    enum err_code rc = job_path_id(req, &id, err);
    if (rc)
        return rc;
    rc = job_store_get(req->web->store, req->who.tenant, &id, ret_job, err);
    if (rc == ERR_NOT_FOUND)
        log_event(LOG_INFO, "http.job.not_found", LOG_S("tenant", req->who.tenant),
                  LOG_S("user", req->who.user), LOG_V("job", req->match.params[0]));
    return rc;
}

enum err_code job_of_path_to_change(const struct request *req, struct job **ret_job,
                                    struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    enum err_code rc = job_of_path(req, &job, err);
    if (rc == ERR_OK)
        rc = request_check_owner(req, job->owner, err);
    if (rc == ERR_OK)
        *ret_job = TAKE(job);
    return rc;
}

static enum err_code wait_for(struct request *req, const struct job *job, unsigned seconds,
                              struct err *err)
{
    ALLOWANCE_AUTO struct allowance_hold hold = {0};
    enum err_code rc =
        allowance_take(req->web->allowances, ALLOWANCE_WAITS, &req->who, 1, &hold, err);
    return rc ? rc : job_wait(req, &job->id, seconds, &hold, err);
}

enum err_code job_get(struct request *req, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    JSON_AUTO json_t *fields = NULL;
    uint64_t wait_s = 0;
    enum err_code rc = request_number(req, "wait", 0, UINT32_MAX, &wait_s, err);
    if (rc == ERR_OK)
        rc = job_fields_read(req, &fields, err);
    if (rc == ERR_OK && fields && wait_s > 0)
        rc = err_set_at(err, ERR_INVALID, "?fields", "fields is not taken with wait");
    if (rc == ERR_OK)
        rc = job_of_path(req, &job, err);
    if (rc)
        return rc;
    if (wait_s > req->web->cfg->web_wait_max_s)
        wait_s = req->web->cfg->web_wait_max_s;
    if (wait_s > 0 && !job_state_ends(job->status))
        return wait_for(req, job, (unsigned)wait_s, err);
    json_t *view = job_view(job, true);
    job_fields_pick(view, fields);
    reply_json_tagged(req, view);
    return ERR_OK;
}

json_t *job_event_view(const struct job_event *event)
{
    json_t *view = json_object();
    json_object_set_new(view, "seq", json_integer((json_int_t)event->seq));
    json_object_set_new(view, "at", view_time(event->at_us));
    json_object_set_new(view, "kind", view_text(event->kind));
    json_object_set_new(view, "from",
                        event->has_from ? json_string(job_state_text(event->from)) : json_null());
    json_object_set_new(view, "to", json_string(job_state_text(event->to)));
    json_object_set_new(view, "condition", view_text(job_condition_text(event->condition)));
    json_object_set_new(view, "epoch", json_integer(event->epoch));
    json_object_set_new(view, "fence", json_integer((json_int_t)event->fence));
    json_object_set_new(view, "worker",
                        event->has_worker ? view_uuid(&event->worker) : json_null());
    json_object_set_new(view, "actor", view_text(event->actor));
    json_object_set_new(view, "detail", view_text(event->detail));
    return view;
}

enum err_code job_events(struct request *req, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    struct job_event_list events = {0};
    uint64_t after = 0;
    uint64_t limit = EVENTS_DEFAULT;
    enum err_code rc = request_number(req, "after", 0, INT64_MAX, &after, err);
    if (rc == ERR_OK)
        rc = request_number(req, "limit", 1, EVENTS_MAX, &limit, err);
    if (rc == ERR_OK)
        rc = job_of_path(req, &job, err);
    if (rc == ERR_OK)
        rc = job_store_events(req->web->store, req->who.tenant, &job->id,
                              (struct job_event_page){after, (uint32_t)limit}, &events, err);
    if (rc)
        return rc;
    json_t *list = json_array();
    for (size_t i = 0; i < events.count; i++)
        json_array_append_new(list, job_event_view(&events.items[i]));
    json_t *next = events.count == limit
                       ? json_integer((json_int_t)events.items[events.count - 1].seq)
                       : json_null();
    free(events.items);
    reply_json(req, MHD_HTTP_OK, json_pack("{s:o,s:o}", "events", list, "nextAfter", next));
    return ERR_OK;
}

/* A wake-up; should it be lost, the worker reads its cancel requests with its next beat. */
static void tell_worker(const struct request *req, const struct job *job, const struct uuid *worker)
{
    char body[COMMAND_SIZE];
    char id[UUID_TEXT_SIZE];
    char key[UUID_TEXT_SIZE];
    struct err err = {0};
    int length = snprintf(body, sizeof(body), "{\"cancel\":\"%s\",\"fence\":%llu}",
                          uuid_text(&job->id, id), (unsigned long long)job->fence);
    const struct bus_message message = {
        .exchange = BUS_COMMAND,
        .routing_key = uuid_text(worker, key),
        .body = {body, (size_t)length},
        .transient = true,
    };
    if (bus_publish(req->web->pub, &message, NULL, NULL, &err) != ERR_OK)
        log_event(LOG_DEBUG, "job.cancel.not_told", LOG_S("job", id), LOG_S("detail", err.text));
}

enum err_code job_cancel_one(const struct request *req, const struct job *job,
                             struct job_cancelled *ret_done, struct err *err)
{
    struct job_cancelled done = {0};
    enum err_code rc = request_check_owner(req, job->owner, err);
    if (rc == ERR_OK)
        rc =
            job_store_cancel(req->web->store, req->who.tenant, &job->id, req->who.user, &done, err);
    if (rc)
        return rc;
    if (done.has_owner)
        tell_worker(req, job, &done.owner_worker);
    *ret_done = done;
    return ERR_OK;
}

enum err_code job_cancel(struct request *req, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    struct job_cancelled done = {0};
    enum err_code rc = job_of_path(req, &job, err);
    if (rc == ERR_OK)
        rc = job_cancel_one(req, job, &done, err);
    if (rc)
        return rc;
    return reply_job(req, done.done ? MHD_HTTP_OK : MHD_HTTP_ACCEPTED, &job->id, err);
}

static enum err_code set_visible(struct request *req, bool visible, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    enum err_code rc = job_of_path_to_change(req, &job, err);
    if (rc == ERR_OK)
        rc = job_store_set_visible(req->web->store, req->who.tenant, &job->id, visible, err);
    if (rc)
        return rc;
    return reply_job(req, MHD_HTTP_OK, &job->id, err);
}

enum err_code job_hide(struct request *req, struct err *err)
{
    return set_visible(req, false, err);
}

enum err_code job_unhide(struct request *req, struct err *err)
{
    return set_visible(req, true, err);
}
