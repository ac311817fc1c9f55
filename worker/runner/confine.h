/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_CONFINE_H
#define WORKER_RUNNER_CONFINE_H

/* confine: the confinement of a job: what it may reach of the file system (Landlock), and whose
 * processes it has. The worker says what is wanted when it connects; everything that a launch
 * needs is made before the fork, here.
 *
 * A rule set of Landlock allows whole hierarchies and cannot take a part away again. A folder that
 * holds something denied is therefore opened entry by entry; these folders are watched (their time
 * of change) and everything is opened anew when one changed, or after 30 s.
 * Threads: any. Memory: confine_free closes what it opened. */

#include "common/base/err.h"
#include "worker/runner/client.h"

#include <jansson.h>

struct confine;

/* Of one launch. */
struct confine_job {
    int working_dir; /* its folder; borrowed */
    int ruleset;     /* to be closed by the caller; -1: none */
    bool filtered;   /* system calls are */
    bool other_user; /* the next two count */
    uid_t uid;
    gid_t gid;
};

MUST_USE enum err_code confine_new(struct confine **ret_confine, struct err *err);
void confine_free(struct confine *confine);
/* What the worker wants from now on (member `confine` of its hello); ERR_INVALID. */
MUST_USE enum err_code confine_set(struct confine *confine, const json_t *wanted, struct err *err);
/* For a job whose folder this is. ERR_IO with sys_errno EOPNOTSUPP: the kernel has no Landlock, and
 * it is required. */
MUST_USE enum err_code confine_job(struct confine *confine, int working_dir,
                                   struct confine_job *ret_job, struct err *err);

/* The member `confine`; a new reference. */
json_t *confine_json(const struct runner_confine *wanted);

#endif
