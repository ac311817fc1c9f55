/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_JOB_FIELDS_H
#define WEBAPP_JOB_FIELDS_H

/* job_fields: ?fields=id,status: the members of a job that a client wants to see.
 * Threads: any. Memory: the caller drops the names. */

#include "common/base/err.h"
#include "webapp/request.h"

/* The names as members of an object; NULL: all. ERR_INVALID: a job has no such member. */
MUST_USE enum err_code job_fields_read(const struct request *req, json_t **ret_names,
                                       struct err *err);
/* Leaves the others out. */
void job_fields_pick(json_t *view, const json_t *names);

#endif
