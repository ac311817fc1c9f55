/* SPDX-License-Identifier: MIT */
#include "worker/run.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/model/retry.h"
#include "worker/run_block.h"

#define MIB ((uint64_t)1024 * 1024)
#define FORGET_PAUSE_MS 50

static const struct retry launch_retry = {100, 2000};

/* command and args, ended by NULL; free() it. */
static const char **make_argv(const struct job_request *request)
{
    size_t count = request->command.count + request->args.count;
    const char **argv = calloc(count + 1, sizeof(char *));
    size_t at = 0;
    for (size_t i = 0; argv && i < request->command.count; i++)
        argv[at++] = request->command.items[i];
    for (size_t i = 0; argv && i < request->args.count; i++)
        argv[at++] = request->args.items[i];
    return argv;
}

/* A former run of this job that the runner still holds: it is not ours to go on with. The runner is
 * asked again each time: a call may be lost, and until the run has ended nothing may be said of the
 * job, a cancel included. */
static enum phase_result clear_former(struct run *run, const struct runner_job *former)
{
    log_event(LOG_WARN, "worker.run.former", LOG_S("job", run->id_text),
              LOG_U("fence", former->fence), LOG_U("fence_now", run->hold.fence));
    for (;;) {
        struct err err = {0};
        enum err_code rc = runner_link_forget(run->w->runner, &former->job, former->fence, &err);
        if (rc == ERR_OK || rc == ERR_NOT_FOUND)
            break;
        err_clear(&err);
        best_effort(runner_link_kill(run->w->runner, &former->job, former->fence, 0,
                                     KILL_NOTE_FENCED, &err));
        enum phase_result result = run_pause(run, FORGET_PAUSE_MS);
        if (result != PHASE_DONE)
            return result;
    }
    if (!(slot_mail(run->slot) & MAIL_CANCEL))
        return PHASE_DONE;
    run->started = false;
    return run_cancelled(run);
}

/* The disk of the worker's folder: the runner could write no note of the run, or make no folder. */
static bool is_disk_full(const struct runner_record *record)
{
    bool of_host =
        strcmp(record->start_step, "setup") == 0 || strcmp(record->start_step, "chdir") == 0;
    return of_host && (strcmp(record->start_error, "ENOSPC") == 0 ||
                       strcmp(record->start_error, "EDQUOT") == 0);
}

/* Whether the runner had no process, descriptor or memory for it. What is not so at the other
 * steps: there it is a limit of the job's own. */
static bool is_short(const struct runner_record *record)
{
    static const char *const errors[] = {"EAGAIN", "EMFILE", "ENFILE", "ENOMEM"};
    if (is_disk_full(record))
        return true;
    bool before =
        strcmp(record->start_step, "setup") == 0 || strcmp(record->start_step, "fork") == 0 ||
        strcmp(record->start_step, "chdir") == 0 || strcmp(record->start_step, "confine") == 0;
    for (size_t i = 0; before && i < ARRAY_LEN(errors); i++) {
        if (strcmp(record->start_error, errors[i]) == 0)
            return true;
    }
    return false;
}

/* No process came of it: the runner forgets that it was asked, and is asked again later. */
static enum phase_result unstart(struct run *run)
{
    struct err err = {0};
    for (;;) {
        enum err_code rc = runner_link_forget(run->w->runner, &run->job->id, run->hold.fence, &err);
        if (rc == ERR_OK || rc == ERR_NOT_FOUND)
            break;
        err_clear(&err);
        enum phase_result result = run_pause(run, FORGET_PAUSE_MS);
        if (result != PHASE_DONE)
            return result;
    }
    if (is_disk_full(&run->record))
        run_disk_full(run);
    else
        (void)snprintf(run->delay, sizeof(run->delay),
                       "host %.200s has no room for its process (%s at step %s)", run->w->host,
                       run->record.start_error, run->record.start_step);
    log_event(LOG_WARN, "worker.start.short", LOG_S("job", run->id_text),
              LOG_S("error", run->record.start_error), LOG_S("step", run->record.start_step));
    run->started = run->exited = false;
    return PHASE_SHORT;
}

/* What the runner answered. DONE: it has the run. */
static enum phase_result take_answer(struct run *run, const struct runner_job *held)
{
    run->exited = held->exited;
    run->started_us = held->started_boot_us;
    run->record = held->record;
    if (!held->exited || !held->record.start_error[0])
        return PHASE_DONE;
    if (is_disk_full(&run->record) || (run->patient && is_short(&run->record)))
        return unstart(run);
    run_judge(run);
    return PHASE_ENDED;
}

/* The runner's answer, or that nobody asked it: there is no process. */
static bool is_refusal(enum err_code rc)
{
    return rc == ERR_STATE || rc == ERR_STOPPING || rc == ERR_OVERLOADED || rc == ERR_NOMEM;
}

/* Between two tries. unsure: one of them may have started it after all. DONE: ask again. */
static enum phase_result pause_start(struct run *run, bool unsure, uint32_t tries)
{
    struct err err = {0};
    int64_t pause_ms = retry_pause_ms(&launch_retry, tries);
    if (!(slot_mail(run->slot) & MAIL_CANCEL)) {
        (void)slot_wait(run->slot, MAIL_CANCEL | MAIL_FENCED | MAIL_LEAVE,
                        clock_mono_ms() + pause_ms);
        return run_pause(run, 0);
    }
    enum err_code rc = ERR_NOT_FOUND;
    if (unsure)
        rc = runner_link_kill(run->w->runner, &run->job->id, run->hold.fence, 0, KILL_NOTE_CANCEL,
                              &err);
    if (rc == ERR_OK)
        return PHASE_DONE;
    if (rc != ERR_NOT_FOUND)
        return run_pause(run, pause_ms);
    run->started = false;
    return run_cancelled(run);
}

/* Asks until there is an answer: an answer that was lost is found by asking again, since the runner
 * starts a job once. */
static enum phase_result ask(struct run *run, const struct runner_start *start)
{
    bool unsure = false;
    for (uint32_t tries = 1;; tries++) {
        struct err err = {0};
        struct runner_job held = {0};
        bool existing = false;
        run->runner_opened = runner_link_opened(run->w->runner);
        enum err_code rc = runner_link_start(run->w->runner, start, &held, &existing, &err);
        FAULT("worker.runner_asked");
        if (rc == ERR_OK && existing && held.fence != run->hold.fence) {
            enum phase_result cleared = clear_former(run, &held);
            if (cleared != PHASE_DONE)
                return cleared;
            continue;
        }
        if (rc == ERR_OK) {
            FAULT("worker.started");
            return take_answer(run, &held);
        }
        if (rc == ERR_INVALID || rc == ERR_TOO_LARGE) {
            run->started = false;
            return run_fail(run, JOB_COND_START_FAILED, &err);
        }
        if (tries == 1)
            log_err("worker.start.waits", &err);
        unsure = unsure || !is_refusal(rc);
        enum phase_result result = pause_start(run, unsure, tries);
        if (result != PHASE_DONE)
            return result;
    }
}

enum phase_result phase_launch(struct run *run)
{
    const struct config *cfg = run->w->cfg;
    /* The claim and its moves are on record before there is a process. */
    enum phase_result result = run_commit_now(run);
    if (result == PHASE_DONE && run_has_remote_inputs(run))
        result = run_gate_again(run);
    if (result == PHASE_DONE)
        result = run_interrupted(run);
    if (result != PHASE_DONE)
        return result;
    char output_dir[TENANT_SIZE + UUID_TEXT_SIZE + 32];
    (void)snprintf(output_dir, sizeof(output_dir), "%s/%s/%llu", run->job->tenant, run->id_text,
                   (unsigned long long)run->run);
    const char **argv = make_argv(run->request);
    if (!argv)
        return PHASE_SHORT;
    struct runner_start start = {
        .job = run->job->id,
        .fence = run->hold.fence,
        .run = run->run,
        .argv = argv,
        .env = (const char *const *)run->environment.items,
        .output_root = cfg->archive_root,
        .output_dir = output_dir,
        .output_max_bytes = cfg->worker_output_max_bytes,
        .limits = {.wall_ms = (uint64_t)run->job->max_seconds * 1000,
                   .grace_ms = cfg->worker_grace_ms,
                   .memory_bytes = run->job->memory_mb * MIB,
                   .processes = cfg->worker_job_processes,
                   .open_files = cfg->worker_job_open_files,
                   .file_bytes = cfg->worker_job_file_bytes},
    };
    run->started = true; /* from here on a process may exist */
    run->runner_fence = run->hold.fence;
    result = ask(run, &start);
    free(argv);
    return result;
}
