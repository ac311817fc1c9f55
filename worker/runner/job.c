/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/fault.h"
#include "common/base/log.h"
#include "worker/runner/procs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define SWEEP_MS 10000 /* how long the runner tries to end what a job left behind */
#define SWEEP_PAUSE_MS 3
#define KILL_PAUSE_MS 100
#define DRAIN_MS 1000     /* for a pipe that a process outside of the job holds */
#define START_PAUSE_MS 10 /* between kills of a process that may not be there yet */
#define KEEP_PAUSE_MS 500

/* One that has something to read is the writer's from now on; one that is at its end is closed. */
static void look_at_stream(struct runner *runner, struct run *run, size_t which)
{
    struct watch *watch = &run->streams[which];
    struct pollfd pipe = {.fd = watch->fd, .events = POLLIN};
    if (watch->fd < 0 || poll(&pipe, 1, 0) <= 0)
        return;
    if (!(pipe.revents & POLLIN)) {
        runner_unwatch(runner, watch);
        return;
    }
    runner_release(runner, watch);
    run->flowing = true;
    writer_take(runner->writer, run->flow, which, &watch->fd);
}

void job_stream_ready(struct runner *runner, struct watch *watch)
{
    look_at_stream(runner, watch->run, watch == &watch->run->streams[1]);
}

static pid_t pid_now(const struct run *run)
{
    return run->task ? atomic_load(&run->task->watch.pid) : run->job.pid;
}

void job_signal(const struct run *run, int signal_number)
{
    pid_t pid = pid_now(run);
    if (pid <= 0 && run->task)
        atomic_store(&run->task->watch.called_off, true);
    if (pid > 0 && kill(-pid, signal_number) != 0 && run->phase == RUN_STARTING)
        (void)kill(pid, signal_number); /* it has no group of its own yet */
}

/* Asked of the kernel: while this process was stopped, a limit may have passed and the command may
 * have ended, and the loop has not heard of the end yet. */
static bool has_ended(const struct run *run)
{
    siginfo_t info = {0};
    pid_t pid = pid_now(run);
    return run->child_ended ||
           (pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == pid);
}

void job_end(struct run *run, enum runner_reason reason, int64_t grace_ms, const char *note)
{
    int64_t now = protocol_boot_ms();
    if (run->phase > RUN_RUNNING || has_ended(run)) /* its own end counts */
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
        pid_t pid = pid_now(run);
        if (pid > 0)
            ret_mains[count++] = pid;
    }
    qsort(ret_mains, count, sizeof(*ret_mains), compare_pids);
    return count;
}

static bool is_alone(const struct runner *runner, const struct run *run)
{
    const struct run *other = runner->runs;
    while (other && (other == run || other->phase > RUN_SWEEPING))
        other = other->next;
    return !other;
}

/* Signals all of the run's processes; how many live. quick: first see whether there can be any
 * beside the main process, which has ended. */
static size_t kill_all(const struct runner *runner, const struct run *run, bool quick)
{
    pid_t mains[RUNNER_JOBS_MAX];
    if (quick && !procs_orphans())
        return 0;
    struct procs_job target = {
        .main = run->job.pid, .job = run->job.job, .run = run->job.run, .mains = mains};
    target.main_count = list_mains(runner, mains);
    target.alone = is_alone(runner, run);
    job_signal(run, SIGKILL); /* the group at one stroke, forks included */
    if (quick && !procs_orphans())
        return 0;
    return procs_signal(&target, SIGKILL);
}

/* The grace is over. Mostly the main process dies of this and the sweep does the rest; only if it
 * does not, the others are looked for while it lives. */
static void kill_run(const struct runner *runner, struct run *run, int64_t now)
{
    if (!run->killed || run->task)
        job_signal(run, SIGKILL);
    else
        (void)kill_all(runner, run, false);
    run->killed = true;
    run->kill_at = now + (run->task ? START_PAUSE_MS : KILL_PAUSE_MS);
}

static int64_t advance_running(struct runner *runner, struct run *run, int64_t now)
{
    if (run->child_ended) {
        run->phase = RUN_SWEEPING;
        job_set_end(run);
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

static int64_t finish(struct runner *runner, struct run *run, int64_t now)
{
    run->phase = RUN_FINISHING;
    if (run->flowing) {
        writer_end(runner->writer, run->flow, DRAIN_MS);
        run->next_at = NEVER;
    } else {
        run->next_at = now;
    }
    return run->next_at;
}

static int64_t advance_draining(struct runner *runner, struct run *run, int64_t now)
{
    for (size_t i = 0; i < 2; i++)
        look_at_stream(runner, run, i);
    bool open = run->streams[0].fd >= 0 || run->streams[1].fd >= 0;
    if (open && now < run->until)
        return run->until; /* epoll tells of more to read */
    runner_unwatch(runner, &run->streams[0]);
    runner_unwatch(runner, &run->streams[1]);
    return finish(runner, run, now);
}

void job_written(struct runner *runner, struct flow *flow)
{
    struct run *run = flow_owner(flow);
    (void)runner;
    run->record.out = flow_result(flow, 0);
    run->record.err = flow_result(flow, 1);
    run->flow = NULL;
    run->next_at = 0;
    flow_free(flow);
}

enum err_code job_keep(struct runner *runner, struct run *run, struct err *err)
{
    struct runner_job job = run->job;
    if (run->keeping) {
        job.exited = true;
        job.pid = 0;
        job.record = run->record;
    }
    return journal_keep(runner->journal, run->entry, &job, err);
}

static int64_t advance_finishing(struct runner *runner, struct run *run, int64_t now)
{
    struct err err = {0};
    if (run->keeping || now < run->next_at)
        return run->keeping ? NEVER : run->next_at;
    run->keeping = true;
    if (job_keep(runner, run, &err) == ERR_OK)
        return NEVER;
    log_err("runner.record.failed", &err);
    run->keeping = false;
    run->next_at = now + KEEP_PAUSE_MS;
    return run->next_at;
}

void job_kept(struct runner *runner, struct run *run)
{
    if (run->phase == RUN_FINISHING && run->keeping) {
        FAULT("runner.record_written");
        (void)job_tell_start(runner, run, NEVER);
        flow_free(TAKE(run->flow));
        run->phase = RUN_EXITED;
        run->job.exited = true;
        run->job.record = run->record;
        server_exited(runner, run);
    }
    server_adopted(runner, run);
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
        if (run->phase == before)
            return due;
    }
}
