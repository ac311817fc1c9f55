/* SPDX-License-Identifier: MIT */
#include "common/filter/schema.h"

#define FILTER_ATTR(id, name, type, help) [FILTER_ATTR_##id] = {name, FILTER_##type, help},
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
