/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "worker/runner/procs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define NOTE_MAX ((size_t)64 * 1024)
#define SETTLE_MS 3000
#define SETTLE_PAUSE_US 5000

/* Not fsynced: after a crash of the host no process of the run is left, and a start whose claim
 * the database knows is repeated under a new fence. */
enum err_code lost_note(struct runner *runner, const struct run *run, struct err *err)
{
    char path[RUNNER_DIR_SIZE + sizeof("/." START_FILE)];
    char dir[RUNNER_DIR_SIZE];
    FD_AUTO int fd = -1;
    FD_AUTO int dir_fd = -1;
    (void)runner_job_dir(&run->job.job, run->job.run, dir);
    (void)snprintf(path, sizeof(path), "%s/." START_FILE, dir);
    enum err_code rc =
        fs_open_beneath(runner->work_dir, path, O_WRONLY | O_CREAT | O_TRUNC, 0600, &fd, err);
    if (rc == ERR_OK)
        rc = fs_open_beneath(runner->work_dir, dir, O_RDONLY | O_DIRECTORY, 0, &dir_fd, err);
    if (rc)
        return rc;
    json_t *json = runner_job_json(&run->job);
    TEXT_AUTO char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text)
        return err_set_errno(err, ERR_NOMEM, ENOMEM, "no memory to note a start");
    ssize_t size = (ssize_t)strlen(text);
    if (write(fd, text, (size_t)size) != size ||
        renameat(dir_fd, "." START_FILE, dir_fd, START_FILE) != 0)
        return err_set_errno(err, ERR_IO, errno, "cannot note a start");
    return ERR_OK;
}

static bool read_note(int jobs_fd, const char *name, struct runner_job *ret_job)
{
    char path[NAME_MAX + sizeof("/" START_FILE)];
    struct err err = {0};
    BUF_AUTO struct buf bytes = BUF_INIT(NOTE_MAX);
    (void)snprintf(path, sizeof(path), "%s/" START_FILE, name);
    enum err_code rc = fs_read(jobs_fd, path, &bytes, &err);
    if (rc)
        return false;
    json_t *json = json_loadb(buf_text(&bytes), bytes.len, JSON_REJECT_DUPLICATES, NULL);
    rc = runner_job_parse(json, ret_job, &err);
    json_decref(json);
    if (rc)
        log_event(LOG_WARN, "runner.note.unreadable", LOG_S("run", name));
    return rc == ERR_OK;
}

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
    enum err_code rc = runner_record_write(runner->work_dir, &record, &err);
    if (rc == ERR_OK)
        rc = job_hold(runner, &record, &err);
    if (rc)
        log_err("runner.run.lost.failed", &err);
}

static bool hold_record(void *arg, const struct runner_record *record)
{
    struct runner *runner = arg;
    struct err err = {0};
    if (job_hold(runner, record, &err) != ERR_OK)
        log_err("runner.record.not_held", &err);
    return true;
}

/* Runs with a note of their start and no record of their end. */
static void find_lost(int work_dir, struct lost *lost)
{
    int fd = openat(work_dir, "jobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *jobs = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry = NULL;
    while (jobs && (entry = readdir(jobs)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        char record[NAME_MAX + sizeof("/" RUNNER_RECORD_FILE)];
        struct runner_job job = {0};
        (void)snprintf(record, sizeof(record), "%s/" RUNNER_RECORD_FILE, entry->d_name);
        if (entry->d_name[0] == '.' || faccessat(fd, record, F_OK, 0) == 0)
            continue;
        if (read_note(fd, entry->d_name, &job) && !lost_add(lost, &job))
            log_event(LOG_ERROR, "runner.run.lost.failed", LOG_S("run", entry->d_name));
    }
    if (jobs)
        (void)closedir(jobs);
    else
        fd_close(&fd);
}

void lost_settle(struct runner *runner)
{
    struct err err = {0};
    __attribute__((cleanup(lost_done))) struct lost lost = {0};
    if (runner_records_scan(runner->work_dir, hold_record, runner, &err) != ERR_OK)
        log_err("runner.records.unreadable", &err);
    find_lost(runner->work_dir, &lost);
    end_leftovers(&lost);
    for (size_t i = 0; i < lost.count; i++)
        settle_one(runner, &lost.jobs[i], lost.runs[i].left);
}
