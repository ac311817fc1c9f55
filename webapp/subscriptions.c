/* SPDX-License-Identifier: MIT */
#include "webapp/entity.h"
#include "webapp/handlers.h"
#include "webapp/hooks.h"
#include "webapp/job_view.h"

#include "common/auth/hook_sign.h"
#include "common/base/log.h"
#include "common/model/job_member.h"
#include "common/store/hook_store.h"

static enum err_code name_of(const struct request *req, char *ret_name, struct err *err)
{
    static const struct entity_rule rule = {"name of a subscription", HOOK_NAME_SIZE, false};
    return entity_name(req, 0, &rule, ret_name, err);
}

static void log_change(const struct request *req, const char *event, const char *name)
{
    log_event(LOG_INFO, event, LOG_S("tenant", req->who.tenant), LOG_S("subscription", name),
              LOG_S("user", req->who.user));
}

/* ---- answers --------------------------------------------------------------------------------- */

static json_t *states_view(unsigned states)
{
    json_t *view = json_array();
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        if (states & 1u << i)
            json_array_append_new(view, json_string(job_state_text((enum job_state)i)));
    }
    return view;
}

static json_t *hook_view(const struct subscription *row)
{
    json_t *view = json_object();
    json_object_set_new(view, "name", json_string(row->name));
    json_object_set_new(view, "url", json_string(row->url));
    json_object_set_new(view, "states", states_view(row->states));
    json_object_set_new(view, "enabled", json_boolean(row->enabled));
    json_object_set_new(view, "description", json_string(row->description));
    json_object_set_new(view, "owner", json_string(row->owner));
    json_object_set_new(view, "version", json_integer(row->version));
    json_object_set_new(view, "created", view_time(row->created_us));
    json_object_set_new(view, "updated", view_time(row->updated_us));
    return view;
}

/* seed: the secret is told, this one time; NULL: it is not. */
static enum err_code reply_hook(struct request *req, unsigned status, const char *name,
                                const uint8_t *seed, struct err *err)
{
    struct subscription row;
    char secret[HOOK_SECRET_SIZE];
    enum err_code rc = hook_store_get(req->web->store, req->who.tenant, name, &row, err);
    if (rc)
        return rc;
    json_t *view = hook_view(&row);
    if (seed)
        json_object_set_new(
            view, "secret",
            json_string(hook_secret(req->web->cfg->webhook_key,
                                    (struct sv){(const char *)seed, HOOK_SEED_SIZE}, secret)));
    reply_json(req, status, view);
    reply_tag(req, row.version);
    return ERR_OK;
}

enum err_code subscription_list(struct request *req, struct err *err)
{
    struct subscription *rows = NULL;
    size_t count = 0;
    enum err_code rc = hook_store_list(req->web->store, req->who.tenant, &rows, &count, err);
    if (rc)
        return rc;
    json_t *items = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(items, hook_view(&rows[i]));
    free(rows);
    reply_json(req, MHD_HTTP_OK, json_pack("{s:o}", "subscriptions", items));
    return ERR_OK;
}

enum err_code subscription_get(struct request *req, struct err *err)
{
    char name[HOOK_NAME_SIZE];
    enum err_code rc = name_of(req, name, err);
    return rc ? rc : reply_hook(req, MHD_HTTP_OK, name, NULL, err);
}

/* ---- PUT ------------------------------------------------------------------------------------- */

static enum err_code read_member(struct subscription *row, const char *name, json_t *value,
                                 struct err *err)
{
    static const char *const names[] = {"url", "states", "description"};
    static const struct member_names known = {"a subscription", names, ARRAY_LEN(names)};
    struct member member = member_of("", name, value);
    const char *text = NULL;
    enum err_code rc = ERR_OK;
    if (strcmp(name, "states") == 0)
        return member_hook_states(&member, &row->states, err);
    if (strcmp(name, "url") == 0) {
        rc = member_hook_url(&member, &text, err);
        if (rc == ERR_OK)
            (void)snprintf(row->url, sizeof(row->url), "%s", text);
        return rc;
    }
    if (strcmp(name, "description") == 0)
        return member_copy(&member, row->description, sizeof(row->description), err);
    return member_unknown(&member, name, &known, err);
}

static enum err_code read_body(const struct request *req, struct subscription *row, struct err *err)
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
    if (!json_object_get(root, "url"))
        rc = err_set_at(err, ERR_INVALID, "/url", "url is missing");
    return rc ? rc : hook_url_allowed(req, row->url, "/url", err);
}

enum err_code subscription_put(struct request *req, struct err *err)
{
    struct subscription row = {.states = HOOK_STATES_DEFAULT};
    uint8_t seed[HOOK_SEED_SIZE];
    uint32_t expect = EXPECT_ANY;
    bool made = false;
    row.id = uuid_v7();
    random_bytes(seed, sizeof(seed));
    (void)snprintf(row.tenant, sizeof(row.tenant), "%s", req->who.tenant);
    (void)snprintf(row.owner, sizeof(row.owner), "%s", req->who.user);
    enum err_code rc = name_of(req, row.name, err);
    if (rc == ERR_OK)
        rc = read_body(req, &row, err);
    if (rc == ERR_OK)
        rc = entity_expect(req, &expect, err);
    if (rc == ERR_OK)
        rc = hook_store_put(req->web->store, &row, expect, seed, &made, err);
    if (rc == ERR_OK)
        rc = reply_hook(req, made ? MHD_HTTP_CREATED : MHD_HTTP_OK, row.name, made ? seed : NULL,
                        err);
    if (rc)
        return rc;
    log_change(req, "subscription.put", row.name);
    if (made)
        reply_location(req);
    return ERR_OK;
}

/* ---- acts ------------------------------------------------------------------------------------ */

enum err_code subscription_delete(struct request *req, struct err *err)
{
    char name[HOOK_NAME_SIZE];
    enum err_code rc = name_of(req, name, err);
    if (rc == ERR_OK)
        rc = entity_delete(req, hook_store_delete, name, err);
    if (rc)
        return rc;
    log_change(req, "subscription.delete", name);
    return ERR_OK;
}

static enum err_code set_enabled(struct request *req, bool enabled, struct err *err)
{
    char name[HOOK_NAME_SIZE];
    enum err_code rc = name_of(req, name, err);
    if (rc == ERR_OK)
        rc = hook_store_enable(req->web->store, req->who.tenant, name, enabled, err);
    if (rc)
        return rc;
    log_change(req, enabled ? "subscription.enable" : "subscription.disable", name);
    return reply_hook(req, MHD_HTTP_OK, name, NULL, err);
}

enum err_code subscription_enable(struct request *req, struct err *err)
{
    return set_enabled(req, true, err);
}

enum err_code subscription_disable(struct request *req, struct err *err)
{
    return set_enabled(req, false, err);
}

enum err_code subscription_rotate(struct request *req, struct err *err)
{
    char name[HOOK_NAME_SIZE];
    uint8_t seed[HOOK_SEED_SIZE];
    random_bytes(seed, sizeof(seed));
    enum err_code rc = name_of(req, name, err);
    if (rc == ERR_OK)
        rc = hook_store_rotate(req->web->store, req->who.tenant, name, seed,
                               req->web->cfg->webhook_rotate_s, err);
    if (rc)
        return rc;
    log_change(req, "subscription.rotate", name);
    return reply_hook(req, MHD_HTTP_OK, name, seed, err);
}
