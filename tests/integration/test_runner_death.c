/* SPDX-License-Identifier: MIT */

/* Workers that come back, runners that die, steps that fail. */

#include "tests/support/runner_fixture.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "worker/runner/journal.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define FAR_MS 60000

static void a_worker_that_comes_back_finds_its_jobs(void **state)
{
    struct site *site = *state;
    pid_t runner = site->runner;
    struct runner_job running = site_shell(site, "exec sleep 1000");
    struct runner_record ended = site_shell_end(site, "exit 4");
    site_leave(site);
    site_connect(site);
    assert_int_equal(site->runner, runner);
    assert_int_equal(site_job_count(site), 2);
    struct err err = {0};
    assert_ok(runner_client_forget(site->client, &ended.job, 1, &err));
    struct runner_job found = site_only_job(site);
    assert_int_equal(found.pid, running.pid);
    assert_false(found.exited);
    assert_ok(runner_client_kill(site->client, &found.job, 1, 0, "", &err));
    assert_int_equal(site_end(site, &found.job).reason, RUNNER_KILLED);
}

static void a_newer_worker_takes_the_place_of_the_older(void **state)
{
    struct site *site = *state;
    struct runner_client *older = site->client;
    struct err err = {0};
    pid_t runner = site->runner;
    site_connect(site);
    site_wait_lost(site);
    assert_int_equal(site->runner, runner);
    assert_code(runner_client_ping(older, clock_boot_ms(), 0, &err), ERR_IO);
    runner_client_free(older);
    assert_int_equal(site_job_count(site), 0);
}

/* All but when it ended by the clock since boot: the host may have been booted meanwhile. */
static void assert_same_end(const struct runner_job *job, const struct runner_record *before)
{
    struct runner_record wanted = *before;
    assert_true(before->ended_boot_us > 0);
    wanted.ended_boot_us = 0;
    assert_memory_equal(&job->record, &wanted, sizeof(wanted));
}

static void an_end_survives_the_death_of_the_runner(void **state)
{
    struct site *site = *state;
    struct runner_record record = site_shell_end(site, "exit 6");
    site_kill_runner(site);
    site_connect(site);
    struct runner_job job = site_only_job(site);
    assert_true(job.exited);
    assert_same_end(&job, &record);
}

static void the_jobs_of_a_dead_runner_die_and_are_told_as_lost(void **state)
{
    struct site *site = *state;
    struct runner_job job =
        site_shell(site, "(setsid sh -c 'echo $$ > daemon; exec sleep 1000' & ); exec sleep 1000");
    pid_t daemon = site_wait_pid(site, &job, "daemon");
    struct err err = {0};
    assert_ok(runner_client_adopt(site->client, &job.job, 1, 2, &job, &err));
    site_kill_runner(site);
    site_wait_gone(job.pid);
    site_connect(site);
    site_wait_gone(daemon);
    job = site_only_job(site);
    assert_true(job.exited);
    assert_int_equal(job.fence, 2);
    assert_int_equal(job.record.reason, RUNNER_RUNNER_LOST);
    assert_true(runner_reason_is_infrastructure(job.record.reason));
    assert_int_equal(job.record.leftovers, 0);
}

static void a_runner_that_is_told_to_stop_ends_its_jobs(void **state)
{
    struct site *site = *state;
    struct runner_job job = site_shell(site, "exec sleep 1000");
    assert_int_equal(kill(site->runner, SIGTERM), 0);
    assert_int_equal(site_end(site, &job.job).reason, RUNNER_RUNNER_STOPPED);
    site_wait_lost(site);
    site_wait_gone(site->runner);
}

static bool count_job(void *arg, const struct runner_job *job)
{
    *(size_t *)arg += job->exited;
    return true;
}

static size_t ends_on_the_disk(struct site *site)
{
    struct err err = {0};
    size_t count = 0;
    assert_ok(journal_read(site->work_dir, count_job, &count, &err));
    return count;
}

static void a_forgotten_end_is_off_the_disk(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    struct runner_record record = site_shell_end(site, "exit 0");
    assert_int_equal(ends_on_the_disk(site), 1);
    assert_ok(runner_client_forget(site->client, &record.job, 1, &err));
    runner_client_close(site->client, true); /* it has no job: it leaves */
    site->client = NULL;
    site_wait_gone(site->runner);
    assert_int_equal(ends_on_the_disk(site), 0);
}

static void a_broken_record_hinders_nobody(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    struct runner_record record = site_shell_end(site, "exit 6");
    site_kill_runner(site);
    assert_ok(fs_write_sync(site->work_dir, "runner.journal.1", SV("{"), 0600, &err));
    assert_ok(fs_make_dirs(site->work_dir, "jobs/other", 0700, NULL, &err));
    site_connect(site);
    struct runner_job job = site_only_job(site);
    assert_same_end(&job, &record);
}

/* ---- failure points ---- */

#ifdef SLUICE_FAULTS

static void restart_with_fault(struct site *site, const char *fault)
{
    site_kill_runner(site);
    (void)setenv("SLUICE_FAULT", fault, 1); /* NOLINT(concurrency-mt-unsafe): no client lives */
    site_connect(site);
    (void)unsetenv("SLUICE_FAULT"); /* NOLINT(concurrency-mt-unsafe) */
    site_grant(site, FAR_MS, 0);
}

/* The runner dies at the point; afterwards the job is not there, or shown with this reason. */
static void check_death_at(struct site *site, const char *fault, bool known,
                           enum runner_reason reason)
{
    struct err err = {0};
    const char *argv[] = {"sh", "-c", "echo $$ >> starts; exit 2", NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job job;
    bool existing = false;
    restart_with_fault(site, fault);
    (void)!runner_client_start(site->client, &start, &job, &existing, &err);
    site_wait_lost(site);
    site_leave(site);
    site_wait_gone(site->runner);
    site_connect(site);
    assert_int_equal(site_job_count(site), known ? 1 : 0);
    if (!known)
        return;
    job = site_only_job(site);
    assert_true(job.exited);
    assert_int_equal(job.record.reason, reason);
    assert_int_equal(job.record.exit_code, reason == RUNNER_NONE ? 2 : -1);
    err_clear(&err);
    assert_ok(runner_client_forget(site->client, &job.job, 1, &err));
    int64_t until_ms = clock_mono_ms() + WAIT_MS;
    while (ends_on_the_disk(site) > 0 && clock_mono_ms() < until_ms) /* soon, not at once */
        (void)usleep(1000);
    assert_int_equal(ends_on_the_disk(site), 0);
}

static void a_death_anywhere_leaves_no_run_and_no_result_untold(void **state)
{
    check_death_at(*state, "runner.asked=kill", false, RUNNER_NONE);
    check_death_at(*state, "runner.start.noted=kill", true, RUNNER_RUNNER_LOST);
    check_death_at(*state, "runner.started=kill", true, RUNNER_RUNNER_LOST);
    check_death_at(*state, "runner.child_ended=kill", true, RUNNER_RUNNER_LOST);
    check_death_at(*state, "runner.record_written=kill", true, RUNNER_NONE);
}

static void a_fork_that_fails_is_a_start_failure(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    const char *argv[] = {"true", NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job job;
    bool existing = false;
    restart_with_fault(site, "runner.fork=fail");
    assert_ok(runner_client_start(site->client, &start, &job, &existing, &err));
    assert_true(job.exited);
    assert_string_equal(job.record.start_error, "EAGAIN");
    assert_string_equal(job.record.start_step, "fork");
}

static void an_end_is_told_only_once_it_is_on_the_disk(void **state)
{
    struct site *site = *state;
    restart_with_fault(site, "runner.record.write=fail@1");
    int64_t begin = clock_mono_ms();
    struct runner_record record = site_shell_end(site, "exit 3");
    assert_true(clock_mono_ms() - begin >= 400); /* the second try wrote it */
    assert_int_equal(record.exit_code, 3);
    site_kill_runner(site);
    site_connect(site);
    struct runner_job job = site_only_job(site);
    assert_same_end(&job, &record);
}

static void a_full_output_disk_cuts_the_output_only(void **state)
{
    struct site *site = *state;
    restart_with_fault(site, "runner.output.write=fail");
    struct runner_record record = site_shell_end(site, "echo lost; exit 3");
    assert_int_equal(record.exit_code, 3);
    assert_true(runner_record_output_failed(&record));
    assert_string_equal(record.out.error, "ENOSPC");
    assert_int_equal(record.out.total_bytes, 5);
    assert_int_equal(record.out.kept_bytes, 0);
}

/* As if the archive root were on a server that is gone: a write waits, and only a write. */
static void a_write_that_hangs_does_not_prolong_the_grant(void **state)
{
    struct site *site = *state;
    restart_with_fault(site, "runner.output.hang=sleep:4000@1");
    struct runner_job writes = site_shell(site, "echo out; exec sleep 1000");
    struct runner_job quiet = site_shell(site, "exec sleep 1000");
    int64_t begin = clock_mono_ms();
    site_grant(site, 500, 250);
    struct runner_record record = site_end(site, &quiet.job);
    assert_int_equal(record.reason, RUNNER_LEASE_EXPIRED);
    site_wait_gone(writes.pid);
    site_grant(site, FAR_MS, 0);
    assert_int_equal(site_shell_end(site, "exit 3").exit_code, 3);
    assert_in_range(clock_mono_ms() - begin, 0, 3000);
    record = site_end(site, &writes.job);
    assert_in_range(clock_mono_ms() - begin, 3000, 2 * WAIT_MS);
    assert_int_equal(record.reason, RUNNER_LEASE_EXPIRED);
    assert_int_equal(record.out.total_bytes, 4);
}

/* It comes to the pipe long after the job has ended. */
static void a_write_that_hangs_loses_no_output_of_others(void **state)
{
    struct site *site = *state;
    restart_with_fault(site, "runner.output.hang=sleep:2500@1");
    (void)site_shell(site, "echo out; exec sleep 1000");
    struct runner_record record = site_shell_end(site, "echo kept; echo too >&2; exit 3");
    assert_int_equal(record.exit_code, 3);
    assert_int_equal(record.out.total_bytes, 5);
    assert_int_equal(record.out.kept_bytes, 5);
    assert_int_equal(record.err.kept_bytes, 4);
}

/* The same for what a start needs. */
static void a_start_that_hangs_does_not_prolong_the_grant(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    const char *argv[] = {"true", NULL};
    struct runner_job job;
    bool existing = false;
    restart_with_fault(site, "runner.start.noted=sleep:3000@2");
    struct runner_job runs = site_shell(site, "exec sleep 1000");
    struct runner_start start = site_start(site, argv);
    site_grant(site, 500, 0);
    int64_t begin = clock_mono_ms();
    assert_ok(runner_client_start(site->client, &start, &job, &existing, &err));
    assert_in_range(clock_mono_ms() - begin, 2000, WAIT_MS);
    assert_true(job.exited);
    assert_int_equal(job.record.reason, RUNNER_LEASE_EXPIRED);
    struct runner_record record = site_end(site, &runs.job);
    assert_true(record.wall_ms < 2900);
    assert_int_equal(record.reason, RUNNER_LEASE_EXPIRED);
}

/* As if the worker's own disk hung for good, with a note of a start on its way: nothing can begin
 * or be told any more, but all that is to end does. */
static void a_journal_that_hangs_keeps_nothing_alive(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    const char *argv[] = {"sleep", "1000", NULL};
    const struct runner_callbacks callbacks = {site, site_on_exit, site_on_lost};
    const struct runner_client_config cfg = {
        .work_dir = site->work, .worker_name = "test", .runner_path = "/none", .timeout_ms = 1000};
    struct runner_job job;
    bool existing = false;
    restart_with_fault(site, "runner.journal.hang=sleep:600000@5");
    struct runner_job killed = site_shell(site, "exec sleep 1000"); /* two writes: a new file */
    struct runner_job leased = site_shell(site, "exec sleep 1000");
    struct runner_start limited = site_start(site, argv);
    limited.limits.wall_ms = 2000;
    struct runner_job limit = site_run(site, &limited);
    site_leave(site);
    assert_ok(runner_client_open(&cfg, &callbacks, &site->client, &err));
    for (int i = 0; i < 3; i++) { /* one hangs, the others follow it */
        struct runner_start start = site_start(site, argv);
        err_clear(&err);
        assert_code(runner_client_start(site->client, &start, &job, &existing, &err), ERR_TIMEOUT);
    }
    err_clear(&err);
    assert_ok(runner_client_kill(site->client, &killed.job, 1, 0, "", &err));
    site_wait_gone(killed.pid);
    site_wait_gone(limit.pid);
    assert_true(site_alive(leased.pid));
    site_grant(site, 200, 100);
    site_wait_gone(leased.pid);
    site_kill_runner(site);
}

/* Its answer goes to the request that waits for it, not to one that was given up. */
static void a_start_that_is_asked_for_again_is_answered(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    const char *argv[] = {"no-such-program", NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job job;
    const struct runner_callbacks callbacks = {site, site_on_exit, site_on_lost};
    const struct runner_client_config cfg = {
        .work_dir = site->work, .worker_name = "test", .runner_path = "/none", .timeout_ms = 1000};
    bool existing = false;
    restart_with_fault(site, "runner.start.noted=sleep:2500@1");
    site_leave(site);
    assert_ok(runner_client_open(&cfg, &callbacks, &site->client, &err));
    enum err_code rc = ERR_TIMEOUT;
    for (int tries = 0; rc == ERR_TIMEOUT && tries < 50; tries++) {
        err_clear(&err);
        rc = runner_client_start(site->client, &start, &job, &existing, &err);
    }
    assert_ok(rc);
    assert_true(job.exited);
    assert_string_equal(job.record.start_error, "ENOENT");
}

/* The worker that asked for it died, and nobody waits for that answer: the next one is told. */
static void a_start_that_fails_after_its_run_was_adopted_is_told(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    const char *argv[] = {"no-such-program", NULL};
    struct runner_start start = site_start(site, argv);
    const struct runner_callbacks callbacks = {site, site_on_exit, site_on_lost};
    const struct runner_client_config cfg = {
        .work_dir = site->work, .worker_name = "test", .runner_path = "/none", .timeout_ms = 1000};
    struct runner_job job;
    bool existing = false;
    restart_with_fault(site, "runner.start.noted=sleep:3500@1");
    site_leave(site);
    assert_ok(runner_client_open(&cfg, &callbacks, &site->client, &err));
    assert_code(runner_client_start(site->client, &start, &job, &existing, &err), ERR_TIMEOUT);
    site_leave(site);
    site_connect(site);
    err_clear(&err);
    assert_ok(runner_client_adopt(site->client, &start.job, 1, 2, &job, &err));
    assert_false(job.exited);
    struct runner_record record = site_end(site, &start.job);
    assert_string_equal(record.start_error, "ENOENT");
    assert_int_equal(record.fence, 2);
}

#endif

int main(void)
{
#define SITE_TEST(name) cmocka_unit_test_setup_teardown(name, site_set_up, site_tear_down)
    const struct CMUnitTest tests[] = {
        SITE_TEST(a_worker_that_comes_back_finds_its_jobs),
        SITE_TEST(a_newer_worker_takes_the_place_of_the_older),
        SITE_TEST(an_end_survives_the_death_of_the_runner),
        SITE_TEST(the_jobs_of_a_dead_runner_die_and_are_told_as_lost),
        SITE_TEST(a_runner_that_is_told_to_stop_ends_its_jobs),
        SITE_TEST(a_forgotten_end_is_off_the_disk),
        SITE_TEST(a_broken_record_hinders_nobody),
#ifdef SLUICE_FAULTS
        SITE_TEST(a_death_anywhere_leaves_no_run_and_no_result_untold),
        SITE_TEST(a_fork_that_fails_is_a_start_failure),
        SITE_TEST(an_end_is_told_only_once_it_is_on_the_disk),
        SITE_TEST(a_full_output_disk_cuts_the_output_only),
        SITE_TEST(a_write_that_hangs_does_not_prolong_the_grant),
        SITE_TEST(a_write_that_hangs_loses_no_output_of_others),
        SITE_TEST(a_start_that_hangs_does_not_prolong_the_grant),
        SITE_TEST(a_journal_that_hangs_keeps_nothing_alive),
        SITE_TEST(a_start_that_is_asked_for_again_is_answered),
        SITE_TEST(a_start_that_fails_after_its_run_was_adopted_is_told),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
