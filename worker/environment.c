/* SPDX-License-Identifier: MIT */
#include "worker/environment.h"

#include "common/model/limits.h"

#define ENV_ITEM_MAX ((size_t)LIMIT_WORD_BYTES + LIMIT_ENV_NAME_BYTES + 2)

/* Each adds its value; false: there is none, and the variable is left out. */
typedef bool env_value(const struct environment_source *source, struct buf *out);

static bool env_path(const struct environment_source *source, struct buf *out)
{
    (void)source;
    return buf_add_text(out, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
}

static bool env_home(const struct environment_source *source, struct buf *out)
{
    return buf_add_text(out, source->home);
}

static bool env_lang(const struct environment_source *source, struct buf *out)
{
    (void)source;
    return buf_add_text(out, "C.UTF-8");
}

static bool env_job_id(const struct environment_source *source, struct buf *out)
{
    char text[UUID_TEXT_SIZE];
    return buf_add_text(out, uuid_text(&source->job->id, text));
}

static bool env_run(const struct environment_source *source, struct buf *out)
{
    return buf_addf(out, "%llu", (unsigned long long)source->run);
}

static bool env_attempt(const struct environment_source *source, struct buf *out)
{
    return buf_addf(out, "%u", source->job->attempts + 1);
}

static bool env_tenant(const struct environment_source *source, struct buf *out)
{
    return buf_add_text(out, source->job->tenant);
}

static bool env_queue(const struct environment_source *source, struct buf *out)
{
    return buf_add_text(out, source->job->queue);
}

static bool env_job_name(const struct environment_source *source, struct buf *out)
{
    return buf_add_text(out, source->job->name);
}

static bool env_owner(const struct environment_source *source, struct buf *out)
{
    return buf_add_text(out, source->job->owner);
}

static bool env_app_id(const struct environment_source *source, struct buf *out)
{
    return source->job->app_id[0] && buf_add_text(out, source->job->app_id);
}

static bool env_app_version(const struct environment_source *source, struct buf *out)
{
    return source->job->app_version[0] && buf_add_text(out, source->job->app_version);
}

static bool env_node_count(const struct environment_source *source, struct buf *out)
{
    return buf_addf(out, "%u", source->job->node_count);
}

static bool env_cores(const struct environment_source *source, struct buf *out)
{
    return buf_addf(out, "%u", source->job->cores_per_node);
}

static bool env_memory(const struct environment_source *source, struct buf *out)
{
    return source->job->memory_mb && buf_addf(out, "%u", source->job->memory_mb);
}

static bool env_max_seconds(const struct environment_source *source, struct buf *out)
{
    return buf_addf(out, "%u", source->job->max_seconds);
}

static bool env_worker(const struct environment_source *source, struct buf *out)
{
    return buf_add_text(out, source->worker_name);
}

static bool env_traceparent(const struct environment_source *source, struct buf *out)
{
    return source->traceparent[0] && buf_add_text(out, source->traceparent);
}

static const struct {
    const char *name;
    env_value *value;
} env_table[] = {
#define JOB_ENV(name, value, meaning) {#name, env_##value},
#include "worker/env.def"
#undef JOB_ENV
};

static enum err_code add_item(struct environment *environment, struct buf *item, struct err *err)
{
    char *text = buf_take(item);
    if (!text)
        return err_set(err, ERR_NOMEM, "no memory for the environment");
    environment->items[environment->count++] = text;
    return ERR_OK;
}

static bool request_has(const struct job_request *request, const char *name)
{
    for (size_t i = 0; i < request->env_count; i++) {
        if (strcmp(request->env[i].name, name) == 0)
            return true;
    }
    return false;
}

static enum err_code add_table(const struct environment_source *source,
                               struct environment *environment, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(env_table); i++) {
        BUF_AUTO struct buf item = BUF_INIT(ENV_ITEM_MAX);
        if (request_has(source->request, env_table[i].name))
            continue;
        buf_addf(&item, "%s=", env_table[i].name);
        if (!env_table[i].value(source, &item) && !item.failed)
            continue;
        enum err_code rc = add_item(environment, &item, err);
        if (rc)
            return rc;
    }
    return ERR_OK;
}

enum err_code environment_make(const struct environment_source *source,
                               struct environment *ret_environment, struct err *err)
{
    const struct job_request *request = source->request;
    ENVIRONMENT_AUTO struct environment made = {0};
    made.items = calloc(ARRAY_LEN(env_table) + request->env_count + 1, sizeof(char *));
    if (!made.items)
        return err_set(err, ERR_NOMEM, "no memory for the environment");
    enum err_code rc = add_table(source, &made, err);
    for (size_t i = 0; i < request->env_count && rc == ERR_OK; i++) {
        BUF_AUTO struct buf item = BUF_INIT(ENV_ITEM_MAX);
        buf_addf(&item, "%s=", request->env[i].name);
        buf_add_text(&item, request->env[i].value);
        rc = add_item(&made, &item, err);
    }
    if (rc)
        return rc;
    *ret_environment = made;
    made = (struct environment){0};
    return ERR_OK;
}

void environment_free(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->items[i]);
    free(environment->items);
    *environment = (struct environment){0};
}
