/* SPDX-License-Identifier: MIT */
#include "webapp/router.h"

#define US_PER_S 1000000
#define S_PER_HOUR 3600
#define S_PER_DAY 86400

static struct filter_value text_value(const char *text)
{
    if (!text)
        return (struct filter_value){.type = FILTER_NULL};
    return (struct filter_value){.type = FILTER_STRING, .text = sv_of(text)};
}

static struct filter_value number_value(int64_t number)
{
    return (struct filter_value){.type = FILTER_NUMBER, .integer = number};
}

static bool env_value(void *ctx, struct sv name, struct sv *ret_value)
{
    const struct job_request *request = ctx;
    for (size_t i = 0; i < request->env_count; i++) {
        if (!sv_is(name, request->env[i].name))
            continue;
        *ret_value = sv_of(request->env[i].value);
        return true;
    }
    return false;
}

static const char *archive_text(enum archive_mode mode)
{
    switch (mode) {
    case ARCHIVE_NEVER:
        return "never";
    case ARCHIVE_ON_SUCCESS:
        return "onSuccess";
    case ARCHIVE_ALWAYS:
        break;
    }
    return "always";
}

void routing_row_init(struct routing_row *ret_row, const struct job_request *request,
                      const char *tenant, const char *owner, int64_t wall_us)
{
    struct routing_row *r = ret_row;
    int64_t seconds = wall_us / US_PER_S;
    *r = (struct routing_row){0};
    r->values[FILTER_ATTR_NAME] = text_value(request->name);
    r->values[FILTER_ATTR_OWNER] = text_value(owner);
    r->values[FILTER_ATTR_TENANT] = text_value(tenant);
    r->values[FILTER_ATTR_APP_ID] = text_value(request->app_id);
    r->values[FILTER_ATTR_APP_VERSION] = text_value(request->app_version);
    r->values[FILTER_ATTR_SYSTEM_ID] = text_value(request->system_id);
    r->values[FILTER_ATTR_NODE_COUNT] = number_value(request->node_count);
    r->values[FILTER_ATTR_CORES] = number_value(request->cores_per_node);
    r->values[FILTER_ATTR_MEMORY_MB] = number_value(request->memory_mb);
    r->values[FILTER_ATTR_MAX_MINUTES] = number_value((request->max_seconds + 59) / 60);
    r->values[FILTER_ATTR_HOUR] = number_value(seconds % S_PER_DAY / S_PER_HOUR);
    r->values[FILTER_ATTR_WEEKDAY] = /* 1970-01-01 was a Thursday: 4 */
        number_value((seconds / S_PER_DAY + 3) % 7 + 1);
    r->values[FILTER_ATTR_ATTEMPT] = number_value(1);
    r->values[FILTER_ATTR_ARCHIVE_MODE] = text_value(archive_text(request->archive));
    size_t count = request->tags.count < LIMIT_TAG_COUNT ? request->tags.count : LIMIT_TAG_COUNT;
    for (size_t i = 0; i < count; i++)
        r->tags[i] = sv_of(request->tags.items[i]);
    r->values[FILTER_ATTR_TAGS].type = FILTER_LIST;
    r->values[FILTER_ATTR_TAGS].list.items = r->tags;
    r->values[FILTER_ATTR_TAGS].list.count = count;
    r->row = (struct filter_row){r->values, env_value, (void *)(uintptr_t)request};
}
