/* SPDX-License-Identifier: MIT */
#include "common/filter/schema.h"

#define ANY .values = NULL
#define OF(list) .values = (list)
#define RANGE(from, to) .low = (from), .high = (to)

static const char *const archive_modes[] = {"never", "onSuccess", "always", NULL};

static const char *const states[] = {
#define JOB_STATE(name, text, ends, next) text,
#include "common/model/job_state.def"
#undef JOB_STATE
    NULL,
};

/* The first is NONE, which a row has as NULL. */
static const char *const all_conditions[] = {
#define JOB_CONDITION(name, rank, meaning) #name,
#include "common/model/condition.def"
#undef JOB_CONDITION
    NULL,
};
#define conditions (all_conditions + 1)

#define FILTER_ATTR(id, text, kind, limits, about)                                                 \
    [FILTER_ATTR_##id] = {.name = (text), .type = FILTER_##kind, .help = (about), limits},
static const struct filter_attr queue_attrs[] = {
#include "common/filter/queue_attr.def"
};
static const struct filter_attr job_attrs[] = {
#include "common/filter/job_attr.def"
#include "common/filter/queue_attr.def"
};
#undef FILTER_ATTR

const struct filter_schema filter_queue_schema = {queue_attrs, ARRAY_LEN(queue_attrs), true};
const struct filter_schema filter_job_schema = {job_attrs, ARRAY_LEN(job_attrs), true};
