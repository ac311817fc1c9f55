/* SPDX-License-Identifier: MIT */
#include "webapp/job_search.h"

#include "webapp/filter_view.h"
#include "webapp/handlers.h"
#include "webapp/job_fields.h"
#include "webapp/job_view.h"
#include "webapp/web.h"

#define LINK_LIMIT ((size_t)65536)
/* A search that finds little ends a page after this long, instead of reading all jobs for it. */
#define STRETCH 5000
#define LOOK_MS 250

/* The same query with another cursor, encoded as it was sent. */
static void reply_link(struct request *req, const char *cursor)
{
    BUF_AUTO struct buf link = BUF_INIT(LINK_LIMIT);
    const char *at = req->uri.raw + req->uri.path_length;
    const char *separator = "?";
    buf_addf(&link, "<%.*s", (int)req->uri.path_length, req->uri.raw);
    at += *at == '?';
    while (*at) {
        struct sv part = {at, strcspn(at, "&")};
        if (part.len > 0 && strncmp(part.ptr, "cursor=", 7) != 0) {
            buf_addf(&link, "%s%.*s", separator, SV_ARG(part));
            separator = "&";
        }
        at += part.len + (at[part.len] == '&');
    }
    buf_addf(&link, "%scursor=%s>; rel=\"next\"", separator, cursor);
    if (!link.failed)
        reply_header(req, "Link", buf_text(&link));
}

static void reply_page(struct request *req, const struct job_search *search,
                       const struct job_list *list, const json_t *fields)
{
    char cursor[CURSOR_TEXT_SIZE] = "";
    json_t *jobs = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_t *view = job_view(list->items[i], false);
        job_fields_pick(view, fields);
        json_array_append_new(jobs, view);
    }
    if (list->more)
        cursor_write(&req->web->cursor_key, buf_sv(&search->name), &list->last, cursor);
    reply_json_tagged(req, json_pack("{s:o,s:o}", "jobs", jobs, "nextCursor", view_text(cursor)));
    if (cursor[0])
        reply_link(req, cursor);
}

enum err_code job_list(struct request *req, struct err *err)
{
    JOB_SEARCH_AUTO struct job_search search = {0};
    struct filter_report report = {0};
    struct job_list list = {0};
    JSON_AUTO json_t *fields = NULL;
    enum err_code rc = job_fields_read(req, &fields, err);
    if (rc == ERR_OK)
        rc = job_search_read(req, &search, &report, err);
    if (rc == ERR_FILTER) {
        reply_filter_problem(req, err, &report);
        return ERR_OK;
    }
    search.query.stretch = STRETCH;
    search.query.look_ms = LOOK_MS;
    ALLOWANCE_AUTO struct allowance_hold hold = {0};
    if (rc == ERR_OK)
        rc = job_search_begin(req, &search, &hold, err);
    if (rc == ERR_OK)
        rc = job_store_list(req->web->store, &search.query, &list, err);
    if (rc)
        return rc;
    reply_page(req, &search, &list, fields);
    job_list_done(&list);
    return ERR_OK;
}
