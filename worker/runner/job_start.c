/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"

#include <errno.h>
#include <signal.h>

#define TELL_MS 10 /* a run that ends within this is told in one go: its start and its end */

static void note_failure(struct run *run, const char *step, int error)
{
    const char *name = error ? strerrorname_np(error) : "EINVAL";
    (void)snprintf(run->record.start_error, sizeof(run->record.start_error), "%s",
                   name ? name : "EIO");
    (void)snprintf(run->record.start_step, sizeof(run->record.start_step), "%s", step);
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
    run->streams[0].fd = launched->out;
    run->streams[1].fd = launched->err;
    run->streams[0].ready = run->streams[1].ready = job_stream_ready;
    enum err_code rc = runner_watch(runner, &run->child, err);
    for (size_t i = 0; rc == ERR_OK && i < 2; i++)
        rc = runner_watch(runner, &run->streams[i], err);
    return rc;
}

void job_set_end(struct run *run)
{
    int64_t now_us = clock_boot_us();
    int64_t run_us = now_us - run->job.started_boot_us;
    run->record.ended_us = clock_wall_us();
    run->record.ended_boot_us = now_us;
    run->record.run_us = (uint64_t)run_us;
    run->record.wall_ms = (uint64_t)(run_us / 1000);
}

/* Its time counts from here on, for the record and for its limit. */
static void set_start(struct run *run, int64_t boot_us, int64_t wall_us)
{
    run->job.started_boot_us = boot_us;
    run->job.started_us = run->record.started_us = wall_us;
    if (run->wall_at != NEVER) /* there is none, or it has passed */
        run->wall_at = boot_us / 1000 + 1 + (int64_t)run->limits.wall_ms; /* never early */
}

int64_t job_tell_start(struct runner *runner, struct run *run, int64_t now)
{
    if (!run->tell_at)
        return NEVER;
    if (now < run->tell_at)
        return run->tell_at;
    run->tell_at = 0;
    server_started(runner, run);
    return NEVER;
}

static void task_free(struct start_task *task)
{
    protocol_start_clear(&task->start);
    json_decref(task->message);
    free(task);
}

/* There is no process, or only one that could not become the program. */
static void start_failed(struct run *run, const struct start_task *task)
{
    if (task->err.sys_errno == ECANCELED) {
        run->record.signal = SIGKILL; /* ended before it began; the reason says why */
    } else {
        note_failure(run, task->step, task->err.sys_errno);
        log_err("runner.start.failed", &task->err);
    }
    run->child_ended = run->job.pid > 0;
    if (!run->child_ended) {
        run->phase = RUN_DRAINING;
        job_set_end(run);
    }
}

void job_started(struct runner *runner, struct start_task *task)
{
    struct run *run = task->owner;
    struct err err = {0};
    run->task = NULL;
    run->phase = RUN_RUNNING;
    run->job.pid = task->launched.pid;
    if (task->rc) {
        start_failed(run, task);
    } else if (watch_run(runner, run, &task->launched, &err) != ERR_OK) {
        log_err("runner.start.failed", &err);
        note_failure(run, "setup", err.sys_errno);
        (void)kill(run->job.pid, SIGKILL);
        runner_unwatch(runner, &run->child);
        run->child_ended = true; /* the reaping waits for it, which KILL makes short */
    } else {
        FAULT("runner.started");
        set_start(run, task->launched.at_us, task->launched.at_wall_us);
        run->first_pid = run->job.pid;
        run->tell_at = protocol_boot_ms() + TELL_MS;
    }
    task_free(task);
}

/* Everything that it needs, made before anything begins. */
static struct run *prepare(struct runner *runner, const struct runner_start *start)
{
    struct run *run = job_add(runner, &start->job, start->fence, start->run);
    struct start_task *task = run ? calloc(1, sizeof(*task)) : NULL;
    if (task)
        run->flow = flow_new(run, start->output_root, start->output_dir, start->output_max_bytes);
    if (run && run->flow) {
        run->task = task;
        return run;
    }
    free(task);
    if (run)
        job_forget(runner, run);
    return NULL;
}

enum err_code job_start(struct runner *runner, json_t *message, struct runner_start *take_start,
                        struct run **ret_run, struct err *err)
{
    if (runner->run_count >= RUNNER_JOBS_MAX)
        return err_set(err, ERR_OVERLOADED, "%d runs are held", RUNNER_JOBS_MAX);
    struct run *run = prepare(runner, take_start);
    if (!run)
        return err_set(err, ERR_NOMEM, "no memory for a run");
    run->limits = take_start->limits;
    if (run->limits.wall_ms)
        run->wall_at = 0;
    set_start(run, clock_boot_us(), clock_wall_us());
    if (take_start->run > 1) { /* there may have been an earlier one, with output */
        run->flowing = true;
        writer_open_files(runner->writer, run->flow);
    }
    *run->task = (struct start_task){.owner = run,
                                     .message = json_incref(message),
                                     .start = *take_start,
                                     .job = run->job,
                                     .entry = run->entry};
    *take_start = (struct runner_start){0};
    starter_ask(runner->starter, run->task);
    *ret_run = run;
    return ERR_OK;
}
