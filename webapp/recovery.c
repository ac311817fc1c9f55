/* SPDX-License-Identifier: MIT */
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/web.h"

#include "common/base/log.h"
#include "common/service/cause.h"
#include "common/store/recovery_store.h"

#define LIMIT_DEFAULT 50 /* jobs of a group */
#define PAGE_MAX 1000

static json_t *recovery_view(const struct recovery *cause)
{
    json_t *view = json_object();
    json_t *params = json_loads(cause->params, 0, NULL);
    json_object_set_new(view, "id", view_uuid(&cause->id));
    json_object_set_new(view, "condition", json_string(job_condition_text(cause->condition)));
    json_object_set_new(view, "tester", view_text(cause->tester));
    json_object_set_new(view, "params", params ? params : json_null());
    json_object_set_new(view, "policy", view_text(cause->policy));
    json_object_set_new(view, "blocked", json_integer((json_int_t)cause->blocked));
    json_object_set_new(view, "released", json_integer((json_int_t)cause->released));
    json_object_set_new(view, "tests", json_integer(cause->tests));
    json_object_set_new(view, "tries", json_integer(cause->tries));
    json_object_set_new(view, "since", view_time(cause->first_us));
    json_object_set_new(view, "nextCheck", view_time(cause->next_us));
    json_object_set_new(view, "lastCheck", view_time(cause->last_us));
    json_object_set_new(view, "lastResult", view_text(cause->last_result));
    json_object_set_new(view, "lastDetail", view_text(cause->last_detail));
    json_object_set_new(view, "ramp", json_integer(cause->ramp));
    json_object_set_new(view, "asked", view_text(cause->asked));
    json_object_set_new(view, "askedBy", view_text(cause->asked_by));
    return view;
}

/* A page asks for one more than it shows: then there is a further one. */
static enum err_code read_page(const struct request *req, struct sv bound, uint64_t otherwise,
                               struct recovery_page *ret_page, struct err *err)
{
    struct sv cursor;
    uint64_t most = req->web->cfg->limits_page_max;
    most = most < PAGE_MAX ? most : PAGE_MAX;
    uint64_t limit = otherwise < most ? otherwise : most;
    enum err_code rc = request_number(req, "limit", 1, most, &limit, err);
    *ret_page = (struct recovery_page){.limit = (uint32_t)limit + 1};
    if (rc || !uri_query(&req->uri, "cursor", &cursor))
        return rc;
    return cursor_read(&req->web->cursor_key, bound, cursor, &ret_page->after, err);
}

/* ---- GET /v1/recovery ------------------------------------------------------------------------ */

enum err_code recovery_list(struct request *req, struct err *err)
{
    char cursor[CURSOR_TEXT_SIZE] = "";
    char bound[TENANT_SIZE + 16];
    struct recovery_page page;
    struct recovery_list list = {0};
    (void)snprintf(bound, sizeof(bound), "groups %s", req->who.tenant);
    enum err_code rc = read_page(req, sv_of(bound), PAGE_MAX, &page, err);
    if (rc == ERR_OK)
        rc = recovery_store_page(req->web->store, req->who.tenant, &page, &list, err);
    if (rc)
        return rc;
    if (list.count == page.limit) {
        list.count--;
        cursor_write(&req->web->cursor_key, sv_of(bound), &list.items[list.count - 1].id, cursor);
    }
    json_t *causes = json_array();
    for (size_t i = 0; i < list.count; i++)
        json_array_append_new(causes, recovery_view(&list.items[i]));
    free(list.items);
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:o,s:o}", "recovery", causes, "nextCursor", view_text(cursor)));
    return ERR_OK;
}

/* ---- one ------------------------------------------------------------------------------------- */

static enum err_code path_id(const struct request *req, struct uuid *ret_id, struct err *err)
{
    if (uuid_parse(req->match.params[0], ret_id))
        return ERR_OK;
    return err_set(err, ERR_NOT_FOUND, "a group of blocked jobs is named by its id, a UUID");
}

static json_t *job_views(const struct recovery_job_list *list)
{
    json_t *jobs = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct recovery_job *job = &list->items[i];
        json_array_append_new(jobs, json_pack("{s:o,s:s,s:s,s:s,s:o}", "id", view_uuid(&job->id),
                                              "name", job->name, "owner", job->owner,
                                              "resumeStatus", job_state_text(job->resume),
                                              "blocked", view_time(job->blocked_us)));
    }
    return jobs;
}

static enum err_code add_jobs(struct request *req, const struct recovery *cause, json_t *view,
                              struct err *err)
{
    char cursor[CURSOR_TEXT_SIZE] = "";
    char bound[TENANT_SIZE + UUID_TEXT_SIZE + 16];
    char id[UUID_TEXT_SIZE];
    struct recovery_page page;
    struct recovery_job_list list = {0};
    (void)snprintf(bound, sizeof(bound), "recovery %s %s", cause->tenant,
                   uuid_text(&cause->id, id));
    enum err_code rc = read_page(req, sv_of(bound), LIMIT_DEFAULT, &page, err);
    if (rc == ERR_OK)
        rc = recovery_store_jobs(req->web->store, cause, &page, &list, err);
    if (rc)
        return rc;
    if (list.count == page.limit) {
        list.count--;
        cursor_write(&req->web->cursor_key, sv_of(bound), &list.items[list.count - 1].id, cursor);
    }
    json_object_set_new(view, "jobs", job_views(&list));
    json_object_set_new(view, "nextCursor", view_text(cursor));
    free(list.items);
    return ERR_OK;
}

static enum err_code add_history(struct request *req, const struct recovery *cause, json_t *view,
                                 struct err *err)
{
    struct recovery_test tests[RECOVERY_HISTORY_MAX];
    size_t count = 0;
    enum err_code rc = recovery_store_tests(req->web->store, cause, tests, &count, err);
    if (rc)
        return rc;
    json_t *history = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(history, json_pack("{s:i,s:o,s:o,s:o}", "test", (int)tests[i].number,
                                                 "at", view_time(tests[i].at_us), "result",
                                                 view_text(tests[i].result), "detail",
                                                 view_text(tests[i].detail)));
    json_object_set_new(view, "history", history);
    return ERR_OK;
}

static enum err_code reply_cause(struct request *req, unsigned status, const struct uuid *id,
                                 bool with_jobs, struct err *err)
{
    struct recovery cause;
    enum err_code rc = recovery_store_get(req->web->store, req->who.tenant, id, &cause, err);
    if (rc)
        return rc;
    json_t *view = recovery_view(&cause);
    if (with_jobs)
        rc = add_jobs(req, &cause, view, err);
    if (with_jobs && rc == ERR_OK)
        rc = add_history(req, &cause, view, err);
    if (rc)
        json_decref(view);
    else
        reply_json(req, status, view);
    return rc;
}

enum err_code recovery_get(struct request *req, struct err *err)
{
    struct uuid id;
    enum err_code rc = path_id(req, &id, err);
    return rc ? rc : reply_cause(req, MHD_HTTP_OK, &id, true, err);
}

/* ---- what an operator wants: written down, and done by sluice-recovery ----------------------- */

static enum err_code ask(struct request *req, const char *what, const char *event, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    struct uuid id;
    enum err_code rc = path_id(req, &id, err);
    if (rc == ERR_OK)
        rc = recovery_store_ask(req->web->store, req->who.tenant, &id, what, req->who.user, err);
    if (rc == ERR_OK)
        rc = reply_cause(req, MHD_HTTP_ACCEPTED, &id, false, err);
    if (rc)
        return rc;
    cause_wake_now(req->web->pub, req->who.tenant, &id);
    log_event(LOG_INFO, event, LOG_S("tenant", req->who.tenant),
              LOG_S("recovery", uuid_text(&id, text)), LOG_S("user", req->who.user));
    return ERR_OK;
}

enum err_code recovery_check(struct request *req, struct err *err)
{
    return ask(req, NULL, "recovery.check", err);
}

enum err_code recovery_release(struct request *req, struct err *err)
{
    return ask(req, "release", "recovery.release", err);
}

enum err_code recovery_fail(struct request *req, struct err *err)
{
    return ask(req, "fail", "recovery.fail", err);
}
