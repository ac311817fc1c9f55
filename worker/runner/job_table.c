/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

struct run *job_find(const struct runner *runner, const struct uuid *job)
{
    struct run *run = runner->runs;
    while (run && !uuid_eq(&run->job.job, job))
        run = run->next;
    return run;
}

size_t job_running(const struct runner *runner)
{
    size_t count = 0;
    for (const struct run *run = runner->runs; run; run = run->next)
        count += run->phase != RUN_EXITED;
    return count;
}

struct run *job_add(struct runner *runner, const struct uuid *job, uint64_t fence, uint64_t number)
{
    struct run *run = calloc(1, sizeof(*run));
    if (!run)
        return NULL;
    run->entry = journal_add(runner->journal, job, number, run);
    if (!run->entry) {
        free(run);
        return NULL;
    }
    run->job = (struct runner_job){.job = *job, .fence = fence, .run = number};
    run->record =
        (struct runner_record){.job = *job, .fence = fence, .run = number, .exit_code = -1};
    run->child = run->streams[0] = run->streams[1] = (struct watch){.fd = -1, .run = run};
    run->wall_at = run->kill_at = NEVER;
    run->next = runner->runs;
    runner->runs = run;
    runner->run_count++;
    return run;
}

enum err_code job_hold(struct runner *runner, const struct runner_record *record,
                       struct run **ret_run, struct err *err)
{
    struct run *held = job_find(runner, &record->job);
    if (held && held->phase == RUN_EXITED && held->job.fence < record->fence)
        job_forget(runner, held); /* its owner is fenced: nobody can use that result */
    else if (held)
        return err_set(err, ERR_DUPLICATE, "a later run of the job is held");
    if (runner->run_count >= RUNNER_JOBS_MAX)
        return err_set(err, ERR_OVERLOADED, "%d runs are held", RUNNER_JOBS_MAX);
    struct run *run = job_add(runner, &record->job, record->fence, record->run);
    if (!run)
        return err_set(err, ERR_NOMEM, "no memory for a run");
    run->phase = RUN_EXITED;
    run->keeping = true;
    run->record = *record;
    run->job.started_us = record->started_us;
    run->job.exited = true;
    run->job.record = *record;
    *ret_run = run;
    return journal_hold(runner->journal, run->entry, &run->job, err);
}

enum err_code job_adopt(struct runner *runner, struct run *run, uint64_t fence, struct err *err)
{
    uint64_t old = run->job.fence;
    run->job.fence = run->record.fence = run->job.record.fence = fence;
    enum err_code rc = job_keep(runner, run, err);
    if (rc)
        run->job.fence = run->record.fence = run->job.record.fence = old;
    return rc;
}

void job_forget(struct runner *runner, struct run *run)
{
    journal_forget(runner->journal, run->entry);
    struct run **at = &runner->runs;
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    runner->run_count--;
    flow_free(run->flow);
    free(run);
}
