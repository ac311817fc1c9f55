/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_JOB_VIEW_H
#define WEBAPP_JOB_VIEW_H

/* job_view: jobs and times as JSON. Threads: any. Memory: the caller drops the results. */

#include "common/store/job_store.h"

#include <jansson.h>

/* whole: with the request, as one job is shown; lists leave it out. */
json_t *job_view(const struct job *job, bool whole);
/* A job that was stored just now; request is borrowed. */
json_t *job_view_new(const struct job_new *sent, const struct job_submitted *done, json_t *request);
struct job_event;
json_t *job_event_view(const struct job_event *event); /* jobs.c */
json_t *view_time(int64_t wall_us);                    /* null for 0 */
json_t *view_text(const char *text);                   /* null for NULL and "" */
json_t *view_uuid(const struct uuid *id);

#endif
