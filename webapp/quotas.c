/* SPDX-License-Identifier: MIT */
#include "webapp/entity.h"
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/limit_body.h"
#include "webapp/page.h"
#include "webapp/web.h"

#include "common/base/log.h"
#include "common/service/cause.h"
#include "common/store/quota_store.h"

#define LIST_MAX 1000

/* A user as tokens name him, or "*" for the tenant. */
static enum err_code owner_of(const struct request *req, char *ret_owner, struct err *err)
{
    struct sv text = req->match.params[0];
    if (text.len > 0 && !sv_has_blank_end(text) && sv_copy(text, ret_owner, USER_SIZE))
        return ERR_OK;
    return err_set(
        err, ERR_INVALID,
        "the owner in the path has 1 to %d bytes without blanks at the ends; * stands for "
        "the whole tenant",
        USER_SIZE - 1);
}

/* Whoever waits for room need not wait until he is looked at. */
static void tell_room(const struct request *req, const char *owner)
{
    bool whole = strcmp(owner, QUOTA_TENANT_OWNER) == 0;
    const struct quota_key whose = {.tenant = req->who.tenant, .owner = whole ? NULL : owner};
    cause_tell_room(req->web->store, req->web->pub, &whose);
}

static json_t *quota_view(const struct quota *row)
{
    return json_pack("{s:s,s:I,s:I,s:o,s:o}", "owner", row->owner, "maxActive",
                     (json_int_t)row->max_active, "version", (json_int_t)row->version, "created",
                     view_time(row->created_us), "updated", view_time(row->updated_us));
}

static enum err_code reply_quota(struct request *req, unsigned status, const char *owner,
                                 struct err *err)
{
    struct quota row;
    struct quota_use use;
    bool whole = strcmp(owner, QUOTA_TENANT_OWNER) == 0;
    const struct quota_key key = {
        .tenant = req->who.tenant, .scope = whole ? QUOTA_TENANT : QUOTA_OWNER, .owner = owner};
    enum err_code rc = quota_store_get(req->web->store, req->who.tenant, owner, &row, err);
    if (rc == ERR_OK)
        rc = quota_store_use(req->web->store, &key, &use, err);
    if (rc)
        return rc;
    json_t *view = quota_view(&row);
    json_object_set_new(view, "active", json_integer(use.active));
    reply_json(req, status, view);
    reply_tag(req, row.version);
    return ERR_OK;
}

enum err_code quota_list(struct request *req, struct err *err)
{
    char after[PAGE_NAME_SIZE];
    char cursor[PAGE_CURSOR_SIZE] = "";
    struct name_page page;
    struct quota *rows = NULL;
    size_t count = 0;
    enum err_code rc = page_read(req, "quotas", LIST_MAX, after, &page, err);
    const struct name_page more = {page.after,
                                   page.limit + 1}; /* it shows that there is a further page */
    if (rc == ERR_OK)
        rc = quota_store_list(req->web->store, req->who.tenant, &more, &rows, &count, err);
    if (rc)
        return rc;
    if (count > page.limit) {
        count = page.limit;
        page_cursor(req, "quotas", rows[count - 1].owner, cursor);
    }
    json_t *items = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(items, quota_view(&rows[i]));
    free(rows);
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:o,s:o}", "quotas", items, "nextCursor", view_text(cursor)));
    return ERR_OK;
}

enum err_code quota_get(struct request *req, struct err *err)
{
    char owner[USER_SIZE];
    enum err_code rc = owner_of(req, owner, err);
    return rc ? rc : reply_quota(req, MHD_HTTP_OK, owner, err);
}

static enum err_code read_body(const struct request *req, struct quota *row, struct err *err)
{
    static const char *const names[] = {"maxActive"};
    static const struct member_names known = {"a quota", names, ARRAY_LEN(names)};
    JSON_AUTO json_t *root = NULL;
    const char *name = NULL;
    json_t *value = NULL;
    enum err_code rc = request_json(req, &root, err);
    if (rc)
        return rc;
    json_object_foreach(root, name, value)
    {
        struct member member = member_of("", name, value);
        enum err_code one = strcmp(name, names[0]) == 0
                                ? limit_read(&member, false, &row->max_active, err)
                                : member_unknown(&member, name, &known, err);
        rc = rc ? rc : one;
        if (rc && !err_wants_more(err))
            return rc;
    }
    if (!json_object_get(root, "maxActive"))
        rc = err_set_at(err, ERR_INVALID, "/maxActive", "a quota needs maxActive");
    return rc;
}

enum err_code quota_put(struct request *req, struct err *err)
{
    struct quota row = {0};
    uint32_t expect = EXPECT_ANY;
    uint32_t version = 0;
    bool made = false;
    (void)snprintf(row.tenant, sizeof(row.tenant), "%s", req->who.tenant);
    enum err_code rc = owner_of(req, row.owner, err);
    if (rc == ERR_OK)
        rc = read_body(req, &row, err);
    if (rc == ERR_OK)
        rc = entity_expect(req, &expect, err);
    if (rc == ERR_OK)
        rc = quota_store_put(req->web->store, &row, expect, &version, &made, err);
    if (rc == ERR_OK)
        rc = reply_quota(req, made ? MHD_HTTP_CREATED : MHD_HTTP_OK, row.owner, err);
    if (rc)
        return rc;
    if (made)
        reply_location(req);
    tell_room(req, row.owner);
    log_event(LOG_INFO, "quota.put", LOG_S("tenant", row.tenant), LOG_S("owner", row.owner),
              LOG_U("max_active", row.max_active), LOG_S("user", req->who.user));
    return ERR_OK;
}

enum err_code quota_delete(struct request *req, struct err *err)
{
    char owner[USER_SIZE];
    enum err_code rc = owner_of(req, owner, err);
    if (rc == ERR_OK)
        rc = entity_delete(req, quota_store_delete, owner, err);
    if (rc)
        return rc;
    tell_room(req, owner);
    log_event(LOG_INFO, "quota.delete", LOG_S("tenant", req->who.tenant), LOG_S("owner", owner),
              LOG_S("user", req->who.user));
    return ERR_OK;
}
