/* SPDX-License-Identifier: MIT */
#include "common/model/job.h"

void job_free(struct job *job)
{
    if (!job)
        return;
    free(job->request);
    free(job->tags);
    free(job);
}
