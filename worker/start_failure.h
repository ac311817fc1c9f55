/* SPDX-License-Identifier: MIT */
#ifndef WORKER_START_FAILURE_H
#define WORKER_START_FAILURE_H

/* start_failure: why a command could not be started, and what its owner may do: a sentence for the
 * job's reason. Looks at the script whose interpreter is missing.
 * Threads: any. Memory: none. */

#include "common/model/job.h"
#include "worker/runner/record.h"

#include <sys/types.h>

struct start_place {  /* where it was to be started; texts are borrowed, NULL: not known */
    char *const *env; /* NAME=value, ended by NULL */
    const char *home; /* the job's folder */
    const char *host;
    uid_t user; /* of jobs */
};

/* ret_reason holds the name of the error (ENOENT, EACCES): the command line looks for it. */
void start_failure_tell(const struct runner_record *record, const char *program,
                        const struct start_place *place, char ret_reason[JOB_REASON_SIZE]);

#endif
