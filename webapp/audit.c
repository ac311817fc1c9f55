/* SPDX-License-Identifier: MIT */
/* GET /v1/audit */
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/web.h"

#include "common/store/audit_log.h"

#define LIMIT_DEFAULT 50
#define NAME_LIMIT ((size_t)2048)
#define CODE_SIZE 24

struct search {
    struct audit_query query;
    char actor[USER_SIZE];
    char action[41];
    char subject[AUDIT_SUBJECT_SIZE];
    struct uuid after;
    struct buf name; /* what a cursor is bound to */
};

static json_t *entry_view(const struct audit_entry *entry)
{
    char code[CODE_SIZE] = "";
    json_t *view = json_object();
    if (entry->code)
        (void)snprintf(code, sizeof(code), "SLUICE-%u", entry->code);
    json_object_set_new(view, "id", view_uuid(&entry->id));
    json_object_set_new(view, "at", view_time(entry->at_us));
    json_object_set_new(view, "actor", view_text(entry->actor));
    json_object_set_new(view, "action", view_text(entry->action));
    json_object_set_new(view, "method", view_text(entry->method));
    json_object_set_new(view, "subject", view_text(entry->subject));
    json_object_set_new(view, "address", view_text(entry->address));
    json_object_set_new(view, "requestId", view_text(entry->request_id));
    json_object_set_new(view, "outcome", json_string(audit_outcome_text(entry->outcome)));
    json_object_set_new(view, "status", entry->status ? json_integer(entry->status) : json_null());
    json_object_set_new(view, "code", view_text(code));
    json_object_set_new(view, "detail", view_text(entry->detail));
    return view;
}

struct room {
    char *text;
    size_t size;
};
#define ROOM(array) ((struct room){(array), sizeof(array)})

/* A text that is compared; it also names the query. */
static enum err_code read_text(const struct request *req, const char *name, struct room room,
                               struct search *search, struct err *err)
{
    char pointer[ERR_POINTER_MAX];
    struct sv value;
    if (!uri_query(&req->uri, name, &value))
        return ERR_OK;
    (void)snprintf(pointer, sizeof(pointer), "?%s", name);
    if (value.len == 0 || !sv_copy(value, room.text, room.size))
        return err_set_at(err, ERR_INVALID, pointer, "%s has 1 to %zu bytes", name, room.size - 1);
    buf_addf(&search->name, "%s %zu ", name, value.len);
    buf_add_sv(&search->name, value);
    return ERR_OK;
}

static enum err_code read_outcome(const struct request *req, struct search *search, struct err *err)
{
    struct sv text;
    search->query.has_outcome = uri_query(&req->uri, "outcome", &text);
    if (!search->query.has_outcome)
        return ERR_OK;
    buf_add_text(&search->name, "outcome ");
    buf_add_sv(&search->name, text);
    if (audit_outcome_parse(text, &search->query.outcome))
        return ERR_OK;
    return err_set_at(err, ERR_INVALID, "?outcome", "outcome is done, refused or failed");
}

static enum err_code read_place(const struct request *req, struct search *search, struct err *err)
{
    struct sv cursor;
    uint64_t most = req->web->cfg->limits_page_max;
    most = most < AUDIT_PAGE_MAX ? most : AUDIT_PAGE_MAX;
    uint64_t limit = LIMIT_DEFAULT < most ? LIMIT_DEFAULT : most;
    enum err_code rc = request_number(req, "limit", 1, most, &limit, err);
    search->query.limit = (uint32_t)limit;
    if (rc || !uri_query(&req->uri, "cursor", &cursor))
        return rc;
    search->query.after = &search->after;
    return cursor_read(&req->web->cursor_key, buf_sv(&search->name), cursor, &search->after, err);
}

static enum err_code read_search(const struct request *req, struct search *search, struct err *err)
{
    struct audit_query *query = &search->query;
    buf_addf(&search->name, "audit %s ", req->who.tenant);
    query->tenant = req->who.tenant;
    enum err_code rc = read_text(req, "actor", ROOM(search->actor), search, err);
    if (rc == ERR_OK)
        rc = read_text(req, "action", ROOM(search->action), search, err);
    if (rc == ERR_OK)
        rc = read_text(req, "subject", ROOM(search->subject), search, err);
    if (rc == ERR_OK)
        rc = read_outcome(req, search, err);
    query->actor = search->actor[0] ? search->actor : NULL;
    query->action = search->action[0] ? search->action : NULL;
    query->subject = search->subject[0] ? search->subject : NULL;
    return rc ? rc : read_place(req, search, err);
}

static enum err_code list(struct request *req, struct search *search, struct err *err)
{
    struct audit_list page = {0};
    char cursor[CURSOR_TEXT_SIZE] = "";
    enum err_code rc = read_search(req, search, err);
    if (rc == ERR_OK)
        rc = audit_log_list(req->web->store, &search->query, &page, err);
    if (rc)
        return rc;
    json_t *entries = json_array();
    for (size_t i = 0; i < page.count; i++)
        json_array_append_new(entries, entry_view(&page.items[i]));
    if (page.more)
        cursor_write(&req->web->cursor_key, buf_sv(&search->name), &page.items[page.count - 1].id,
                     cursor);
    free(page.items);
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:o,s:o}", "audit", entries, "nextCursor", view_text(cursor)));
    return ERR_OK;
}

enum err_code audit_list(struct request *req, struct err *err)
{
    struct search search = {.name = BUF_INIT(NAME_LIMIT)};
    enum err_code rc = list(req, &search, err);
    buf_done(&search.name);
    return rc;
}
