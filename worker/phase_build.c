/* SPDX-License-Identifier: MIT */
#include "worker/run.h"

enum phase_result phase_build(struct run *run)
{
    struct environment_source source = {
        .job = run->job,
        .request = run->request,
        .run = run->run,
        .home = run->home,
        .worker_name = run->w->cfg->worker_name,
        .traceparent = run->traceparent,
    };
    struct err err = {0};
    environment_free(&run->environment);
    if (environment_make(&source, &run->environment, &err))
        return run_fail(run, JOB_COND_START_FAILED, &err);
    return run_interrupted(run);
}
