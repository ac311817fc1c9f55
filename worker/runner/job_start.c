/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "worker/runner/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const stream_names[] = {"stdout", "stderr"};

static void note_failure(struct run *run, const char *step, int error)
{
    const char *name = error ? strerrorname_np(error) : "EINVAL";
    (void)snprintf(run->record.start_error, sizeof(run->record.start_error), "%s",
                   name ? name : "EIO");
    (void)snprintf(run->record.start_step, sizeof(run->record.start_step), "%s", step);
}

void job_report_ready(struct runner *runner, struct watch *watch)
{
    struct run *run = watch->run;
    const char *step = NULL;
    int error = 0;
    int failed = launch_report(watch->fd, &step, &error);
    if (failed < 0)
        return;
    runner_unwatch(runner, watch);
    if (failed) {
        note_failure(run, step, error);
        return;
    }
    if (run->phase == RUN_STARTING)
        run->phase = RUN_RUNNING;
    FAULT("runner.started");
    server_started(runner, run);
}

static void child_ready(struct runner *runner, struct watch *watch)
{
    struct run *run = watch->run;
    run->child_ended = true;
    runner_unwatch(runner, watch);
    FAULT("runner.child_ended");
}

static enum err_code watch_run(struct runner *runner, struct run *run,
                               const struct launched *launched, struct err *err)
{
    run->child.fd = launched->pidfd;
    run->child.ready = child_ready;
    run->report.fd = launched->report;
    run->report.ready = job_report_ready;
    run->streams[0].fd = launched->out;
    run->streams[1].fd = launched->err;
    run->streams[0].ready = run->streams[1].ready = job_stream_ready;
    enum err_code rc = runner_watch(runner, &run->child, err);
    if (rc == ERR_OK)
        rc = runner_watch(runner, &run->report, err);
    for (size_t i = 0; rc == ERR_OK && i < 2; i++)
        rc = runner_watch(runner, &run->streams[i], err);
    return rc;
}

static enum err_code open_outputs(struct run *run, const struct runner_start *start,
                                  struct err *err)
{
    FD_AUTO int root = -1;
    enum err_code rc = fs_open_dir(start->output_root, false, &root, err);
    if (rc == ERR_OK)
        rc = fs_make_dirs(root, start->output_dir, 0755, &run->output_dir, err);
    for (size_t i = 0; rc == ERR_OK && i < 2; i++)
        rc = output_open(&run->outputs[i], run->output_dir, stream_names[i],
                         start->output_max_bytes, err);
    return rc;
}

/* What can fail on the way to a process; *ret_step says where it did. */
static enum err_code try_start(struct runner *runner, struct run *run,
                               const struct runner_start *start, const char **ret_step,
                               struct err *err)
{
    struct launched launched;
    FD_AUTO int working_dir = -1;
    char dir[RUNNER_DIR_SIZE];
    *ret_step = "output";
    enum err_code rc = open_outputs(run, start, err);
    if (rc)
        return rc;
    *ret_step = "setup";
    (void)runner_job_dir(&start->job, start->run, dir);
    rc = fs_make_dirs(runner->work_dir, dir, 0700, NULL, err);
    if (rc == ERR_OK) /* before the fork: no process without a note */
        rc = lost_note(runner, run, err);
    if (rc)
        return rc;
    *ret_step = "chdir";
    rc = fs_make_dirs(runner->work_dir, start->working_dir, 0700, &working_dir, err);
    if (rc)
        return rc;
    rc = launch(start, working_dir, runner->soft_files, &launched, ret_step, err);
    if (rc)
        return rc;
    run->job.pid = launched.pid;
    *ret_step = "setup";
    return watch_run(runner, run, &launched, err);
}

void job_set_end(struct run *run, int64_t now)
{
    run->record.ended_us = clock_wall_us();
    run->record.wall_ms = (uint64_t)(now - run->started_ms);
}

/* It may not be watched, so its end is waited for here; KILL makes that short. */
static void end_half_started(struct runner *runner, struct run *run)
{
    siginfo_t ignored;
    (void)kill(run->job.pid, SIGKILL);
    (void)waitid(P_PID, (id_t)run->job.pid, &ignored, WEXITED | WNOWAIT);
    runner_unwatch(runner, &run->child);
    runner_unwatch(runner, &run->report);
    run->child_ended = true;
}

enum err_code job_start(struct runner *runner, const struct runner_start *start,
                        struct run **ret_run, struct err *err)
{
    const char *step = NULL;
    struct err why = {0};
    if (runner->run_count >= RUNNER_JOBS_MAX)
        return err_set(err, ERR_OVERLOADED, "%d runs are held", RUNNER_JOBS_MAX);
    struct run *run = job_add(runner, &start->job, start->fence, start->run);
    if (!run)
        return err_set(err, ERR_NOMEM, "no memory for a run");
    run->limits = start->limits;
    run->started_ms = protocol_boot_ms();
    run->job.started_us = run->record.started_us = clock_wall_us();
    if (start->limits.wall_ms)
        run->wall_at = run->started_ms + (int64_t)start->limits.wall_ms;
    if (try_start(runner, run, start, &step, &why) != ERR_OK) {
        note_failure(run, step, why.sys_errno);
        log_err("runner.start.failed", &why);
        if (run->job.pid > 0)
            end_half_started(runner, run);
        else
            run->phase = RUN_DRAINING;
        job_set_end(run, protocol_boot_ms());
    }
    *ret_run = run;
    return ERR_OK;
}
