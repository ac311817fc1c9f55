/* SPDX-License-Identifier: MIT */
#include "webapp/filter_view.h"
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/jobs.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "webapp/problem.h"

#define EXPLANATION_LIMIT ((size_t)16384)

/* The values that the filter read, by name. */
static json_t *values_view(const struct filter *filter, const struct filter_row *row)
{
    json_t *values = json_object();
    for (size_t i = 0; i < filter_use_count(filter); i++) {
        struct filter_use use = filter_use_at(filter, i);
        struct filter_value value = filter_use_value(filter, i, row);
        json_object_setn_new(values, use.name.ptr, use.name.len, filter_value_view(&value));
    }
    return values;
}

static const char *verdict_of(const struct routing_queue *queue, const struct filter_row *row,
                              bool decided)
{
    if (!queue->queue.enabled)
        return "disabled";
    if (!queue->filter)
        return queue->is_default ? "default" : "no filter";
    return decided ? "not tried" : filter_truth_text(filter_eval(queue->filter, row));
}

/* In words, what the verdict means for this job. chosen: tried before it, or NULL. */
static json_t *explanation_of(const struct routing_queue *queue, const struct filter_row *row,
                              const struct routing_queue *chosen)
{
    BUF_AUTO struct buf why = BUF_INIT(EXPLANATION_LIMIT);
    BUF_AUTO struct buf text = BUF_INIT(EXPLANATION_LIMIT);
    if (queue->filter)
        filter_say_why(queue->filter, row, &why);
    if (!queue->queue.enabled)
        buf_add_text(&text, "the queue is disabled: 'sluice queue put NAME --enabled true'; ");
    else if (chosen && queue->filter)
        buf_addf(&text,
                 "not tried, for queue %s (priority %d) is tried before it and takes the job; ",
                 chosen->queue.name, (int)chosen->queue.priority);
    if (!queue->filter && queue->is_default)
        buf_add_text(&text, "it takes what no other queue does");
    else if (!queue->filter)
        buf_add_text(&text, "it has no filter, so no job is ever put on it");
    else if (why.len == 0)
        buf_add_text(&text, queue->queue.enabled && !chosen ? "its filter is true"
                                                            : "its filter would be true");
    else
        buf_add_sv(&text, buf_sv(&why));
    return text.failed ? json_string("") : problem_text(text.ptr ? text.ptr : "", text.len);
}

static json_t *tried_view(const struct routing *routing, const struct filter_row *row,
                          const struct routing_queue *chosen, bool all)
{
    json_t *list = json_array();
    bool decided = false;
    for (size_t i = 0; i < routing_count(routing); i++) {
        const struct routing_queue *queue = routing_at(routing, i);
        bool tried = queue->queue.enabled && queue->filter && !decided;
        json_t *view =
            json_pack("{s:s,s:i,s:b,s:o,s:s,s:b}", "queue", queue->queue.name, "priority",
                      (int)queue->queue.priority, "enabled", queue->queue.enabled, "filter",
                      view_text(queue->queue.filter), "verdict", verdict_of(queue, row, decided),
                      "chosen", queue == chosen);
        json_object_set_new(view, "explanation",
                            explanation_of(queue, row, decided ? chosen : NULL));
        json_object_set_new(view, "values",
                            tried ? values_view(queue->filter, row) : json_object());
        json_array_append_new(list, view);
        decided = decided || (!all && tried && queue == chosen);
    }
    return list;
}

/* ?owner=NAME: as if that user had sent it. */
static enum err_code owner_of(const struct request *req, char *ret_owner, size_t size,
                              struct err *err)
{
    struct sv owner = sv_of(req->who.user);
    (void)uri_query(&req->uri, "owner", &owner);
    if (owner.len == 0 || sv_has_blank_end(owner) || !sv_copy(owner, ret_owner, size))
        return err_set_at(err, ERR_INVALID, "?owner",
                          "owner has 1 to %zu bytes without blanks at the ends", size - 1);
    return request_check_owner(req, ret_owner, err);
}

enum err_code queue_explain(struct request *req, struct err *err)
{
    AUTO(job_request_free) struct job_request *sent = NULL;
    AUTO(job_request_free) struct job_request *complete = NULL;
    AUTO(routing_put) struct routing *routing = NULL;
    struct routing_row row;
    char owner[AUTH_USER_SIZE];
    bool all = false;
    enum err_code rc = owner_of(req, owner, sizeof(owner), err);
    if (rc == ERR_OK)
        rc = request_flag(req, "all", &all, err);
    if (rc == ERR_OK)
        rc = job_request_parse(buf_sv(&req->body), &sent, err);
    if (rc == ERR_OK)
        rc = submission_complete(req, &sent, false, &complete, err);
    if (rc == ERR_OK)
        rc = router_get(req->web->router, req->who.tenant, &routing, err);
    if (rc)
        return rc;
    routing_row_init(&row, complete, req->who.tenant, owner, clock_wall_us());
    const struct routing_queue *chosen = routing_choose(routing, &row.row);
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:o,s:s,s:o}", "queue", view_text(chosen ? chosen->queue.name : NULL),
                         "owner", owner, "filters", tried_view(routing, &row.row, chosen, all)));
    return ERR_OK;
}

/* ---- of a job that is there ------------------------------------------------------------------ */

/* Its first event has what decided then; the filters are as they are now. */
static enum err_code first_detail(const struct request *req, const struct job *job,
                                  json_t **ret_text, struct err *err)
{
    struct job_event_list events = {0};
    enum err_code rc = job_store_events(req->web->store, req->who.tenant, &job->id,
                                        (struct job_event_page){.limit = 1}, &events, err);
    if (rc == ERR_OK)
        *ret_text = view_text(events.count > 0 ? events.items[0].detail : NULL);
    free(events.items);
    return rc;
}

enum err_code job_explain(struct request *req, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    AUTO(job_request_free) struct job_request *request = NULL;
    AUTO(routing_put) struct routing *routing = NULL;
    struct routing_row row;
    json_t *submitted = NULL;
    enum err_code rc = job_of_path(req, &job, err);
    if (rc == ERR_OK)
        rc = job_request_parse(sv_of(job->request), &request, err);
    if (rc == ERR_OK)
        rc = router_get(req->web->router, req->who.tenant, &routing, err);
    if (rc == ERR_OK)
        rc = first_detail(req, job, &submitted, err);
    if (rc)
        return rc;
    routing_row_init(&row, request, req->who.tenant, job->owner, job->created_us);
    const struct routing_queue *chosen = routing_choose(routing, &row.row);
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:s,s:s,s:o,s:o,s:o}", "queue", job->queue, "owner", job->owner,
                         "submitted", submitted, "now",
                         view_text(chosen ? chosen->queue.name : NULL), "filters",
                         tried_view(routing, &row.row, chosen, true)));
    return ERR_OK;
}
