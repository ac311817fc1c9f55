/* SPDX-License-Identifier: MIT */
#include "webapp/dead.h"

#include "common/base/log.h"
#include "webapp/handlers.h"
#include "webapp/job_view.h"

#define LIMIT_DEFAULT 50
#define NAME_LIMIT ((size_t)256)

enum err_code dead_path_id(const struct request *req, struct uuid *ret_id, struct err *err)
{
    if (uuid_parse(req->match.params[0], ret_id))
        return ERR_OK;
    return err_set(err, ERR_NOT_FOUND, "a dead message is named by its id, a UUID");
}

enum err_code dead_reply(struct request *req, const struct uuid *id, struct err *err)
{
    DEAD_MESSAGE_AUTO struct dead_message message = {0};
    enum err_code rc = dead_store_get(req->web->store, req->who.tenant, id, &message, err);
    if (rc == ERR_OK)
        reply_json(req, MHD_HTTP_OK, dead_view(&message, true));
    return rc;
}

/* ---- GET /v1/dead-messages ------------------------------------------------------------------- */

struct search {
    struct dead_query query;
    struct uuid after;
    struct buf name; /* what a cursor is bound to */
};

static enum err_code read_search(const struct request *req, struct search *search, struct err *err)
{
    struct sv state = {0};
    struct sv cursor;
    uint64_t most = req->web->cfg->limits_page_max;
    most = most < DEAD_PAGE_MAX ? most : DEAD_PAGE_MAX;
    uint64_t limit = LIMIT_DEFAULT < most ? LIMIT_DEFAULT : most;
    search->query.tenant = req->who.tenant;
    search->query.has_state = uri_query(&req->uri, "state", &state);
    if (search->query.has_state && !dead_state_parse(state, &search->query.state))
        return err_set_at(err, ERR_INVALID, "?state",
                          "state is open, settled, replaying, replayed or discarded");
    enum err_code rc = request_number(req, "limit", 1, most, &limit, err);
    if (rc)
        return rc;
    search->query.limit = (uint32_t)limit;
    buf_addf(&search->name, "dead %s ", req->who.tenant);
    buf_add_sv(&search->name, state);
    if (!uri_query(&req->uri, "cursor", &cursor))
        return ERR_OK;
    search->query.after = &search->after;
    return cursor_read(&req->web->cursor_key, buf_sv(&search->name), cursor, &search->after, err);
}

static enum err_code list(struct request *req, struct search *search, struct err *err)
{
    struct dead_list page = {0};
    char cursor[CURSOR_TEXT_SIZE] = "";
    enum err_code rc = read_search(req, search, err);
    if (rc == ERR_OK)
        rc = dead_store_list(req->web->store, &search->query, &page, err);
    if (rc)
        return rc;
    json_t *messages = json_array();
    for (size_t i = 0; i < page.count; i++)
        json_array_append_new(messages, dead_view(&page.items[i], false));
    if (page.more)
        cursor_write(&req->web->cursor_key, buf_sv(&search->name), &page.items[page.count - 1].id,
                     cursor);
    free(page.items);
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:o,s:o}", "deadMessages", messages, "nextCursor", view_text(cursor)));
    return ERR_OK;
}

enum err_code dead_list(struct request *req, struct err *err)
{
    struct search search = {.name = BUF_INIT(NAME_LIMIT)};
    enum err_code rc = list(req, &search, err);
    buf_done(&search.name);
    return rc;
}

/* ---- one ------------------------------------------------------------------------------------- */

enum err_code dead_get(struct request *req, struct err *err)
{
    struct uuid id;
    enum err_code rc = dead_path_id(req, &id, err);
    return rc ? rc : dead_reply(req, &id, err);
}

enum err_code dead_discard(struct request *req, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    struct uuid id;
    enum err_code rc = dead_path_id(req, &id, err);
    if (rc == ERR_OK)
        rc = dead_store_discard(req->web->store, req->who.tenant, &id, req->who.user, err);
    if (rc)
        return rc;
    log_event(LOG_INFO, "dead.discard", LOG_S("tenant", req->who.tenant),
              LOG_S("user", req->who.user), LOG_S("id", uuid_text(&id, text)));
    return dead_reply(req, &id, err);
}
