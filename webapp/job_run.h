/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_JOB_RUN_H
#define WEBAPP_JOB_RUN_H

/* job_run: the folder of a job's run in the archive, <root>/<tenant>/<job>/<run>/, with stdout,
 * stderr and files/. Everything is opened beneath that folder, so no symbolic link leads to the
 * files of another job. Threads: any. Memory: descriptors are given to the caller. */

#include "common/base/err.h"
#include "common/model/job.h"

/* The newest run's folder. run is written too. ERR_NOT_FOUND: the job has not run yet. */
MUST_USE enum err_code job_run_open(int archive_fd, const struct job *job, int *ret_fd,
                                    uint64_t *ret_run, struct err *err);
/* A regular file beneath the folder, and its size. ERR_NOT_FOUND for anything else. */
MUST_USE enum err_code job_run_file(int run_fd, const char *path, int *ret_fd, uint64_t *ret_size,
                                    struct err *err);

#endif
