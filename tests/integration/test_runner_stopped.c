/* SPDX-License-Identifier: MIT */

/* The runner, its worker or the whole host stands still for a while: what a command did meanwhile
 * counts, and nothing lives on whose time was over. */

#include "tests/support/runner_fixture.h"

#include "common/base/clock.h"
#include "common/base/fs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define FAR_MS 60000
#define WALL_MS 3000 /* the runner is stopped by then */

static void stop_runner(struct site *site)
{
    assert_int_equal(kill(site->runner, SIGSTOP), 0);
}

static void wake_runner(struct site *site)
{
    assert_int_equal(kill(site->runner, SIGCONT), 0);
}

/* Until the clock, by which the runner judges, has passed it. */
static void wait_past(int64_t mono_ms)
{
    while (clock_mono_ms() <= mono_ms)
        (void)usleep(1000);
}

static void open_gate(struct site *site, const struct runner_job *job)
{
    struct err err = {0};
    char dir[RUNNER_DIR_SIZE];
    char path[RUNNER_DIR_SIZE + 8];
    (void)snprintf(path, sizeof(path), "%s/gate", runner_job_dir(&job->job, job->run, dir));
    FD_AUTO int fd = -1;
    assert_ok(fs_open_beneath(site->work_dir, path, O_WRONLY | O_CREAT, 0600, &fd, &err));
}

#define GATED "while ! test -e gate; do sleep 0.01; done; exit 3"

static struct runner_job run_gated(struct site *site, struct runner_limits limits)
{
    const char *argv[] = {"sh", "-c", GATED, NULL};
    struct runner_start start = site_start(site, argv);
    start.limits = limits;
    return site_run(site, &start);
}

static void check_own_end(struct site *site, const struct runner_job *job)
{
    struct runner_record record = site_end(site, &job->job);
    assert_int_equal(record.reason, RUNNER_NONE);
    assert_int_equal(record.exit_code, 3);
}

static void an_end_counts_though_the_limit_passed_while_the_runner_was_stopped(void **state)
{
    struct site *site = *state;
    for (uint64_t grace_ms = 0; grace_ms <= 1000; grace_ms += 1000) {
        struct runner_job job =
            run_gated(site, (struct runner_limits){.wall_ms = WALL_MS, .grace_ms = grace_ms});
        int64_t limit_ms = clock_mono_ms() + WALL_MS;
        stop_runner(site);
        open_gate(site, &job);
        site_wait_gone(job.pid);
        wait_past(limit_ms + (int64_t)grace_ms);
        wake_runner(site);
        check_own_end(site, &job);
    }
}

static void an_end_counts_though_the_grant_passed_while_the_runner_was_stopped(void **state)
{
    struct site *site = *state;
    struct runner_job job = run_gated(site, (struct runner_limits){0});
    struct runner_job other = site_shell(site, "exec sleep 1000");
    int64_t until_ms = clock_mono_ms() + WALL_MS;
    site_grant(site, WALL_MS, 500);
    stop_runner(site);
    open_gate(site, &job);
    site_wait_gone(job.pid);
    wait_past(until_ms + 500);
    wake_runner(site);
    check_own_end(site, &job);
    struct runner_record record = site_end(site, &other.job); /* this one had not ended */
    assert_int_equal(record.reason, RUNNER_LEASE_EXPIRED);
    assert_int_equal(record.signal, SIGKILL);
}

#ifdef SLUICE_FAULTS

static void restart_with_fault(struct site *site, const char *fault)
{
    site_kill_runner(site);
    (void)setenv("SLUICE_FAULT", fault, 1); /* NOLINT(concurrency-mt-unsafe): no client lives */
    site_connect(site);
    (void)unsetenv("SLUICE_FAULT"); /* NOLINT(concurrency-mt-unsafe) */
    site_grant(site, FAR_MS, 0);
}

/* Stopped when there was a process already and the loop did not know. */
static void an_end_counts_that_came_before_the_start_was_known(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    const char *argv[] = {"sh", "-c", "echo $$ > main; exit 3", NULL};
    struct runner_start start = site_start(site, argv);
    const struct runner_callbacks callbacks = {site, site_on_exit, site_on_lost};
    const struct runner_client_config cfg = {
        .work_dir = site->work, .worker_name = "test", .runner_path = "/none", .timeout_ms = 1000};
    struct runner_job job = {.job = start.job, .run = 1};
    bool existing = false;
    restart_with_fault(site, "runner.launched=stop@1");
    site_leave(site);
    assert_ok(runner_client_open(&cfg, &callbacks, &site->client, &err));
    start.limits.wall_ms = WALL_MS;
    assert_code(runner_client_start(site->client, &start, &job, &existing, &err), ERR_TIMEOUT);
    job = (struct runner_job){.job = start.job, .run = 1};
    site_wait_gone(site_wait_pid(site, &job, "main"));
    wait_past(clock_mono_ms() + WALL_MS);
    wake_runner(site);
    check_own_end(site, &job);
}

#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they come first */

#define HOUR_S 3600

static void set_step(struct site *site, int64_t step_s)
{
    struct err err = {0};
    FD_AUTO int fd = -1;
    assert_ok(fs_open_beneath(site->work_dir, "step", O_WRONLY | O_CREAT, 0600, &fd, &err));
    assert_int_equal(pwrite(fd, &step_s, sizeof(step_s), 0), (ssize_t)sizeof(step_s));
}

/* NOLINTBEGIN(concurrency-mt-unsafe): no client lives */
static void restart_with_clock(struct site *site)
{
    char path[sizeof(site->work) + 8];
    (void)snprintf(path, sizeof(path), "%s/step", site->work);
    set_step(site, 0);
    site_kill_runner(site);
    (void)setenv("LD_PRELOAD", CLOCK_STEP_PATH, 1);
    (void)setenv("CLOCK_STEP_BOOT_FILE", path, 1);
    site_connect(site);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("CLOCK_STEP_BOOT_FILE");
    site_grant(site, FAR_MS, 0);
}
/* NOLINTEND(concurrency-mt-unsafe) */

/* The ping that waits was made by a worker that does not know yet how long the host slept. */
static void what_a_suspended_host_wakes_with_is_judged_before_any_ping(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    restart_with_clock(site);
    struct runner_job job = site_shell(site, "exec sleep 1000");
    struct runner_job ended = run_gated(site, (struct runner_limits){0});
    stop_runner(site);
    open_gate(site, &ended);
    site_wait_gone(ended.pid);
    set_step(site, HOUR_S);
    int64_t until_ms = clock_boot_ms() + HOUR_S * 1000 + FAR_MS;
    assert_code(runner_client_ping(site->client, until_ms, 0, &err), ERR_TIMEOUT);
    wake_runner(site);
    struct runner_record record = site_end(site, &job.job);
    assert_int_equal(record.reason, RUNNER_LEASE_EXPIRED);
    check_own_end(site, &ended);
    site_grant(site, HOUR_S * 1000 + FAR_MS, 0);
    assert_int_equal(site_shell_end(site, "exit 4").exit_code, 4);
}

#endif

/* Only this process hung: its worker pinged on. */
static void a_runner_that_was_stopped_alone_hears_its_pings_first(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    struct runner_job job = run_gated(site, (struct runner_limits){0});
    int64_t until_ms = clock_mono_ms() + 500;
    site_grant(site, 500, 0);
    stop_runner(site);
    assert_code(runner_client_ping(site->client, clock_boot_ms() + FAR_MS, 0, &err), ERR_TIMEOUT);
    wait_past(until_ms);
    wake_runner(site);
    assert_int_equal(site_job_count(site), 1);
    assert_false(site_only_job(site).exited);
    open_gate(site, &job);
    check_own_end(site, &job);
}

int main(void)
{
#define SITE_TEST(name) cmocka_unit_test_setup_teardown(name, site_set_up, site_tear_down)
    const struct CMUnitTest tests[] = {
        SITE_TEST(an_end_counts_though_the_limit_passed_while_the_runner_was_stopped),
        SITE_TEST(an_end_counts_though_the_grant_passed_while_the_runner_was_stopped),
        SITE_TEST(a_runner_that_was_stopped_alone_hears_its_pings_first),
#ifdef SLUICE_FAULTS
        SITE_TEST(an_end_counts_that_came_before_the_start_was_known),
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        SITE_TEST(what_a_suspended_host_wakes_with_is_judged_before_any_ping),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
