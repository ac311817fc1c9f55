/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILTER_SCHEMA_H
#define COMMON_FILTER_SCHEMA_H

/* schema: the attributes that a filter may read, and the rows of values that it judges.
 * Threads: immutable. Memory: all of it is the caller's. */

#include "common/base/base.h"
#include "common/base/sv.h"

enum filter_type {
    FILTER_NULL,
    FILTER_STRING,
    FILTER_NUMBER,
    FILTER_BOOL,
    FILTER_LIST, /* of strings */
    FILTER_TIME,
};

struct filter_attr {
    const char *name;
    enum filter_type type;
    const char *const *values; /* of a string that is always one of them, ended by NULL; or NULL */
    int64_t low;               /* of a number: what it is always within; or 0 and 0 */
    int64_t high;
    const char *help; /* for people: what it is */
};

struct filter_schema {
    const struct filter_attr *attrs;
    size_t count;
    bool env; /* env.NAME may be read; always a string */
};

/* Indexes of the two schemas; the queue's are a prefix of the job's. */
enum filter_attr_id {
#define FILTER_ATTR(id, name, type, values, help) FILTER_ATTR_##id,
#include "common/filter/queue_attr.def"
    FILTER_QUEUE_ATTR_COUNT,
    FILTER_QUEUE_ATTR_LAST = FILTER_QUEUE_ATTR_COUNT - 1,
#include "common/filter/job_attr.def"
#undef FILTER_ATTR
    FILTER_JOB_ATTR_COUNT
};
extern const struct filter_schema filter_queue_schema; /* queue_attr.def, and env */
extern const struct filter_schema filter_job_schema;   /* and job_attr.def */

struct filter_value {
    enum filter_type type; /* FILTER_NULL: nothing else counts */
    bool is_real;          /* a number that is in real, not in integer */
    union {
        struct sv text;
        int64_t integer; /* number; or time, in microseconds since 1970-01-01 UTC */
        double real;
        bool truth;
        struct {
            const struct sv *items;
            size_t count;
        } list;
    };
};

static inline struct filter_value filter_string(struct sv text)
{
    return (struct filter_value){.type = FILTER_STRING, .text = text};
}

static inline struct filter_value filter_number(int64_t integer)
{
    return (struct filter_value){.type = FILTER_NUMBER, .integer = integer};
}

static inline struct filter_value filter_bool(bool truth)
{
    return (struct filter_value){.type = FILTER_BOOL, .truth = truth};
}

static inline struct filter_value filter_time(int64_t wall_us)
{
    return (struct filter_value){.type = FILTER_TIME, .integer = wall_us};
}

static inline struct filter_value filter_list(const struct sv *items, size_t count)
{
    return (struct filter_value){.type = FILTER_LIST, .list = {items, count}};
}

/* What is judged; borrowed for the call. env may be NULL: every env.NAME is NULL then. */
struct filter_row {
    const struct filter_value *values; /* one per attribute of the schema */
    bool (*env)(void *ctx, struct sv name, struct sv *ret_value); /* false: not set */
    void *env_ctx;
};

#endif
