/* SPDX-License-Identifier: MIT */
#include "webapp/entity.h"
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/limit_body.h"
#include "webapp/page.h"
#include "webapp/web.h"

#include "common/base/log.h"
#include "common/model/job_member.h"
#include "common/service/cause.h"
#include "common/store/system_store.h"

#define LIST_MAX 1000

static enum err_code id_of(const struct request *req, char *ret_id, struct err *err)
{
    static const struct entity_rule rule = {"id of a system", SYSTEM_ID_SIZE, false};
    return entity_name(req, 0, &rule, ret_id, err);
}

static json_t *limit_view(uint32_t limit)
{
    return limit ? json_integer(limit) : json_null();
}

static json_t *system_view(const struct job_system *row)
{
    return json_pack("{s:s,s:s,s:b,s:o,s:o,s:s,s:I,s:o,s:o}", "id", row->id, "kind", row->kind,
                     "enabled", row->enabled, "maxActive", limit_view(row->max_active),
                     "maxActivePerOwner", limit_view(row->max_active_per_owner), "description",
                     row->description, "version", (json_int_t)row->version, "created",
                     view_time(row->created_us), "updated", view_time(row->updated_us));
}

static enum err_code reply_system(struct request *req, unsigned status, const char *id,
                                  struct err *err)
{
    struct job_system row;
    enum err_code rc = system_store_get(req->web->store, req->who.tenant, id, &row, err);
    if (rc)
        return rc;
    reply_json(req, status, system_view(&row));
    reply_tag(req, row.version);
    return ERR_OK;
}

enum err_code system_list(struct request *req, struct err *err)
{
    char after[PAGE_NAME_SIZE];
    char cursor[PAGE_CURSOR_SIZE] = "";
    struct name_page page;
    struct job_system *rows = NULL;
    size_t count = 0;
    enum err_code rc = page_read(req, "systems", LIST_MAX, after, &page, err);
    const struct name_page more = {page.after,
                                   page.limit + 1}; /* it shows that there is a further page */
    if (rc == ERR_OK)
        rc = system_store_list(req->web->store, req->who.tenant, &more, &rows, &count, err);
    if (rc)
        return rc;
    if (count > page.limit) {
        count = page.limit;
        page_cursor(req, "systems", rows[count - 1].id, cursor);
    }
    json_t *items = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(items, system_view(&rows[i]));
    free(rows);
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:o,s:o}", "systems", items, "nextCursor", view_text(cursor)));
    return ERR_OK;
}

enum err_code system_get(struct request *req, struct err *err)
{
    char id[SYSTEM_ID_SIZE];
    enum err_code rc = id_of(req, id, err);
    if (rc == ERR_OK)
        rc = reply_system(req, MHD_HTTP_OK, id, err);
    if (rc == ERR_OK)
        reply_unless_known(req);
    return rc;
}

/* ---- the body -------------------------------------------------------------------------------- */

static enum err_code read_kind(struct job_system *row, const struct member *member, struct err *err)
{
    const char *text = NULL;
    enum err_code rc = member_text(member, sizeof(row->kind) - 1, &text, err);
    if (rc == ERR_OK && strcmp(text, "local") != 0)
        rc = err_set_at(err, ERR_INVALID, member->pointer,
                        "there is no kind '%s'; local is the only one", text);
    return rc;
}

static enum err_code read_member(struct job_system *row, const char *name, json_t *value,
                                 struct err *err)
{
    static const char *const names[] = {"kind", "description", "maxActive", "maxActivePerOwner"};
    static const struct member_names known = {"a system", names, ARRAY_LEN(names)};
    struct member member = member_of("", name, value);
    if (strcmp(name, "kind") == 0)
        return read_kind(row, &member, err);
    if (strcmp(name, "description") == 0)
        return member_copy(&member, row->description, sizeof(row->description), err);
    if (strcmp(name, "maxActive") == 0)
        return limit_read(&member, true, &row->max_active, err);
    if (strcmp(name, "maxActivePerOwner") == 0)
        return limit_read(&member, true, &row->max_active_per_owner, err);
    return member_unknown(&member, name, &known, err);
}

static enum err_code read_body(const struct request *req, struct job_system *row, struct err *err)
{
    JSON_AUTO json_t *root = NULL;
    const char *name = NULL;
    json_t *value = NULL;
    enum err_code rc = request_json(req, &root, err);
    if (rc)
        return rc;
    json_object_foreach(root, name, value)
    {
        enum err_code one = read_member(row, name, value, err);
        rc = rc ? rc : one;
        if (rc && !err_wants_more(err))
            return rc;
    }
    return rc;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void log_change(const struct request *req, const char *event, const char *id)
{
    log_event(LOG_INFO, event, LOG_S("tenant", req->who.tenant), LOG_S("system", id),
              LOG_S("user", req->who.user));
}

/* Whoever waits for it need not wait until he is looked at. */
static void tell_waiting(const struct request *req, const char *id)
{
    char params[BLOCK_PARAMS_SIZE];
    cause_tell_changed(req->web->store, req->web->pub, req->who.tenant, JOB_COND_SYSTEM_UNAVAILABLE,
                       cause_system_params(id, params));
}

enum err_code system_put(struct request *req, struct err *err)
{
    struct job_system row = {.kind = "local"};
    uint32_t expect = EXPECT_ANY;
    uint32_t version = 0;
    bool made = false;
    (void)snprintf(row.tenant, sizeof(row.tenant), "%s", req->who.tenant);
    enum err_code rc = id_of(req, row.id, err);
    if (rc == ERR_OK)
        rc = read_body(req, &row, err);
    if (rc == ERR_OK)
        rc = entity_expect(req, &expect, err);
    if (rc == ERR_OK)
        rc = system_store_put(req->web->store, &row, expect, &version, &made, err);
    if (rc == ERR_OK)
        rc = reply_system(req, made ? MHD_HTTP_CREATED : MHD_HTTP_OK, row.id, err);
    if (rc)
        return rc;
    const struct quota_key whose = {.tenant = row.tenant, .system_id = row.id};
    cause_tell_room(req->web->store, req->web->pub, &whose);
    tell_waiting(req, row.id);
    log_change(req, "system.put", row.id);
    if (made)
        reply_location(req);
    return ERR_OK;
}

enum err_code system_delete(struct request *req, struct err *err)
{
    char id[SYSTEM_ID_SIZE];
    enum err_code rc = id_of(req, id, err);
    if (rc == ERR_OK)
        rc = entity_delete(req, system_store_delete, id, err);
    if (rc)
        return rc;
    log_change(req, "system.delete", id);
    return ERR_OK;
}

static enum err_code set_enabled(struct request *req, bool enabled, struct err *err)
{
    char id[SYSTEM_ID_SIZE];
    enum err_code rc = id_of(req, id, err);
    if (rc == ERR_OK)
        rc = system_store_enable(req->web->store, req->who.tenant, id, enabled, err);
    if (rc)
        return rc;
    if (enabled)
        tell_waiting(req, id);
    log_change(req, enabled ? "system.enable" : "system.disable", id);
    return reply_system(req, MHD_HTTP_OK, id, err);
}

enum err_code system_enable(struct request *req, struct err *err)
{
    return set_enabled(req, true, err);
}

enum err_code system_disable(struct request *req, struct err *err)
{
    return set_enabled(req, false, err);
}
