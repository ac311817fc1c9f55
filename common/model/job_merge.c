/* SPDX-License-Identifier: MIT */
#include "common/model/job_request.h"

#include "common/base/spare.h"
#include "common/model/job_member.h"
#include "common/model/limits.h"

/* Members of the application under those of the request, one level deep. */
static void lay_beneath(json_t *merged, const json_t *app)
{
    static const char *const joined_arrays[] = {"fileInputs", "tags", "args"};
    json_t *beneath = json_deep_copy(app);
    if (json_object_get(merged, "maxSeconds") || json_object_get(merged, "maxMinutes")) {
        (void)json_object_del(beneath, "maxSeconds");
        (void)json_object_del(beneath, "maxMinutes");
    }
    for (size_t i = 0; i < ARRAY_LEN(joined_arrays); i++) {
        json_t *ours = json_object_get(merged, joined_arrays[i]);
        json_t *theirs = json_object_get(beneath, joined_arrays[i]);
        if (!ours || !theirs)
            continue;
        json_t *both = json_copy(theirs);
        (void)json_array_extend(both, ours);
        (void)json_object_set_new(merged, joined_arrays[i], both);
    }
    json_t *env = json_object_get(merged, "env");
    if (env)
        (void)json_object_update_missing(env, json_object_get(beneath, "env"));
    (void)json_object_update_missing(merged, beneath);
    json_decref(beneath);
}

enum err_code job_request_merge(const struct job_request *request, struct sv definition,
                                struct job_request **ret_merged, struct err *err)
{
    JSON_AUTO json_t *app = NULL;
    enum err_code rc = job_json_read(definition, &app, err);
    if (rc)
        return rc;
    JSON_AUTO json_t *merged = json_deep_copy(request->root);
    if (!merged)
        return err_set(err, ERR_NOMEM, "no memory for a request");
    lay_beneath(merged, app);
    return job_request_from_json(merged, NULL, ret_merged, err);
}

enum err_code job_request_complete(struct job_request *request, uint32_t default_seconds,
                                   uint32_t most_seconds, struct err *err)
{
    if (request->command.count == 0)
        return err_set_at(err, ERR_INVALID, "/command",
                          "neither the request nor its application has a command");
    if (!request->has_max_seconds) {
        request->max_seconds = default_seconds;
        request->has_max_seconds = true;
        if (json_object_set_new(request->root, "maxSeconds", json_integer(default_seconds)))
            return err_set(err, ERR_NOMEM, "no memory for a request");
    }
    if (request->max_seconds <= most_seconds)
        return ERR_OK;
    bool minutes = json_object_get(request->root, "maxMinutes") != NULL;
    unsigned unit_s = minutes ? 60 : 1;
    return err_set_at(err, ERR_INVALID, minutes ? "/maxMinutes" : "/maxSeconds",
                      "%u %s are too long, at most %u (limits.max_minutes)",
                      request->max_seconds / unit_s, minutes ? "minutes" : "seconds",
                      most_seconds / unit_s);
}

char *job_request_text(const struct job_request *request)
{
    JSON_AUTO json_t *copy = json_copy(request->root);
    if (!copy)
        return NULL;
    (void)json_object_del(copy, "idempotencyKey");
    return spare_text(json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS));
}

char *job_request_tags(const struct job_request *request)
{
    JSON_AUTO json_t *tags = json_array();
    for (size_t i = 0; tags && i < request->tags.count; i++)
        (void)json_array_append_new(tags, json_string(request->tags.items[i]));
    return tags ? spare_text(json_dumps(tags, JSON_COMPACT)) : NULL;
}
