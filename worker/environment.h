/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ENVIRONMENT_H
#define WORKER_ENVIRONMENT_H

/* environment: the whole environment of a job, by the table env.def.
 * Threads: any. Memory: environment_free() frees all of it. */

#include "common/model/job.h"
#include "common/model/job_request.h"

struct environment_source {
    const struct job *job;
    const struct job_request *request;
    uint64_t run;
    const char *home;
    const char *worker_name;
    const char *traceparent; /* "" for none */
};

struct environment {
    char **items; /* NAME=value, ended by NULL */
    size_t count;
};

MUST_USE enum err_code environment_make(const struct environment_source *source,
                                        struct environment *ret_environment, struct err *err);
void environment_free(struct environment *environment);
#define ENVIRONMENT_AUTO __attribute__((cleanup(environment_free)))

#endif
