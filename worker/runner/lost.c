/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/wake.h"
#include "worker/runner/procs.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define SETTLE_MS 3000
#define SETTLE_PAUSE_US 5000
#define KEEP_MS 10000 /* for the records to be on the disk, before the worker is listened to */

/* Runs that were started by a runner which died. */
struct lost {
    struct runner_job *jobs;
    struct procs_lost *runs; /* the same ones */
    size_t count;
};

static void lost_done(struct lost *lost)
{
    free(lost->jobs);
    free(lost->runs);
}

static bool lost_add(struct lost *lost, const struct runner_job *job)
{
    struct runner_job *jobs = realloc(lost->jobs, (lost->count + 1) * sizeof(*jobs));
    if (jobs)
        lost->jobs = jobs;
    struct procs_lost *runs = realloc(lost->runs, (lost->count + 1) * sizeof(*runs));
    if (runs)
        lost->runs = runs;
    if (!jobs || !runs)
        return false;
    jobs[lost->count] = *job;
    runs[lost->count++] = (struct procs_lost){.job = job->job, .run = job->run};
    return true;
}

/* The main processes died with their runner; the others are found by their environment. */
static void end_leftovers(struct lost *lost)
{
    int64_t until = protocol_boot_ms() + SETTLE_MS;
    if (lost->count == 0)
        return;
    while (procs_signal_lost(lost->runs, lost->count, SIGKILL) > 0 && protocol_boot_ms() < until)
        (void)usleep(SETTLE_PAUSE_US);
}

static void settle_one(struct runner *runner, const struct runner_job *job, uint64_t left)
{
    struct err err = {0};
    char text[UUID_TEXT_SIZE];
    struct run *run = NULL;
    struct runner_record record = {
        .job = job->job,
        .fence = job->fence,
        .run = job->run,
        .exit_code = -1,
        .reason = RUNNER_RUNNER_LOST,
        .started_us = job->started_us,
        .ended_us = clock_wall_us(),
        .leftovers = left,
    };
    log_event(LOG_WARN, "runner.run.lost", LOG_S("job", uuid_text(&job->job, text)),
              LOG_U("run", job->run), LOG_U("leftovers", left));
    enum err_code rc = job_hold(runner, &record, &run, &err);
    if (rc == ERR_OK && run) {
        run->phase = RUN_FINISHING; /* until it is on the disk */
        run->job.exited = false;
        rc = job_keep(runner, run, &err);
    }
    if (rc)
        log_err("runner.run.lost.failed", &err);
}

/* What is found in the journal. */
struct found {
    struct runner *runner;
    struct lost lost;
};

static bool take_found(void *arg, const struct runner_job *job)
{
    struct found *found = arg;
    struct err err = {0};
    struct run *run = NULL;
    struct runner_record record = job->record;
    record.ended_boot_us = 0; /* the host may have been booted since */
    if (!job->exited && !lost_add(&found->lost, job))
        (void)err_set(&err, ERR_NOMEM, "no memory for a run that was lost");
    else if (job->exited)
        (void)!job_hold(found->runner, &record, &run, &err);
    if (err.code)
        log_err("runner.record.not_held", &err);
    return true;
}

static void wait_kept(struct runner *runner, size_t count)
{
    int64_t until = protocol_boot_ms() + KEEP_MS;
    struct pollfd wake = {.fd = runner->helpers.fd, .events = POLLIN};
    while (count > 0 && protocol_boot_ms() < until) {
        struct run *run = NULL;
        (void)poll(&wake, 1, 100);
        wake_drain(wake.fd);
        for (; (run = journal_kept(runner->journal)) != NULL; count--)
            job_kept(runner, run);
    }
}

void lost_settle(struct runner *runner)
{
    struct err err = {0};
    struct found found = {.runner = runner};
    __attribute__((cleanup(lost_done))) struct lost lost = {0};
    if (journal_read(runner->work_dir, take_found, &found, &err) != ERR_OK)
        log_err("runner.records.unreadable", &err);
    lost = found.lost;
    end_leftovers(&lost);
    for (size_t i = 0; i < lost.count; i++)
        settle_one(runner, &lost.jobs[i], lost.runs[i].left);
    wait_kept(runner, lost.count);
}
