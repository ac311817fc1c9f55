/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_FILTER_VIEW_H
#define WEBAPP_FILTER_VIEW_H

/* filter_view: filters, their faults and their values as JSON. Threads: any. */

#include "common/filter/filter.h"
#include "webapp/request.h"

/* A problem with "position" {offset, line, column} and "caret", the line with a caret below. */
void reply_filter_problem(struct request *req, const struct err *err,
                          const struct filter_report *report);
json_t *filter_warnings_view(const struct filter_report *report); /* an array of texts */
json_t *filter_value_view(const struct filter_value *value);
const char *filter_truth_text(enum filter_truth truth); /* "TRUE", "FALSE", "UNKNOWN" */

#endif
