/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ARCHIVE_H
#define WORKER_ARCHIVE_H

/* archive: copies what a job's request names from the job's directory to the archive. Symbolic
 * links are not followed and not copied, nor is anything that is not a regular file; a hard link to
 * a file of another user, which the job may not have been able to read, is refused.
 * Threads: any. Memory: archive_plan_done() frees the plan. */

#include "common/base/err.h"
#include "common/model/job_request.h"

#include <sys/types.h>

#define ARCHIVE_UNMET_SIZE 200

struct archive_file {
    char *path; /* relative to the job's directory */
    uint64_t bytes;
};

struct archive_plan {
    struct archive_file *files;
    size_t count;
    uint64_t bytes;
    uid_t owner; /* of the job's directory: the job's user */
    /* "'*.csv', '*.log'": includes that cover no file; "" if each covers one. */
    char unmet[ARCHIVE_UNMET_SIZE];
};

struct archive_limits {
    size_t files;
    uint64_t bytes;
};

/* A path is chosen when an include covers it and no exclude does. */
bool archive_chooses(const struct job_request *request, const char *path);
/* Which files there are to copy. ERR_TOO_LARGE: more than the limits allow;
 * says how much there is. */
MUST_USE enum err_code archive_scan(int home_fd, const struct job_request *request,
                                    const struct archive_limits *limits,
                                    struct archive_plan *ret_plan, struct err *err);
/* Copies them beneath target_fd, each to the disk (fdatasync). ERR_STOPPING if interrupted. */
MUST_USE enum err_code archive_copy(int home_fd, int target_fd, const struct archive_plan *plan,
                                    bool (*interrupted)(void *arg), void *arg, struct err *err);
void archive_plan_done(struct archive_plan *plan);
#define ARCHIVE_PLAN_AUTO __attribute__((cleanup(archive_plan_done)))

#endif
