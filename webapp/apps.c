/* SPDX-License-Identifier: MIT */
#include "webapp/entity.h"
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/page.h"
#include "webapp/web.h"

#include "common/base/log.h"
#include "common/model/job_request.h"
#include "common/service/cause.h"
#include "common/store/app_store.h"

#define DEFINITION_LIMIT ((size_t)1024 * 1024)
#define LIST_MAX 100 /* a page has their definitions */

struct app_name {
    char id[APP_ID_SIZE];
    char version[APP_VERSION_SIZE];
};

static enum err_code name_of(const struct request *req, struct app_name *ret_name, struct err *err)
{
    static const struct entity_rule id_rule = {"application", APP_ID_SIZE, false};
    static const struct entity_rule version_rule = {"version", APP_VERSION_SIZE, false};
    enum err_code rc = entity_name(req, 0, &id_rule, ret_name->id, err);
    return rc ? rc : entity_name(req, 1, &version_rule, ret_name->version, err);
}

static json_t *app_view(const struct app *app)
{
    json_t *definition = json_loads(app->definition, 0, NULL);
    return json_pack("{s:s,s:s,s:b,s:o,s:I,s:o,s:o}", "id", app->id, "version", app->app_version,
                     "enabled", app->enabled, "definition", definition ? definition : json_null(),
                     "revision", (json_int_t)app->version, "created", view_time(app->created_us),
                     "updated", view_time(app->updated_us));
}

static enum err_code reply_app(struct request *req, unsigned status, const struct app_name *name,
                               struct err *err)
{
    struct app app = {0};
    enum err_code rc =
        app_store_get(req->web->store, req->who.tenant, name->id, name->version, &app, err);
    if (rc)
        return rc;
    reply_json(req, status, app_view(&app));
    reply_tag(req, app.version);
    app_done(&app);
    return ERR_OK;
}

/* In a cursor id and version have a blank between them, which neither may hold. */
static struct app_page page_behind(char *after, uint32_t limit)
{
    char *blank = strchr(after, ' ');
    if (!blank)
        return (struct app_page){"", "", limit};
    *blank = '\0';
    return (struct app_page){after, blank + 1, limit};
}

static void write_cursor(const struct request *req, const struct app *last, char *ret_cursor)
{
    char name[PAGE_NAME_SIZE];
    (void)snprintf(name, sizeof(name), "%s %s", last->id, last->app_version);
    page_cursor(req, "apps", name, ret_cursor);
}

enum err_code app_list(struct request *req, struct err *err)
{
    char after[PAGE_NAME_SIZE];
    char cursor[PAGE_CURSOR_SIZE] = "";
    struct name_page page;
    struct app_list list = {0};
    enum err_code rc = page_read(req, "apps", LIST_MAX, after, &page, err);
    const struct app_page behind = page_behind(after, page.limit + 1);
    if (rc == ERR_OK)
        rc = app_store_list(req->web->store, req->who.tenant, &behind, &list, err);
    if (rc)
        return rc;
    json_t *apps = json_array();
    for (size_t i = 0; i < list.count && i < page.limit; i++)
        json_array_append_new(apps, app_view(&list.items[i]));
    if (list.count > page.limit)
        write_cursor(req, &list.items[page.limit - 1], cursor);
    app_list_done(&list);
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:o,s:o}", "apps", apps, "nextCursor", view_text(cursor)));
    return ERR_OK;
}

enum err_code app_get(struct request *req, struct err *err)
{
    struct app_name name;
    enum err_code rc = name_of(req, &name, err);
    if (rc == ERR_OK)
        rc = reply_app(req, MHD_HTTP_OK, &name, err);
    if (rc == ERR_OK)
        reply_unless_known(req);
    return rc;
}

static enum err_code store_app(const struct request *req, const struct app_name *name,
                               bool *ret_made, struct err *err)
{
    uint32_t expect = EXPECT_ANY;
    uint32_t version = 0;
    TEXT_AUTO char *text = strdup(buf_text(&req->body));
    struct app app = {.definition = text};
    (void)snprintf(app.tenant, sizeof(app.tenant), "%s", req->who.tenant);
    (void)snprintf(app.id, sizeof(app.id), "%s", name->id);
    (void)snprintf(app.app_version, sizeof(app.app_version), "%s", name->version);
    enum err_code rc =
        text ? entity_expect(req, &expect, err) : err_set(err, ERR_NOMEM, "out of memory");
    if (rc == ERR_OK)
        rc = app_store_put(req->web->store, &app, expect, &version, ret_made, err);
    return rc;
}

/* Whoever waits for it need not wait until he is looked at. */
static void tell_waiting(const struct request *req, const struct app_name *name)
{
    char params[BLOCK_PARAMS_SIZE];
    cause_tell_changed(req->web->store, req->web->pub, req->who.tenant,
                       JOB_COND_APPLICATION_UNAVAILABLE,
                       cause_app_params(name->id, name->version, params));
}

enum err_code app_put(struct request *req, struct err *err)
{
    struct app_name name;
    bool made = false;
    enum err_code rc = name_of(req, &name, err);
    if (rc == ERR_OK && req->body.len > DEFINITION_LIMIT)
        rc = err_set(err, ERR_TOO_LARGE, "a definition has at most %zu bytes", DEFINITION_LIMIT);
    if (rc == ERR_OK)
        rc = job_request_check_app(buf_sv(&req->body), err);
    if (rc == ERR_OK)
        rc = store_app(req, &name, &made, err);
    if (rc == ERR_OK)
        rc = reply_app(req, made ? MHD_HTTP_CREATED : MHD_HTTP_OK, &name, err);
    if (rc)
        return rc;
    tell_waiting(req, &name);
    log_event(LOG_INFO, "app.put", LOG_S("tenant", req->who.tenant), LOG_S("app", name.id),
              LOG_S("version", name.version), LOG_S("user", req->who.user));
    if (made)
        reply_location(req);
    return ERR_OK;
}

enum err_code app_delete(struct request *req, struct err *err)
{
    struct app_name name;
    uint32_t expect = EXPECT_ANY;
    enum err_code rc = name_of(req, &name, err);
    if (rc == ERR_OK)
        rc = entity_expect_old(req, &expect, err);
    if (rc == ERR_OK)
        rc = app_store_delete(req->web->store, req->who.tenant, name.id, name.version, expect, err);
    if (rc)
        return rc;
    log_event(LOG_INFO, "app.delete", LOG_S("tenant", req->who.tenant), LOG_S("app", name.id),
              LOG_S("version", name.version), LOG_S("user", req->who.user));
    reply_empty(req, MHD_HTTP_NO_CONTENT);
    return ERR_OK;
}

static enum err_code set_enabled(struct request *req, bool enabled, struct err *err)
{
    struct app_name name;
    enum err_code rc = name_of(req, &name, err);
    if (rc == ERR_OK)
        rc =
            app_store_enable(req->web->store, req->who.tenant, name.id, name.version, enabled, err);
    if (rc)
        return rc;
    if (enabled)
        tell_waiting(req, &name);
    log_event(LOG_INFO, enabled ? "app.enable" : "app.disable", LOG_S("tenant", req->who.tenant),
              LOG_S("app", name.id), LOG_S("version", name.version), LOG_S("user", req->who.user));
    return reply_app(req, MHD_HTTP_OK, &name, err);
}

enum err_code app_enable(struct request *req, struct err *err)
{
    return set_enabled(req, true, err);
}

enum err_code app_disable(struct request *req, struct err *err)
{
    return set_enabled(req, false, err);
}
