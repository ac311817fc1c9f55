/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_QUEUE_BODY_H
#define WEBAPP_QUEUE_BODY_H

/* queue_body: a queue as a client sends it, read strictly. Threads: any. */

#include "common/filter/filter.h"
#include "common/store/queue_store.h"

#include <jansson.h>

#define QUEUE_PRIORITY_MAX 1000000

/* {"priority", "filter", "queueType", "enabled", "maxMinutes", "description"}; priority is needed.
 * A filter is compiled: ERR_FILTER with its place in report. ret_queue borrows the filter's text
 * from root. */
MUST_USE enum err_code queue_body_read(json_t *root, uint32_t most_minutes,
                                       struct job_queue *ret_queue, struct filter **ret_filter,
                                       struct filter_report *report, struct err *err);

#endif
