/* SPDX-License-Identifier: MIT */

/* How a run starts, ends and keeps its output: a real runner, real processes. */

#include "tests/support/runner_fixture.h"

#include "common/base/clock.h"
#include "common/base/fs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAST_WORDS 200
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PEAK_KIB ((uint64_t)400 * 1024) /* most of it is the sanitizer's */
#else
#define PEAK_KIB ((uint64_t)16 * 1024)
#endif
#define MIB ((size_t)1024 * 1024)

static void exit_codes_are_kept(void **state)
{
    static const struct {
        const char *script;
        int code;
    } cases[] = {{"exit 0", 0}, {"exit 1", 1}, {"exit 42", 42}, {"exit 255", 255}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct runner_record record = site_shell_end(*state, cases[i].script);
        assert_int_equal(record.exit_code, cases[i].code);
        assert_int_equal(record.signal, 0);
        assert_int_equal(record.reason, RUNNER_NONE);
        assert_string_equal(record.start_error, "");
    }
}

static void a_death_by_signal_is_told_as_such(void **state)
{
    struct runner_record record = site_shell_end(*state, "kill -9 $$");
    assert_int_equal(record.exit_code, -1);
    assert_int_equal(record.signal, SIGKILL);
    assert_int_equal(record.reason, RUNNER_NONE);
}

static void check_not_started(struct site *site, const char *program, const char *error)
{
    struct err err = {0};
    const char *argv[] = {program, NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job job;
    bool existing = true;
    assert_ok(runner_client_start(site->client, &start, &job, &existing, &err));
    assert_true(job.exited);
    assert_false(existing);
    assert_string_equal(job.record.start_error, error);
    assert_string_equal(job.record.start_step, "exec");
    assert_int_equal(job.record.exit_code, -1);
    assert_ok(runner_client_forget(site->client, &start.job, 1, &err));
}

static void a_program_that_cannot_start_is_not_an_exit_code(void **state)
{
    check_not_started(*state, "no-such-program", "ENOENT");
    check_not_started(*state, "/no/such/program", "ENOENT");
    check_not_started(*state, "/etc/passwd", "EACCES");
    check_not_started(*state, "/tmp", "EACCES");
    check_not_started(*state, "", "ENOENT");
    struct runner_record record = site_shell_end(*state, "exit 127");
    assert_int_equal(record.exit_code, 127);
    assert_string_equal(record.start_error, "");
}

static void an_output_that_cannot_be_kept_is_told(void **state)
{
    struct site *site = *state;
    const char *argv[] = {"sh", "-c", "echo lost; exit 3", NULL};
    struct runner_start start = site_start(site, argv);
    start.output_root = "/no/such/root";
    struct runner_job job = site_run(site, &start);
    struct runner_record record = site_end(site, &job.job);
    assert_int_equal(record.exit_code, 3);
    assert_string_equal(record.out.error, "ENOENT");
    assert_int_equal(record.out.total_bytes, 5);
    assert_int_equal(record.out.kept_bytes, 0);
    assert_true(runner_record_output_failed(&record));
}

static bool is_there(struct site *site, const struct runner_start *start)
{
    struct stat status;
    return fstatat(site->archive_dir, start->output_dir, &status, 0) == 0;
}

static void a_first_run_that_writes_nothing_has_no_files(void **state)
{
    struct site *site = *state;
    const char *argv[] = {"true", NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job job = site_run(site, &start);
    struct runner_record record = site_end(site, &job.job);
    assert_int_equal(record.out.total_bytes, 0);
    assert_string_equal(record.out.error, "");
    assert_false(is_there(site, &start));
    start.fence = 2; /* a later one: its files are not those of the first */
    job = site_run(site, &start);
    (void)site_end(site, &job.job);
    assert_true(is_there(site, &start));
}

static void check_text(struct site *site, const char *script, const char *out, const char *error)
{
    struct runner_record record = site_shell_end(site, script);
    BUF_AUTO struct buf bytes = BUF_INIT(MIB);
    site_read_output(site, &record, "stdout", &bytes);
    assert_string_equal(buf_text(&bytes), out);
    buf_clear(&bytes);
    site_read_output(site, &record, "stderr", &bytes);
    assert_string_equal(buf_text(&bytes), error);
}

static void the_streams_are_kept_apart(void **state)
{
    check_text(*state, "echo out; echo err >&2; printf more", "out\nmore", "err\n");
}

static void the_process_has_a_clean_beginning(void **state)
{
    struct site *site = *state;
    check_text(site, "umask; exec ls -1 /proc/self/fd", "0077\n0\n1\n2\n3\n", ""); /* 3 is ls's */
    check_text(site,
               "readlink /proc/self/fd/0; grep -E '^(SigBlk|SigIgn|NoNewPrivs)' "
               "/proc/self/status",
               "/dev/null\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
               "NoNewPrivs:\t1\n",
               "");
    check_text(site, "test $(ps -o sid= -p $$) -eq $$ && echo own session", "own session\n", "");
    const char *argv[] = {"env", NULL};
    struct runner_start start = site_start(site, argv);
    const char *env[] = {"PATH=/bin", "ODD=a b\nc", NULL};
    start.env = env;
    struct runner_job job = site_run(site, &start);
    struct runner_record record = site_end(site, &job.job);
    BUF_AUTO struct buf bytes = BUF_INIT(MIB);
    site_read_output(site, &record, "stdout", &bytes);
    assert_string_equal(buf_text(&bytes), "PATH=/bin\nODD=a b\nc\n");
}

static void the_working_directory_is_the_one_asked_for(void **state)
{
    struct site *site = *state;
    const char *argv[] = {"pwd", NULL};
    struct runner_start start = site_start(site, argv);
    char expected[300];
    start.working_dir = "somewhere/else";
    struct runner_job job = site_run(site, &start);
    struct runner_record record = site_end(site, &job.job);
    BUF_AUTO struct buf bytes = BUF_INIT(MIB);
    (void)snprintf(expected, sizeof(expected), "%s/somewhere/else\n", site->work);
    site_read_output(site, &record, "stdout", &bytes);
    assert_string_equal(buf_text(&bytes), expected);
}

static void a_script_without_its_first_line_runs_in_the_shell(void **state)
{
    struct site *site = *state;
    const char *argv[] = {"./s", "runs", NULL};
    const char *make[] = {"sh", "-c", "printf 'echo it $1\\n' > s; chmod +x s", NULL};
    struct runner_start maker = site_start(site, make);
    maker.working_dir = "shared";
    struct runner_job job = site_run(site, &maker);
    (void)site_end(site, &job.job);
    struct runner_start start = site_start(site, argv);
    start.working_dir = "shared";
    job = site_run(site, &start);
    struct runner_record record = site_end(site, &job.job);
    BUF_AUTO struct buf bytes = BUF_INIT(MIB);
    site_read_output(site, &record, "stdout", &bytes);
    assert_string_equal(buf_text(&bytes), "it runs\n");
}

static void last_words_are_not_lost(void **state)
{
    struct err err = {0};
    struct site *site = *state;
    for (int i = 0; i < LAST_WORDS; i++) {
        char script[64];
        char expected[32];
        (void)snprintf(script, sizeof(script), "printf 'word %d'; kill -9 $$", i);
        (void)snprintf(expected, sizeof(expected), "word %d", i);
        struct runner_record record = site_shell_end(site, script);
        BUF_AUTO struct buf bytes = BUF_INIT(MIB);
        site_read_output(site, &record, "stdout", &bytes);
        assert_string_equal(buf_text(&bytes), expected);
        assert_ok(runner_client_forget(site->client, &record.job, 1, &err));
        site->end_count = 0;
    }
}

static void output_below_the_cap_is_equal_byte_for_byte(void **state)
{
    struct site *site = *state;
    const char *argv[] = {"sh", "-c", "head -c 67108864 /dev/urandom | tee copy", NULL};
    struct runner_start start = site_start(site, argv);
    start.output_max_bytes = 64 * MIB;
    struct runner_job job = site_run(site, &start);
    struct runner_record record = site_end(site, &job.job);
    assert_int_equal(record.out.total_bytes, 64 * MIB);
    assert_int_equal(record.out.kept_bytes, 64 * MIB);
    assert_false(record.out.truncated);
    char script[600];
    char id[UUID_TEXT_SIZE];
    char dir[RUNNER_DIR_SIZE];
    (void)snprintf(script, sizeof(script), "cmp %s/tenant/%s/1/stdout %s/%s/copy", site->archive,
                   uuid_text(&job.job, id), site->work, runner_job_dir(&job.job, 1, dir));
    record = site_shell_end(site, script);
    assert_int_equal(record.exit_code, 0);
}

static uint64_t peak_kib(pid_t pid)
{
    char path[64];
    uint64_t peak = 0;
    struct err err = {0};
    BUF_AUTO struct buf bytes = BUF_INIT(64UL * 1024);
    FD_AUTO int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(path, sizeof(path), "%d/status", (int)pid);
    assert_ok(fs_read(proc, path, &bytes, &err));
    const char *line = strstr(buf_text(&bytes), "VmHWM:");
    assert_non_null(line);
    line += strcspn(line, "0123456789");
    assert_true(sv_u64((struct sv){line, strspn(line, "0123456789")}, UINT32_MAX, &peak));
    return peak;
}

static void a_flood_is_cut_and_counted(void **state)
{
    struct site *site = *state;
    struct runner_record record =
        site_shell_end(site, "echo first; yes | head -c 200000000; echo last");
    BUF_AUTO struct buf bytes = BUF_INIT(2 * MIB);
    const uint64_t total = 6 + 200000000 + 5;
    assert_true(peak_kib(site->runner) < PEAK_KIB);
    char marker[64];
    assert_int_equal(record.out.total_bytes, total);
    assert_int_equal(record.out.kept_bytes, MIB);
    assert_true(record.out.truncated);
    assert_false(record.err.truncated);
    site_read_output(site, &record, "stdout", &bytes);
    int length = snprintf(marker, sizeof(marker), "\n[sluice: %llu bytes left out]\n",
                          (unsigned long long)(total - MIB));
    assert_int_equal(bytes.len, MIB + (size_t)length);
    assert_memory_equal(bytes.ptr, "first\ny\n", 8);
    assert_memory_equal(bytes.ptr + MIB / 2, marker, (size_t)length);
    assert_memory_equal(bytes.ptr + bytes.len - 7, "y\nlast\n", 7);
}

#define THREADS 8
#define JOBS_EACH 12

static void *run_jobs(void *arg)
{
    struct site *site = arg;
    static const char *const argv[] = {"sh", "-c", "echo x; (setsid sleep 9 &); exit 7", NULL};
    for (int i = 0; i < JOBS_EACH; i++) {
        char id[UUID_TEXT_SIZE];
        char entry[64];
        char dir[64];
        const char *env[] = {"PATH=/bin", "SLUICE_FENCE=1", entry, NULL};
        struct err err = {0};
        struct runner_job job;
        bool existing = true;
        struct runner_start start = {.job = uuid_v7(),
                                     .fence = 1,
                                     .argv = argv,
                                     .env = env,
                                     .output_root = site->archive,
                                     .output_dir = dir,
                                     .output_max_bytes = 5000};
        (void)snprintf(dir, sizeof(dir), "many/%s", uuid_text(&start.job, id));
        (void)snprintf(entry, sizeof(entry), "SLUICE_JOB_ID=%s", id);
        if (runner_client_start(site->client, &start, &job, &existing, &err) != ERR_OK || existing)
            return NULL;
        struct runner_record record = site_end(site, &start.job);
        if (record.exit_code != 7 || record.leftovers != 0 ||
            runner_client_forget(site->client, &start.job, 1, &err) != ERR_OK)
            return NULL;
    }
    return site;
}

static void many_threads_run_many_jobs(void **state)
{
    struct site *site = *state;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_jobs, site), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, site);
    }
    assert_int_equal(site_job_count(site), 0);
}

static void what_was_used_is_told(void **state)
{
    struct runner_record record =
        site_shell_end(*state, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 0.1");
    assert_true(record.wall_ms >= 100 && record.wall_ms < WAIT_MS);
    assert_int_equal(record.run_us / 1000, record.wall_ms);
    assert_true(record.ended_boot_us > 0 && record.ended_boot_us / 1000 <= clock_boot_ms());
    assert_true(record.user_ms + record.system_ms > 0);
    assert_true(record.max_rss_bytes > 100000);
    assert_true(record.ended_us >= record.started_us + 100000);
}

static struct runner_record run_limited(struct site *site, const char *script,
                                        struct runner_limits limits)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct runner_start start = site_start(site, argv);
    start.limits = limits;
    struct runner_job job = site_run(site, &start);
    return site_end(site, &job.job);
}

static void resource_limits_hold(void **state)
{
    struct site *site = *state;
    struct runner_limits limits = {.cpu_s = 1};
    struct runner_record record = run_limited(site, "while :; do :; done", limits);
    assert_int_equal(record.reason, RUNNER_CPU_LIMIT);
    limits = (struct runner_limits){.file_bytes = 1000};
    record = run_limited(site, "exec head -c 5000 /dev/zero > f", limits);
    assert_int_equal(record.reason, RUNNER_FILE_LIMIT);
    limits = (struct runner_limits){.memory_bytes = 64 * MIB};
    record = run_limited(site, "x=$(head -c 200000000 /dev/zero | tr '\\0' a)", limits);
    assert_true(record.exit_code > 0 || record.signal > 0);
    limits = (struct runner_limits){.open_files = 20, .processes = 999};
    record = run_limited(site,
                         "test $(ulimit -n) = 20 && grep -q 'Max processes *999 *999 ' "
                         "/proc/self/limits",
                         limits);
    assert_int_equal(record.exit_code, 0);
}

#define TRAPPED_MS 1000 /* by then the shell has come as far as its trap */

static void the_wall_limit_asks_first_and_then_kills(void **state)
{
    struct site *site = *state;
    struct runner_limits limits = {.wall_ms = TRAPPED_MS, .grace_ms = 2 * WAIT_MS};
    struct runner_record record =
        run_limited(site, "trap 'echo bye; exit 3' TERM; while :; do sleep 0.01; done", limits);
    assert_int_equal(record.reason, RUNNER_WALL_LIMIT);
    assert_int_equal(record.exit_code, 3);
    limits = (struct runner_limits){.wall_ms = TRAPPED_MS, .grace_ms = 200};
    record = run_limited(site, "trap '' TERM; while :; do sleep 1; done", limits);
    assert_int_equal(record.reason, RUNNER_WALL_LIMIT);
    assert_int_equal(record.signal, SIGKILL);
    assert_in_range(record.wall_ms, TRAPPED_MS + 200, WAIT_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define SITE_TEST(name) cmocka_unit_test_setup_teardown(name, site_set_up, site_tear_down)
        SITE_TEST(exit_codes_are_kept),
        SITE_TEST(a_death_by_signal_is_told_as_such),
        SITE_TEST(a_program_that_cannot_start_is_not_an_exit_code),
        SITE_TEST(an_output_that_cannot_be_kept_is_told),
        SITE_TEST(a_first_run_that_writes_nothing_has_no_files),
        SITE_TEST(the_streams_are_kept_apart),
        SITE_TEST(the_process_has_a_clean_beginning),
        SITE_TEST(the_working_directory_is_the_one_asked_for),
        SITE_TEST(a_script_without_its_first_line_runs_in_the_shell),
        SITE_TEST(last_words_are_not_lost),
        SITE_TEST(output_below_the_cap_is_equal_byte_for_byte),
        SITE_TEST(a_flood_is_cut_and_counted),
        SITE_TEST(many_threads_run_many_jobs),
        SITE_TEST(what_was_used_is_told),
        SITE_TEST(resource_limits_hold),
        SITE_TEST(the_wall_limit_asks_first_and_then_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
