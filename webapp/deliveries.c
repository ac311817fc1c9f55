/* SPDX-License-Identifier: MIT */
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/web.h"

#include "common/base/log.h"
#include "common/model/job_request.h"
#include "common/store/hook_store.h"

#define LIMIT_DEFAULT 50
#define NAME_LIMIT ((size_t)512)
#define STRETCH 5000
#define LOOK_MS 250

/* The host alone: the rest of a URL may hold what lets its owner in. */
static json_t *host_view(const char *url)
{
    struct hook_url parts;
    struct err err = {0};
    if (hook_url_read(url, &parts, &err))
        return json_null();
    return json_stringn(parts.host.ptr, parts.host.len);
}

static json_t *delivery_view(const struct delivery_view *row)
{
    bool waits = strcmp(row->state, "due") == 0;
    json_t *view = json_object();
    json_object_set_new(view, "id", view_uuid(&row->id));
    json_object_set_new(view, "subscription", view_text(row->name));
    json_object_set_new(view, "job", view_uuid(&row->job));
    json_object_set_new(view, "seq", json_integer((json_int_t)row->seq));
    json_object_set_new(view, "event", json_string(row->event));
    json_object_set_new(view, "host", host_view(row->url));
    json_object_set_new(view, "state", json_string(row->state));
    json_object_set_new(view, "attempts", json_integer(row->attempts));
    json_object_set_new(view, "httpStatus",
                        row->http_status ? json_integer(row->http_status) : json_null());
    json_object_set_new(view, "error", view_text(row->error));
    json_object_set_new(view, "created", view_time(row->created_us));
    json_object_set_new(view, "nextAttempt", waits ? view_time(row->next_us) : json_null());
    json_object_set_new(view, "ended", view_time(row->ended_us));
    return view;
}

/* ---- GET /v1/deliveries ---------------------------------------------------------------------- */

struct search {
    struct delivery_query query;
    struct uuid job;
    struct uuid after;
    char state[17];
    char hook[HOOK_NAME_SIZE];
    struct buf name; /* what a cursor is bound to */
};

static bool is_state(const char *text)
{
    static const char *const states[] = {"held", "due", "delivered", "dead", "dropped"};
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        if (strcmp(text, states[i]) == 0)
            return true;
    }
    return false;
}

static enum err_code read_filters(const struct request *req, struct search *search, struct err *err)
{
    struct sv text;
    if (uri_query(&req->uri, "state", &text)) {
        search->query.state = search->state;
        if (!sv_copy(text, search->state, sizeof(search->state)) || !is_state(search->state))
            return err_set_at(err, ERR_INVALID, "?state",
                              "state is held, due, delivered, dead or dropped");
    }
    if (uri_query(&req->uri, "subscription", &text)) {
        search->query.name = search->hook;
        if (!sv_copy(text, search->hook, sizeof(search->hook)))
            return err_set_at(err, ERR_INVALID, "?subscription", "a name has at most %d bytes",
                              HOOK_NAME_SIZE - 1);
    }
    if (uri_query(&req->uri, "job", &text)) {
        search->query.job = &search->job;
        if (!uuid_parse(text, &search->job))
            return err_set_at(err, ERR_INVALID, "?job", "the id of a job is a UUID");
    }
    return ERR_OK;
}

static enum err_code read_search(const struct request *req, struct search *search, struct err *err)
{
    struct sv cursor;
    char id[UUID_TEXT_SIZE];
    uint64_t most = req->web->cfg->limits_page_max;
    most = most < HOOK_PAGE_MAX ? most : HOOK_PAGE_MAX;
    uint64_t limit = LIMIT_DEFAULT < most ? LIMIT_DEFAULT : most;
    search->query.tenant = req->who.tenant;
    enum err_code rc = read_filters(req, search, err);
    if (rc == ERR_OK)
        rc = request_number(req, "limit", 1, most, &limit, err);
    if (rc)
        return rc;
    search->query.limit = (uint32_t)limit;
    search->query.stretch = STRETCH;
    search->query.look_ms = LOOK_MS;
    buf_addf(&search->name, "deliveries %s %s %s %s", req->who.tenant, search->state, search->hook,
             search->query.job ? uuid_text(&search->job, id) : "");
    if (!uri_query(&req->uri, "cursor", &cursor))
        return ERR_OK;
    search->query.after = &search->after;
    return cursor_read(&req->web->cursor_key, buf_sv(&search->name), cursor, &search->after, err);
}

static enum err_code list(struct request *req, struct search *search, struct err *err)
{
    struct delivery_list page = {0};
    char cursor[CURSOR_TEXT_SIZE] = "";
    enum err_code rc = read_search(req, search, err);
    if (rc == ERR_OK)
        rc = hook_log_list(req->web->store, &search->query, &page, err);
    if (rc)
        return rc;
    json_t *items = json_array();
    for (size_t i = 0; i < page.count; i++)
        json_array_append_new(items, delivery_view(&page.items[i]));
    if (page.more)
        cursor_write(&req->web->cursor_key, buf_sv(&search->name), &page.last, cursor);
    free(page.items);
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:o,s:o}", "deliveries", items, "nextCursor", view_text(cursor)));
    return ERR_OK;
}

enum err_code delivery_list(struct request *req, struct err *err)
{
    struct search search = {.name = BUF_INIT(NAME_LIMIT)};
    enum err_code rc = list(req, &search, err);
    buf_done(&search.name);
    return rc;
}

/* ---- one ------------------------------------------------------------------------------------- */

static enum err_code path_id(const struct request *req, struct uuid *ret_id, struct err *err)
{
    if (uuid_parse(req->match.params[0], ret_id))
        return ERR_OK;
    return err_set(err, ERR_NOT_FOUND, "a delivery is named by its id, a UUID");
}

static enum err_code reply_delivery(struct request *req, const struct uuid *id, struct err *err)
{
    struct delivery_detail detail;
    enum err_code rc = hook_log_get(req->web->store, req->who.tenant, id, &detail, err);
    if (rc)
        return rc;
    json_t *view = delivery_view(&detail.view);
    json_t *attempts = json_array();
    for (size_t i = 0; i < detail.attempt_count; i++) {
        const struct delivery_attempt *row = &detail.attempts[i];
        json_array_append_new(
            attempts, json_pack("{s:i,s:o,s:i,s:o,s:o}", "attempt", (int)row->attempt, "at",
                                view_time(row->at_us), "tookMs", (int)row->took_ms, "httpStatus",
                                row->http_status ? json_integer(row->http_status) : json_null(),
                                "error", view_text(row->error)));
    }
    json_object_set_new(view, "attemptLog", attempts);
    json_t *body = json_loads(detail.body ? detail.body : "", 0, NULL);
    json_object_set_new(view, "body", body ? body : json_null());
    free(detail.body);
    reply_json(req, MHD_HTTP_OK, view);
    return ERR_OK;
}

enum err_code delivery_get(struct request *req, struct err *err)
{
    struct uuid id;
    enum err_code rc = path_id(req, &id, err);
    return rc ? rc : reply_delivery(req, &id, err);
}

enum err_code delivery_redeliver(struct request *req, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    struct uuid id;
    enum err_code rc = path_id(req, &id, err);
    if (rc == ERR_OK)
        rc = hook_log_again(req->web->store, req->who.tenant, &id, err);
    if (rc)
        return rc;
    log_event(LOG_INFO, "delivery.redeliver", LOG_S("tenant", req->who.tenant),
              LOG_S("user", req->who.user), LOG_S("delivery", uuid_text(&id, text)));
    return reply_delivery(req, &id, err);
}
