/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_FILTER_ROW_H
#define TESTS_SUPPORT_FILTER_ROW_H

/* filter_row: a sample job for tests of filters (schema: filter_job_schema). appId, exitCode and
 * ended are NULL. Include after test.h. */

#include "common/filter/filter.h"

#define FILTER_ROW_CREATED_US 1769860800500000 /* 2026-01-31T12:00:00.5Z */

static inline bool filter_row_env(void *ctx, struct sv name, struct sv *ret_value)
{
    (void)ctx;
    if (sv_is(name, "TEAM"))
        *ret_value = SV("blue");
    else if (sv_is(name, "EMPTY"))
        *ret_value = SV("");
    else
        return false;
    return true;
}

static inline struct filter_value filter_row_text(const char *text)
{
    return filter_string(sv_of(text));
}

static inline struct filter_row filter_row_sample(void)
{
    static struct filter_value values[FILTER_JOB_ATTR_COUNT];
    static const struct sv tags[] = {{"gpu", 3}, {"blue", 4}};
    values[FILTER_ATTR_NAME] = filter_row_text("it's");
    values[FILTER_ATTR_OWNER] = filter_row_text("anna");
    values[FILTER_ATTR_STATUS] = filter_row_text("RUNNING");
    values[FILTER_ATTR_QUEUE] = filter_row_text("quick");
    values[FILTER_ATTR_ARCHIVE_MODE] = filter_row_text("always");
    values[FILTER_ATTR_NODE_COUNT] = filter_number(2);
    values[FILTER_ATTR_CORES] = filter_number(8);
    values[FILTER_ATTR_MEMORY_MB] = filter_number(2048);
    values[FILTER_ATTR_VISIBLE] = filter_bool(true);
    values[FILTER_ATTR_TAGS] = filter_list(tags, ARRAY_LEN(tags));
    values[FILTER_ATTR_CREATED] = filter_time(FILTER_ROW_CREATED_US);
    values[FILTER_ATTR_STARTED] = filter_time(FILTER_ROW_CREATED_US + 1);
    return (struct filter_row){.values = values, .env = filter_row_env};
}

/* What the text says of the sample. */
static inline enum filter_truth filter_row_eval(const char *text)
{
    AUTO(filter_free) struct filter *f = NULL;
    struct err err = {0};
    struct filter_row row = filter_row_sample();
    if (filter_compile(&filter_job_schema, sv_of(text), &f, NULL, &err))
        fail_msg("%s: %s", text, err.text);
    return filter_eval(f, &row);
}

#endif
