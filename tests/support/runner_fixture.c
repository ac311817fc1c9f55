/* SPDX-License-Identifier: MIT */
#include "tests/support/runner_fixture.h"

#include "common/base/clock.h"
#include "common/base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define PAUSE_US 2000

void site_on_exit(void *arg, const struct runner_record *record)
{
    struct site *site = arg;
    (void)pthread_mutex_lock(&site->lock);
    if (site->end_count < ENDS_MAX)
        site->ends[site->end_count++] = *record;
    (void)pthread_cond_broadcast(&site->changed);
    (void)pthread_mutex_unlock(&site->lock);
}

void site_on_lost(void *arg, const struct err *err)
{
    struct site *site = arg;
    (void)err;
    (void)pthread_mutex_lock(&site->lock);
    site->lost = true;
    (void)pthread_cond_broadcast(&site->changed);
    (void)pthread_mutex_unlock(&site->lock);
}

void site_connect(struct site *site)
{
    struct err err = {0};
    const struct runner_callbacks callbacks = {site, site_on_exit, site_on_lost};
    const struct runner_client_config cfg = {.work_dir = site->work,
                                             .worker_name = "test",
                                             .runner_path = RUNNER_PATH,
                                             .worker_id = uuid_v7(),
                                             .confine = site->confine,
                                             .timeout_ms = WAIT_MS};
    site->lost = false;
    assert_ok(runner_client_open(&cfg, &callbacks, &site->client, &err));
    site->runner = runner_client_pid(site->client);
}

void site_leave(struct site *site)
{
    runner_client_free(site->client);
    site->client = NULL;
}

void site_grant(struct site *site, int ms, int grace_ms)
{
    struct err err = {0};
    assert_ok(runner_client_ping(site->client, clock_boot_ms() + ms, grace_ms, &err));
}

int site_set_up(void **state)
{
    static struct site site;
    struct err err = {0};
    site = (struct site){.work_dir = -1, .archive_dir = -1};
    (void)pthread_mutex_init(&site.lock, NULL);
    clock_cond_init(&site.changed);
    (void)snprintf(site.root, sizeof(site.root), "/tmp/test_runner.XXXXXX");
    if (!mkdtemp(site.root))
        return 1;
    /* longer than the path to a socket may be */
    (void)snprintf(site.work, sizeof(site.work), "%s/%0100d/work", site.root, 0);
    (void)snprintf(site.archive, sizeof(site.archive), "%s/archive", site.root);
    if (fs_open_dir(site.work, true, &site.work_dir, &err) != ERR_OK ||
        fs_open_dir(site.archive, true, &site.archive_dir, &err) != ERR_OK)
        return 1;
    site_connect(&site);
    site_grant(&site, 60000, 1000);
    *state = &site;
    return 0;
}

/* What the runner's sanitizers had to say is in its log. */
static bool log_is_clean(struct site *site)
{
    struct err err = {0};
    BUF_AUTO struct buf log = BUF_INIT((size_t)4 * 1024 * 1024);
    if (fs_read(site->work_dir, "runner.log", &log, &err) != ERR_OK)
        return true;
    if (!strstr(buf_text(&log), "Sanitizer") && !strstr(buf_text(&log), "runtime error"))
        return true;
    print_error("%s\n", buf_text(&log));
    return false;
}

int site_tear_down(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    if (site->client) {
        struct runner_job *jobs = NULL;
        size_t count = 0;
        if (runner_client_list(site->client, &jobs, &count, &err) == ERR_OK) {
            for (size_t i = 0; i < count; i++)
                (void)!runner_client_kill(site->client, &jobs[i].job, jobs[i].fence, 0, "end",
                                          &err);
        }
        free(jobs);
        runner_client_close(site->client, true);
    }
    (void)kill(site->runner, SIGTERM);
    site_wait_gone(site->runner);
    bool clean = log_is_clean(site);
    fd_close(&site->work_dir);
    fd_close(&site->archive_dir);
    FD_AUTO int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    err_clear(&err);
    return fs_remove_tree(tmp, site->root + sizeof("/tmp"), &err) != ERR_OK || !clean;
}

struct runner_start site_start(struct site *site, const char *const *argv)
{
    static char id[64];
    static char output_dir[64];
    static const char *env[] = {"PATH=/usr/bin:/bin", "LANG=C", "SLUICE_FENCE=1", id, NULL};
    char text[UUID_TEXT_SIZE];
    struct runner_start start = {
        .job = uuid_v7(),
        .fence = 1,
        .argv = argv,
        .env = env,
        .output_root = site->archive,
        .output_dir = output_dir,
        .output_max_bytes = 1024UL * 1024,
    };
    (void)uuid_text(&start.job, text);
    (void)snprintf(id, sizeof(id), "SLUICE_JOB_ID=%s", text);
    (void)snprintf(output_dir, sizeof(output_dir), "tenant/%s/1", text);
    return start;
}

struct runner_job site_run(struct site *site, const struct runner_start *start)
{
    struct err err = {0};
    struct runner_job job;
    bool existing = true;
    assert_ok(runner_client_start(site->client, start, &job, &existing, &err));
    assert_false(existing);
    if (job.exited)
        fail_msg("not started: %s at %s", job.record.start_error, job.record.start_step);
    assert_true(job.pid > 0);
    return job;
}

struct runner_job site_shell(struct site *site, const char *script)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct runner_start start = site_start(site, argv);
    return site_run(site, &start);
}

struct runner_record site_end(struct site *site, const struct uuid *job)
{
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    struct runner_record record;
    bool found = false;
    (void)pthread_mutex_lock(&site->lock);
    do {
        for (size_t i = 0; i < site->end_count && !found; i++) {
            found = uuid_eq(&site->ends[i].job, job);
            if (found)
                record = site->ends[i];
        }
    } while (!found && clock_cond_wait_until(&site->changed, &site->lock, deadline));
    (void)pthread_mutex_unlock(&site->lock);
    if (!found)
        fail_msg("the end of a job was not told");
    return record;
}

struct runner_record site_shell_end(struct site *site, const char *script)
{
    struct runner_job job = site_shell(site, script);
    return site_end(site, &job.job);
}

void site_wait_lost(struct site *site)
{
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    (void)pthread_mutex_lock(&site->lock);
    while (!site->lost && clock_cond_wait_until(&site->changed, &site->lock, deadline))
        continue;
    bool lost = site->lost;
    (void)pthread_mutex_unlock(&site->lock);
    assert_true(lost);
}

bool site_alive(pid_t pid)
{
    char path[64];
    struct err err = {0};
    BUF_AUTO struct buf bytes = BUF_INIT(4096);
    FD_AUTO int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(path, sizeof(path), "%d/stat", (int)pid);
    if (fs_read(proc, path, &bytes, &err) != ERR_OK)
        return false;
    const char *state = strrchr(buf_text(&bytes), ')');
    return state && state[2] != 'Z' && state[2] != 'X';
}

void site_wait_gone(pid_t pid)
{
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    while (site_alive(pid)) {
        if (clock_mono_ms() > deadline)
            fail_msg("process %d lives on", (int)pid);
        (void)usleep(PAUSE_US);
    }
}

pid_t site_wait_pid(struct site *site, const struct runner_job *job, const char *file)
{
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    char dir[RUNNER_DIR_SIZE];
    char path[RUNNER_DIR_SIZE + 64];
    (void)snprintf(path, sizeof(path), "%s/%s", runner_job_dir(&job->job, job->run, dir), file);
    while (clock_mono_ms() < deadline) {
        struct err err = {0};
        uint64_t pid = 0;
        BUF_AUTO struct buf bytes = BUF_INIT(64);
        if (fs_read(site->work_dir, path, &bytes, &err) == ERR_OK && bytes.len > 1 &&
            sv_u64((struct sv){bytes.ptr, bytes.len - 1}, INT32_MAX, &pid))
            return (pid_t)pid;
        (void)usleep(PAUSE_US);
    }
    fail_msg("%s did not come", path);
    return 0;
}

void site_read_output(struct site *site, const struct runner_record *record, const char *name,
                      struct buf *ret_bytes)
{
    struct err err = {0};
    char text[UUID_TEXT_SIZE];
    char path[128];
    (void)snprintf(path, sizeof(path), "tenant/%s/1/%s", uuid_text(&record->job, text), name);
    assert_ok(fs_read(site->archive_dir, path, ret_bytes, &err));
}

struct runner_job site_only_job(struct site *site)
{
    struct err err = {0};
    struct runner_job *jobs = NULL;
    size_t count = 0;
    assert_ok(runner_client_list(site->client, &jobs, &count, &err));
    assert_int_equal(count, 1);
    struct runner_job job = jobs[0];
    free(jobs);
    return job;
}

size_t site_job_count(struct site *site)
{
    struct err err = {0};
    struct runner_job *jobs = NULL;
    size_t count = 0;
    assert_ok(runner_client_list(site->client, &jobs, &count, &err));
    free(jobs);
    return count;
}

void site_kill_runner(struct site *site)
{
    assert_int_equal(kill(site->runner, SIGKILL), 0);
    site_wait_lost(site);
    site_leave(site);
    site_wait_gone(site->runner);
}
