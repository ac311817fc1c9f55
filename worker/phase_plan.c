/* SPDX-License-Identifier: MIT */
#include "worker/run.h"

#include "common/base/fs.h"

/* The web checked the request when it was stored; what is checked again here is what this worker
 * relies on when it writes to its disk. */
enum phase_result phase_plan(struct run *run)
{
    const struct job_request *request = run->request;
    struct err err = {0};
    for (size_t i = 0; i < request->input_count; i++) {
        if (fs_path_is_safe(sv_of(request->inputs[i].target_path)))
            continue;
        (void)err_set(&err, ERR_INVALID, "the target path of input %zu leaves the job's directory",
                      i);
        return run_fail(run, JOB_COND_REQUEST_INVALID, &err);
    }
    return run_interrupted(run);
}
