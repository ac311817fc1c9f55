/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/fs.h"

#include <fcntl.h>
#include <unistd.h>

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
    run->job = (struct runner_job){.job = *job, .fence = fence, .run = number};
    run->record =
        (struct runner_record){.job = *job, .fence = fence, .run = number, .exit_code = -1};
    run->child = run->report = (struct watch){.fd = -1, .run = run};
    run->streams[0] = run->streams[1] = run->child;
    run->outputs[0] = run->outputs[1] = OUTPUT_NONE;
    run->output_dir = -1;
    run->wall_at = run->kill_at = NEVER;
    run->next = runner->runs;
    runner->runs = run;
    runner->run_count++;
    return run;
}

enum err_code job_hold(struct runner *runner, const struct runner_record *record, struct err *err)
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
    run->record = *record;
    run->job.started_us = record->started_us;
    run->job.exited = true;
    run->job.record = *record;
    return ERR_OK;
}

enum err_code job_adopt(struct runner *runner, struct run *run, uint64_t fence, struct err *err)
{
    struct runner_record record = run->record;
    enum err_code rc = ERR_OK;
    uint64_t old = run->job.fence;
    record.fence = fence;
    run->job.fence = fence;
    if (run->phase == RUN_EXITED)
        rc = runner_record_write(runner->work_dir, &record, err);
    else
        rc = lost_note(runner, run, err);
    if (rc) {
        run->job.fence = old;
        return rc;
    }
    run->record.fence = run->job.record.fence = fence;
    return ERR_OK;
}

void job_forget(struct runner *runner, struct run *run)
{
    char dir[RUNNER_DIR_SIZE];
    struct err ignored = {0};
    FD_AUTO int fd = -1;
    (void)runner_job_dir(&run->job.job, run->job.run, dir);
    if (fs_open_beneath(runner->work_dir, dir, O_RDONLY | O_DIRECTORY, 0, &fd, &ignored) ==
        ERR_OK) {
        (void)unlinkat(fd, START_FILE, 0);
        (void)unlinkat(fd, RUNNER_RECORD_FILE, 0);
    }
    struct run **at = &runner->runs;
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    runner->run_count--;
    free(run);
}
