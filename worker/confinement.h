/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CONFINEMENT_H
#define WORKER_CONFINEMENT_H

/* confinement: what the jobs of this worker may reach, made of its settings: the service's own
 * files and folders are denied without being named. The runner applies it (runner/confine.h).
 * Threads: read only once made. Memory: confinement_done. */

#include "common/config/config.h"
#include "worker/runner/client.h"

struct confinement {
    struct runner_confine confine;
    const char **read;
    const char **write;
    const char **deny;
};

/* ERR_CONFIG: a path that jobs may reach is the service's own, or worker.confine asks for what this
 * kernel does not have. */
MUST_USE enum err_code confinement_make(const struct config *cfg,
                                        struct confinement *ret_confinement, struct err *err);
/* Lets jobs through to their own folders beneath the worker's, if they have another user.
 * ERR_CONFIG: the user may not pass through what work_dir is in. */
MUST_USE enum err_code confinement_let_in(const struct confinement *confinement,
                                          const char *work_dir, int work_fd, struct err *err);
void confinement_done(struct confinement *confinement);

#endif
