/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/fault.h"
#include "common/base/log.h"
#include "worker/runner/procs.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SWEEP_MS 10000 /* how long the runner tries to end what a job left behind */
#define SWEEP_PAUSE_MS 3
#define KILL_PAUSE_MS 100
#define DRAIN_MS 1000 /* for a pipe that a process outside of the job holds */
#define RECORD_PAUSE_MS 500
#define CHUNK_BYTES ((size_t)64 * 1024)
#define CHUNKS_AT_ONCE 8

/* Reads a stream; false when there is nothing more yet (or for ever: it is closed then). */
static bool read_chunk(struct runner *runner, struct run *run, size_t which)
{
    static char chunk[CHUNK_BYTES];
    struct watch *watch = &run->streams[which];
    if (watch->fd < 0)
        return false;
    ssize_t got = read(watch->fd, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR)
        return true;
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0) {
        runner_unwatch(runner, watch);
        return false;
    }
    output_write(&run->outputs[which], chunk, (size_t)got);
    return true;
}

void job_stream_ready(struct runner *runner, struct watch *watch)
{
    size_t which = watch == &watch->run->streams[1];
    for (int i = 0; i < CHUNKS_AT_ONCE; i++) {
        if (!read_chunk(runner, watch->run, which))
            return;
    }
}

void job_signal(const struct run *run, int signal_number)
{
    if (kill(-run->job.pid, signal_number) != 0 && run->phase == RUN_STARTING)
        (void)kill(run->job.pid, signal_number); /* it has no group of its own yet */
}

void job_end(struct run *run, enum runner_reason reason, int64_t grace_ms, const char *note)
{
    int64_t now = protocol_boot_ms();
    if (run->phase > RUN_RUNNING || run->child_ended)
        return;
    if (run->kill_at == NEVER) {
        run->record.reason = reason;
        (void)snprintf(run->record.note, sizeof(run->record.note), "%s", note);
        if (grace_ms > 0) {
            job_signal(run, SIGTERM);
            job_signal(run, SIGCONT); /* a stopped one could not answer */
        }
    }
    if (now + grace_ms < run->kill_at)
        run->kill_at = now + grace_ms;
}

static int compare_pids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a;
    pid_t right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

/* The main processes of all runs, ascending; how many. */
static size_t list_mains(const struct runner *runner, pid_t *ret_mains)
{
    size_t count = 0;
    for (const struct run *run = runner->runs; run; run = run->next) {
        if (run->job.pid > 0)
            ret_mains[count++] = run->job.pid;
    }
    qsort(ret_mains, count, sizeof(*ret_mains), compare_pids);
    return count;
}

void job_reap_orphans(const struct runner *runner)
{
    pid_t mains[RUNNER_JOBS_MAX];
    (void)procs_orphans(mains, list_mains(runner, mains));
}

/* Signals all of the run's processes; how many live. quick: first see whether there can be any
 * beside the main process, which has ended. */
static size_t kill_all(const struct runner *runner, const struct run *run, bool quick)
{
    pid_t mains[RUNNER_JOBS_MAX];
    struct procs_job target = {
        .main = run->job.pid, .job = run->job.job, .run = run->job.run, .mains = mains};
    target.main_count = list_mains(runner, mains);
    target.alone = target.main_count == 1;
    job_signal(run, SIGKILL); /* the group at one stroke, forks included */
    if (quick && !procs_orphans(mains, target.main_count))
        return 0;
    return procs_signal(&target, SIGKILL);
}

/* The grace is over. Mostly the main process dies of this and the sweep does the rest; only if it
 * does not, the others are looked for while it lives. */
static void kill_run(const struct runner *runner, struct run *run, int64_t now)
{
    if (!run->killed)
        job_signal(run, SIGKILL);
    else
        (void)kill_all(runner, run, false);
    run->killed = true;
    run->kill_at = now + KILL_PAUSE_MS;
}

static int64_t advance_running(struct runner *runner, struct run *run, int64_t now)
{
    if (run->child_ended) {
        if (run->report.fd >= 0)
            job_report_ready(runner, &run->report);
        run->phase = RUN_SWEEPING;
        job_set_end(run, now);
        run->until = now + SWEEP_MS;
        run->next_at = now;
        return now;
    }
    if (now >= run->wall_at) {
        run->wall_at = NEVER;
        job_end(run, RUNNER_WALL_LIMIT, (int64_t)run->limits.grace_ms, "");
    }
    if (now >= run->kill_at)
        kill_run(runner, run, now);
    return run->wall_at < run->kill_at ? run->wall_at : run->kill_at;
}

static void reap(struct run *run)
{
    int status = 0;
    struct rusage usage = {0};
    struct runner_record *record = &run->record;
    pid_t pid = -1;
    do {
        pid = wait4(run->job.pid, &status, 0, &usage);
    } while (pid < 0 && errno == EINTR);
    run->job.pid = 0;
    record->user_ms =
        (uint64_t)usage.ru_utime.tv_sec * 1000 + (uint64_t)usage.ru_utime.tv_usec / 1000;
    record->system_ms =
        (uint64_t)usage.ru_stime.tv_sec * 1000 + (uint64_t)usage.ru_stime.tv_usec / 1000;
    record->max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    if (record->start_error[0])
        return;
    if (WIFEXITED(status))
        record->exit_code = WEXITSTATUS(status);
    else
        record->signal = WTERMSIG(status);
    record->core_dumped = WIFSIGNALED(status) && WCOREDUMP(status);
}

/* A reason that only the way it died tells. */
static void find_reason(struct run *run)
{
    struct runner_record *record = &run->record;
    const struct runner_limits *limits = &run->limits;
    uint64_t cpu_ms = record->user_ms + record->system_ms;
    if (record->reason != RUNNER_NONE)
        return;
    if (limits->cpu_s && (record->signal == SIGXCPU ||
                          (record->signal == SIGKILL && cpu_ms >= limits->cpu_s * 1000)))
        record->reason = RUNNER_CPU_LIMIT;
    else if (limits->file_bytes && record->signal == SIGXFSZ)
        record->reason = RUNNER_FILE_LIMIT;
}

static int64_t advance_sweeping(struct runner *runner, struct run *run, int64_t now)
{
    if (now < run->next_at)
        return run->next_at;
    size_t left = kill_all(runner, run, true);
    if (left > 0 && now < run->until) {
        run->next_at = now + SWEEP_PAUSE_MS;
        return run->next_at;
    }
    if (left > 0)
        log_event(LOG_ERROR, "runner.leftovers", LOG_I("pid", run->job.pid), LOG_U("count", left));
    run->record.leftovers = left;
    reap(run);
    find_reason(run);
    run->phase = RUN_DRAINING;
    run->until = now + DRAIN_MS;
    return now;
}

static int64_t advance_draining(struct runner *runner, struct run *run, int64_t now)
{
    for (size_t i = 0; i < 2; i++)
        job_stream_ready(runner, &run->streams[i]);
    bool open = run->streams[0].fd >= 0 || run->streams[1].fd >= 0;
    if (open && now < run->until)
        return run->until; /* epoll tells of more to read */
    runner_unwatch(runner, &run->streams[0]);
    runner_unwatch(runner, &run->streams[1]);
    run->phase = RUN_FINISHING;
    run->next_at = now;
    return now;
}

static int64_t advance_finishing(struct runner *runner, struct run *run, int64_t now)
{
    struct err err = {0};
    if (now < run->next_at)
        return run->next_at;
    if (!output_finish(&run->outputs[0]) || !output_finish(&run->outputs[1]))
        return now;
    run->record.out = output_result(&run->outputs[0]);
    run->record.err = output_result(&run->outputs[1]);
    enum err_code rc = FAULT_FAILS("runner.record.write")
                           ? err_set(&err, ERR_IO, "a failure point")
                           : runner_record_write(runner->work_dir, &run->record, &err);
    if (rc) {
        if (!run->record_failed)
            log_err("runner.record.failed", &err);
        run->record_failed = true;
        run->next_at = now + RECORD_PAUSE_MS; /* until it is on the disk, nobody is told */
        return run->next_at;
    }
    FAULT("runner.record_written");
    output_close(&run->outputs[0]);
    output_close(&run->outputs[1]);
    fd_close(&run->output_dir);
    run->phase = RUN_EXITED;
    run->job.exited = true;
    run->job.record = run->record;
    server_exited(runner, run);
    return NEVER;
}

int64_t job_advance(struct runner *runner, struct run *run, int64_t now)
{
    for (;;) {
        enum run_phase before = run->phase;
        int64_t due = NEVER;
        if (run->phase <= RUN_RUNNING)
            due = advance_running(runner, run, now);
        else if (run->phase == RUN_SWEEPING)
            due = advance_sweeping(runner, run, now);
        else if (run->phase == RUN_DRAINING)
            due = advance_draining(runner, run, now);
        else if (run->phase == RUN_FINISHING)
            due = advance_finishing(runner, run, now);
        if (run->phase == before || run->phase == RUN_FINISHING)
            return due;
    }
}
