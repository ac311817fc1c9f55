/* SPDX-License-Identifier: MIT */
#include "webapp/why_look.h"

#include "common/store/app_store.h"
#include "common/store/system_store.h"

#include <jansson.h>

#define SUBJECT_SIZE 256

/* The newest act of this name; the path is as requests name it. */
static void find_act(struct web *web, const struct job *job, const char *action,
                     const char *subject, struct why_held *held)
{
    struct err err = {0};
    struct audit_act act = {0};
    if (audit_log_newest(web->store, job->tenant, action, subject, &act, &err) == ERR_OK)
        held->act = act;
}

static void look_at_app(struct web *web, const struct job *job, struct why_held *held)
{
    char subject[SUBJECT_SIZE];
    struct app app = {0};
    struct err err = {0};
    enum err_code rc =
        app_store_get(web->store, job->tenant, job->app_id, job->app_version, &app, &err);
    held->has_thing = rc == ERR_OK || rc == ERR_NOT_FOUND;
    held->exists = rc == ERR_OK;
    held->enabled = app.enabled;
    app_done(&app);
    (void)snprintf(subject, sizeof(subject), "/v1/apps/%s/%s%s", job->app_id, job->app_version,
                   held->exists ? "/disable" : "");
    if (held->has_thing && !held->enabled)
        find_act(web, job, held->exists ? "app_disable" : "app_delete", subject, held);
}

static void look_at_system(struct web *web, const struct job *job, struct why_held *held)
{
    char subject[SUBJECT_SIZE];
    struct job_system found = {0};
    struct err err = {0};
    enum err_code rc = system_store_get(web->store, job->tenant, job->system_id, &found, &err);
    held->has_thing = rc == ERR_OK || rc == ERR_NOT_FOUND;
    held->exists = rc == ERR_OK;
    held->enabled = found.enabled;
    (void)snprintf(subject, sizeof(subject), "/v1/systems/%s%s", job->system_id,
                   held->exists ? "/disable" : "");
    if (held->has_thing && !held->enabled)
        find_act(web, job, held->exists ? "system_disable" : "system_delete", subject, held);
}

static void look_at_quota(struct web *web, const struct job *job, const struct why_blocked *blocked,
                          struct why_held *held)
{
    struct err err = {0};
    struct quota_key key = {
        .tenant = job->tenant, .owner = job->owner, .system_id = job->system_id};
    json_t *params = json_loads(blocked->params, 0, NULL);
    const char *scope = json_string_value(json_object_get(params, "scope"));
    if (scope && quota_scope_parse(sv_of(scope), &key.scope) &&
        quota_store_use(web->store, &key, &held->use, &err) == ERR_OK) {
        held->has_use = held->use.limit != QUOTA_NO_LIMIT;
        held->scope = key.scope;
    }
    json_decref(params);
}

void why_look(struct web *web, const struct job *job, const struct why_blocked *blocked,
              struct why_held *ret_held)
{
    *ret_held = (struct why_held){0};
    if (job->condition == JOB_COND_APPLICATION_UNAVAILABLE)
        look_at_app(web, job, ret_held);
    else if (job->condition == JOB_COND_SYSTEM_UNAVAILABLE)
        look_at_system(web, job, ret_held);
    else if (job->condition == JOB_COND_QUOTA_EXCEEDED)
        look_at_quota(web, job, blocked, ret_held);
}
