/* SPDX-License-Identifier: MIT */

/* What a job may do with its own ends of the pipes: it harms its own output at most. */

#include "tests/support/runner_fixture.h"

#include "common/base/clock.h"

#include <signal.h>
#include <stdlib.h>

#define PIPE_PROGRAM                                                                               \
    "import fcntl, os, time\n"                                                                     \
    "def flags(more): fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | more)\n"

#ifdef SLUICE_FAULTS

#define FAR_MS 60000

static void restart_with_fault(struct site *site, const char *fault)
{
    site_kill_runner(site);
    (void)setenv("SLUICE_FAULT", fault, 1); /* NOLINT(concurrency-mt-unsafe): no client lives */
    site_connect(site);
    (void)unsetenv("SLUICE_FAULT"); /* NOLINT(concurrency-mt-unsafe) */
    site_grant(site, FAR_MS, 0);
}

/* Takes a byte back between the writer's look and its read, then is silent for good. */
static void a_job_that_reads_its_own_pipe_stops_nobody(void **state)
{
    struct site *site = *state;
    restart_with_fault(site, "runner.output.read=sleep:100");
    struct runner_job hog = site_shell(
        site, "exec 3</proc/self/fd/1; while ! test -s stolen; do echo x; "
              "timeout 1 head -c 2 <&3 | grep -q x && echo $$ > stolen; done; exec sleep 1000");
    (void)site_wait_pid(site, &hog, "stolen");
    struct runner_record record = site_shell_end(site, "echo after; echo too >&2; exit 3");
    assert_int_equal(record.exit_code, 3);
    assert_int_equal(record.out.total_bytes, 6);
    assert_int_equal(record.err.total_bytes, 4);
    struct err err = {0};
    assert_ok(runner_client_kill(site->client, &hog.job, 1, 0, "", &err));
    assert_int_equal(site_end(site, &hog.job).reason, RUNNER_KILLED);
}

/* Its pipe's time is over before the writer comes to it. */
static void packets_are_read_to_the_last_one(void **state)
{
    struct site *site = *state;
    const char *argv[] = {"python3", "-c",
                          PIPE_PROGRAM "flags(os.O_DIRECT)\n"
                                       "for word in b'one', b'two', b'three': os.write(1, word)\n",
                          NULL};
    restart_with_fault(site, "runner.output.hang=sleep:3000@1");
    (void)site_shell(site, "echo out; exec sleep 1000");
    struct runner_start start = site_start(site, argv);
    struct runner_job job = site_run(site, &start);
    struct runner_record record = site_end(site, &job.job);
    assert_int_equal(record.exit_code, 0);
    assert_int_equal(record.out.total_bytes, 11);
    assert_int_equal(record.out.kept_bytes, 11);
}

#endif

static void check_harmless(struct site *site, const char *program)
{
    const char *argv[] = {"python3", "-c", program, NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job job = site_run(site, &start);
    (void)site_wait_pid(site, &job, "done");
    struct runner_record record = site_shell_end(site, "echo after; exit 3");
    assert_int_equal(record.exit_code, 3);
    assert_int_equal(record.out.total_bytes, 6);
    struct err err = {0};
    assert_ok(runner_client_kill(site->client, &job.job, 1, 0, "", &err));
    (void)site_end(site, &job.job);
}

#define THEN_STAY                                                                                  \
    "open('new', 'w').write(f'{os.getpid()}\\n')\n"                                                \
    "os.rename('new', 'done')\n"                                                                   \
    "time.sleep(1000)\n"

static void no_use_of_its_own_pipe_stops_another_job(void **state)
{
    struct site *site = *state;
    /* A smaller and a larger pipe; O_NONBLOCK and O_ASYNC on its own end; writes of every size;
     * what splice and a page that is cut off behind it leave; both ends at once. */
    check_harmless(site, PIPE_PROGRAM "fcntl.fcntl(1, 1031, 4096)\nos.write(1, b'x' * 5000)\n"
                                      "fcntl.fcntl(1, 1031, 1 << 20)\n" THEN_STAY);
    check_harmless(site, PIPE_PROGRAM "flags(os.O_NONBLOCK | os.O_ASYNC)\n"
                                      "for i in range(1000):\n"
                                      "    try: os.write(1, b'x' * 100000)\n"
                                      "    except BlockingIOError: pass\n" THEN_STAY);
    check_harmless(site, PIPE_PROGRAM "file = os.open('pages', os.O_RDWR | os.O_CREAT)\n"
                                      "os.write(file, b'x' * 65536)\n"
                                      "os.splice(file, 1, 65536, offset_src=0)\n"
                                      "os.ftruncate(file, 0)\n" THEN_STAY);
    check_harmless(site,
                   PIPE_PROGRAM "back = os.open('/proc/self/fd/1', os.O_RDWR | os.O_NONBLOCK)\n"
                                "for i in range(1000):\n"
                                "    try: os.read(back, os.write(back, b'x') * (i % 3))\n"
                                "    except BlockingIOError: pass\n" THEN_STAY);
}

int main(void)
{
#define SITE_TEST(name) cmocka_unit_test_setup_teardown(name, site_set_up, site_tear_down)
    const struct CMUnitTest tests[] = {
#ifdef SLUICE_FAULTS
        SITE_TEST(a_job_that_reads_its_own_pipe_stops_nobody),
        SITE_TEST(packets_are_read_to_the_last_one),
#endif
        SITE_TEST(no_use_of_its_own_pipe_stops_another_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
