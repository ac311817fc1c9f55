/* SPDX-License-Identifier: MIT */

/* Who owns a run: kills, fences, leases, and the socket that all of it goes through. */

#include "tests/support/runner_fixture.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "worker/runner/protocol.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define STUBBORN "trap '' TERM HUP INT; "
#define FAR_MS 60000

/* ---- ending ---- */

static void a_kill_leaves_no_process(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    static const char *const files[] = {"main", "child", "session", "daemon", "bare"};
    pid_t pids[ARRAY_LEN(files)];
    /* A child, one in a session of its own, a daemon (its parent is gone), and a daemon that has
     * nothing of its origin: no session, no environment, no pipe. */
    struct runner_job job = site_shell(
        site, STUBBORN
        "(" STUBBORN "sh -c 'echo $PPID' > child; while :; do sleep 1; done) & "
        "setsid sh -c '" STUBBORN "echo $$ > session; while :; do sleep 1; done' & "
        "(setsid sh -c '" STUBBORN "echo $$ > daemon; while :; do sleep 1; done' & ) ; "
        "(env -i setsid sh -c 'echo $$ > bare; exec sleep 1000 < /dev/null > /dev/null 2>&1' & ) ;"
        "echo $$ > main; while :; do sleep 1; done");
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        pids[i] = site_wait_pid(site, &job, files[i]);
        assert_true(site_alive(pids[i]));
    }
    assert_int_equal(pids[0], job.pid);
    assert_ok(runner_client_kill(site->client, &job.job, 1, 100, "cancelled", &err));
    struct runner_record record = site_end(site, &job.job);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        assert_false(site_alive(pids[i]));
    assert_int_equal(record.signal, SIGKILL);
    assert_int_equal(record.reason, RUNNER_KILLED);
    assert_string_equal(record.note, "cancelled");
    assert_int_equal(record.leftovers, 0);
    assert_true(record.wall_ms < WAIT_MS);
}

static void what_a_job_leaves_behind_ends_with_it(void **state)
{
    struct site *site = *state;
    struct runner_job job =
        site_shell(site, "(setsid sh -c 'echo $$ > daemon; exec sleep 1000' & ); "
                         "sleep 1000 & while ! test -s daemon; do :; done; exit 5");
    pid_t daemon = site_wait_pid(site, &job, "daemon");
    struct runner_record record = site_end(site, &job.job);
    assert_int_equal(record.exit_code, 5);
    assert_int_equal(record.reason, RUNNER_NONE);
    assert_false(site_alive(daemon));
}

static void one_job_does_not_end_the_processes_of_another(void **state)
{
    struct site *site = *state;
    struct runner_job first =
        site_shell(site, "(setsid sh -c 'echo $$ > daemon; exec sleep 1000' & ); exec sleep 1000");
    pid_t daemon = site_wait_pid(site, &first, "daemon");
    struct runner_record second = site_shell_end(site, "(setsid sleep 1000 &) ; sleep 0.1");
    assert_int_equal(second.exit_code, 0);
    assert_true(site_alive(daemon));
    assert_true(site_alive(first.pid));
    struct err err = {0};
    assert_ok(runner_client_kill(site->client, &first.job, 1, 0, "", &err));
    (void)site_end(site, &first.job);
    assert_false(site_alive(daemon));
}

static void a_fork_bomb_is_ended(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    struct runner_job job = site_shell(
        site, "for i in 1 2 3 4 5; do (n=0; while :; do (setsid sleep 5 &) ; n=$((n+1)); "
              "test $n = 10 && echo $$ > grown$i; sleep 0.01; done) & done; wait");
    (void)site_wait_pid(site, &job, "grown1");
    (void)site_wait_pid(site, &job, "grown5");
    assert_ok(runner_client_kill(site->client, &job.job, 1, 0, "", &err));
    struct runner_record record = site_end(site, &job.job);
    assert_int_equal(record.leftovers, 0);
    assert_int_equal(site_job_count(site), 1);
}

static void a_stopped_job_hears_its_term(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    struct runner_job job =
        site_shell(site, "trap 'exit 9' TERM; echo $$ > main; while :; do sleep 0.01; done");
    (void)site_wait_pid(site, &job, "main");
    assert_ok(runner_client_signal(site->client, &job.job, 1, SIGSTOP, &err));
    assert_ok(runner_client_kill(site->client, &job.job, 1, 5000, "", &err));
    assert_int_equal(site_end(site, &job.job).exit_code, 9);
}

static void a_signal_reaches_the_group(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    struct runner_job job =
        site_shell(site, "trap 'exit 7' USR1; echo $$ > main; while :; do sleep 0.01; done");
    (void)site_wait_pid(site, &job, "main");
    assert_ok(runner_client_signal(site->client, &job.job, 1, SIGUSR1, &err));
    (void)site_end(site, &job.job);
    assert_code(runner_client_signal(site->client, &job.job, 1, SIGUSR1, &err), ERR_STATE);
}

/* ---- fences ---- */

static void a_wrong_fence_is_refused(void **state)
{
    struct site *site = *state;
    struct runner_job job = site_shell(site, "exec sleep 1000");
    struct runner_job adopted;
    struct uuid other = uuid_v7();
    struct err err = {0};
    assert_code(runner_client_kill(site->client, &job.job, 2, 0, "", &err), ERR_FENCED);
    err_clear(&err);
    assert_code(runner_client_signal(site->client, &job.job, 2, SIGTERM, &err), ERR_FENCED);
    err_clear(&err);
    assert_code(runner_client_forget(site->client, &job.job, 2, &err), ERR_FENCED);
    err_clear(&err);
    assert_code(runner_client_adopt(site->client, &job.job, 2, 3, &adopted, &err), ERR_FENCED);
    err_clear(&err);
    assert_code(runner_client_adopt(site->client, &job.job, 1, 1, &adopted, &err), ERR_INVALID);
    err_clear(&err);
    assert_code(runner_client_forget(site->client, &job.job, 1, &err), ERR_STATE);
    err_clear(&err);
    assert_code(runner_client_kill(site->client, &other, 1, 0, "", &err), ERR_NOT_FOUND);
    assert_true(site_alive(job.pid));
}

static void adopting_changes_the_fence_and_keeps_the_process(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    struct runner_job adopted;
    struct runner_job job = site_shell(site, "exec sleep 1000");
    assert_ok(runner_client_adopt(site->client, &job.job, 1, 4, &adopted, &err));
    assert_int_equal(adopted.fence, 4);
    assert_int_equal(adopted.run, 1);
    assert_int_equal(adopted.pid, job.pid);
    assert_ok(runner_client_adopt(site->client, &job.job, 1, 4, &adopted, &err)); /* once more */
    assert_int_equal(adopted.fence, 4);
    assert_code(runner_client_kill(site->client, &job.job, 1, 0, "", &err), ERR_FENCED);
    err_clear(&err);
    assert_ok(runner_client_kill(site->client, &job.job, 4, 0, "", &err));
    struct runner_record record = site_end(site, &job.job);
    assert_int_equal(record.fence, 4);
    assert_int_equal(record.run, 1);
    assert_ok(runner_client_adopt(site->client, &job.job, 4, 5, &adopted, &err));
    assert_true(adopted.exited);
    assert_int_equal(adopted.record.fence, 5);
    assert_ok(runner_client_forget(site->client, &job.job, 5, &err));
    assert_int_equal(site_job_count(site), 0);
}

static void two_starts_of_one_job_give_one_process(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    const char *argv[] = {"sh", "-c", "echo $$ >> starts; exec sleep 1000", NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job first = site_run(site, &start);
    struct runner_job second;
    bool existing = false;
    start.fence = 2;
    assert_ok(runner_client_start(site->client, &start, &second, &existing, &err));
    assert_true(existing);
    assert_int_equal(second.pid, first.pid);
    assert_int_equal(second.fence, 1);
    assert_int_equal(site_wait_pid(site, &first, "starts"), first.pid);
}

static void an_end_is_shown_again_until_it_is_forgotten(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    const char *argv[] = {"false", NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job job = site_run(site, &start);
    bool existing = false;
    (void)site_end(site, &job.job);
    assert_ok(runner_client_start(site->client, &start, &job, &existing, &err));
    assert_true(existing && job.exited);
    assert_int_equal(job.record.exit_code, 1);
    assert_ok(runner_client_forget(site->client, &job.job, 1, &err));
    (void)site_run(site, &start);
}

static void a_run_is_forgotten_without_an_answer(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    const char *argv[] = {"false", NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job job = site_run(site, &start);
    (void)site_end(site, &job.job);
    assert_ok(runner_client_forget_soon(site->client, &job.job, 9, &err));
    assert_int_equal(site_job_count(site), 1);
    assert_ok(runner_client_forget_soon(site->client, &job.job, 1, &err));
    assert_int_equal(site_job_count(site), 0);
}

static void a_later_owner_starts_beside_the_end_of_an_earlier_run(void **state)
{
    struct site *site = *state;
    const char *argv[] = {"true", NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job job = site_run(site, &start);
    (void)site_end(site, &job.job);
    start.fence = 2;
    job = site_run(site, &start);
    assert_int_equal(job.run, 2);
}

/* ---- leases ---- */

static void nothing_starts_without_a_grant(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    const char *argv[] = {"true", NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job job;
    bool existing = false;
    site_grant(site, 0, 0);
    assert_code(runner_client_start(site->client, &start, &job, &existing, &err), ERR_STATE);
    site_grant(site, FAR_MS, 0);
    (void)site_run(site, &start);
}

static void the_end_of_the_grant_ends_the_jobs_and_the_runner(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    struct runner_job polite =
        site_shell(site, "trap 'exit 3' TERM; echo $$ > main; while :; do sleep 0.01; done");
    struct runner_job rude =
        site_shell(site, STUBBORN "echo $$ > main; while :; do sleep 0.01; done");
    (void)site_wait_pid(site, &polite, "main");
    (void)site_wait_pid(site, &rude, "main");
    int64_t begin = clock_mono_ms();
    site_grant(site, 500, 250);
    struct runner_record record = site_end(site, &polite.job);
    assert_in_range(clock_mono_ms() - begin, 240, WAIT_MS);
    assert_int_equal(record.exit_code, 3);
    assert_int_equal(record.reason, RUNNER_LEASE_EXPIRED);
    record = site_end(site, &rude.job);
    assert_in_range(clock_mono_ms() - begin, 490, WAIT_MS);
    assert_int_equal(record.signal, SIGKILL);
    assert_int_equal(record.reason, RUNNER_LEASE_EXPIRED);
    assert_false(site_alive(rude.pid));
    assert_int_equal(site_job_count(site), 2); /* a worker is connected: it stays */
    site_leave(site);
    site_wait_gone(site->runner);
    site_connect(site); /* another one, which knows the ends */
    struct runner_job *jobs = NULL;
    size_t count = 0;
    assert_ok(runner_client_list(site->client, &jobs, &count, &err));
    assert_int_equal(count, 2);
    assert_int_equal(jobs[0].record.reason, RUNNER_LEASE_EXPIRED);
    free(jobs);
}

#define MANY 100

static void the_end_of_the_grant_ends_many_jobs_in_time(void **state)
{
    struct site *site = *state;
    struct runner_job jobs[MANY];
    pid_t daemons[MANY];
    for (size_t i = 0; i < MANY; i++)
        jobs[i] =
            site_shell(site, "(setsid sh -c 'echo $$ > daemon; exec sleep 1000' & ); " STUBBORN
                             "while :; do sleep 1; done");
    for (size_t i = 0; i < MANY; i++)
        daemons[i] = site_wait_pid(site, &jobs[i], "daemon");
    site_grant(site, 400, 200);
    int64_t end = clock_mono_ms() + 400;
    for (size_t i = 0; i < MANY; i++) {
        site_wait_gone(jobs[i].pid);
        site_wait_gone(daemons[i]);
    }
    assert_in_range(clock_mono_ms() - end, 0, 10000);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(site_end(site, &jobs[i].job).reason, RUNNER_LEASE_EXPIRED);
}

static void a_worker_that_vanished_is_outlived_until_the_grant_ends(void **state)
{
    struct site *site = *state;
    struct runner_job job = site_shell(site, "exec sleep 1000");
    int64_t begin = clock_mono_ms();
    site_grant(site, 400, 100);
    site_leave(site);
    site_wait_gone(job.pid);
    assert_in_range(clock_mono_ms() - begin, 290, WAIT_MS);
    site_wait_gone(site->runner);
}

static void a_ping_prolongs_the_grant(void **state)
{
    struct site *site = *state;
    struct runner_job job = site_shell(site, "exec sleep 1000");
    for (int i = 0; i < 20; i++) {
        site_grant(site, 1500, 50);
        (void)usleep(100000);
    }
    assert_true(site_alive(job.pid));
    assert_false(site_only_job(site).exited);
}

/* ---- the socket ---- */

static int connect_raw(const struct site *site)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/runner.sock",
                   site->work_dir);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* 'S' sleeps, 'R' runs. */
static char process_state(pid_t pid)
{
    char path[40];
    char text[200] = "";
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FD_AUTO int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    const char *end = strrchr(text, ')');
    return end ? end[2] : 0;
}

static int count_descriptors(pid_t pid)
{
    char path[40];
    int count = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder)) /* NOLINT(concurrency-mt-unsafe) */
        count++;
    (void)closedir(folder);
    return count - 2;
}

static void a_runner_without_free_descriptors_does_not_spin(void **state)
{
    struct site *site = *state;
    char byte = 0;
    struct rlimit before;
    assert_int_equal(prlimit(site->runner, RLIMIT_NOFILE, NULL, &before), 0);
    const struct rlimit none = {.rlim_cur = (rlim_t)count_descriptors(site->runner),
                                .rlim_max = before.rlim_max};
    assert_int_equal(prlimit(site->runner, RLIMIT_NOFILE, &none, NULL), 0);
    FD_AUTO int fd = connect_raw(site);
    int64_t deadline_ms = clock_mono_ms() + WAIT_MS;
    for (int asleep = 0; asleep < 100;) {
        asleep = process_state(site->runner) == 'S' ? asleep + 1 : 0;
        assert_true(clock_mono_ms() < deadline_ms);
        (void)usleep(1000); /* between two looks; a loop that spins is never asleep */
    }
    assert_int_equal(prlimit(site->runner, RLIMIT_NOFILE, &before, NULL), 0);
    assert_true(send(fd, "\xff", 1, MSG_NOSIGNAL) > 0); /* no message: it answers by closing */
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

static void nonsense_on_the_socket_hurts_nobody(void **state)
{
    static const char *const nonsense[] = {"GET / HTTP/1.0\r\n\r\n", "\0\0\0\1{", "", "\xff"};
    struct site *site = *state;
    struct runner_job job = site_shell(site, "exec sleep 1000");
    for (size_t i = 0; i < ARRAY_LEN(nonsense); i++) {
        char byte = 0;
        FD_AUTO int fd = connect_raw(site);
        assert_true(send(fd, nonsense[i], 1 + strlen(nonsense[i]), MSG_NOSIGNAL) > 0);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        assert_int_equal(recv(fd, &byte, 1, 0), 0);
    }
    assert_int_equal(site_only_job(site).pid, job.pid);
}

/* Sends it in its frame; the runner's answer, or that it hung up (an empty text). */
static void greet_raw(struct site *site, const char *hello, struct buf *ret_answer)
{
    FD_AUTO int fd = connect_raw(site);
    size_t size = strlen(hello);
    const unsigned char head[] = {0, 0, (unsigned char)(size >> 8), (unsigned char)size};
    char bytes[4096];
    assert_int_equal(send(fd, head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
    assert_int_equal(send(fd, hello, size, MSG_NOSIGNAL), size);
    for (ssize_t got = 1; got > 0;) {
        got = recv(fd, bytes, sizeof(bytes), 0);
        if (got > 0)
            assert_true(buf_add(ret_answer, bytes, (size_t)got));
        if (got > 0 && memmem(bytes, (size_t)got, "\"pid\"", 5))
            return; /* it is welcome, and the runner goes on listening to it */
    }
}

static void who_does_not_know_the_secret_is_no_worker(void **state)
{
    static const char *const hellos[] = {
        "{\"op\":\"hello\",\"id\":1,\"version\":1,\"worker\":\"w\"}",
        "{\"op\":\"hello\",\"id\":1,\"version\":2,\"worker\":\"w\"}",
        "{\"op\":\"hello\",\"id\":1,\"version\":2,\"worker\":\"w\",\"secret\":\"\"}",
        ("{\"op\":\"hello\",\"id\":1,\"version\":2,\"worker\":\"w\",\"secret\":"
         "\"0000000000000000000000000000000000000000000000000000000000000000\"}"),
    };
    struct site *site = *state;
    struct runner_job job = site_shell(site, "exec sleep 1000");
    for (size_t i = 0; i < ARRAY_LEN(hellos); i++) {
        BUF_AUTO struct buf answer = BUF_INIT(65536);
        greet_raw(site, hellos[i], &answer);
        assert_non_null(memmem(answer.ptr, answer.len, "\"error\"", 7));
    }
    assert_false(site->lost);
    assert_int_equal(site_only_job(site).pid, job.pid);
}

static void who_knows_the_secret_is_the_worker(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    struct stat status;
    BUF_AUTO struct buf secret = BUF_INIT(128);
    BUF_AUTO struct buf hello = BUF_INIT(1024);
    BUF_AUTO struct buf answer = BUF_INIT(65536);
    assert_int_equal(fstatat(site->work_dir, "runner.secret", &status, 0), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_ok(fs_read(site->work_dir, "runner.secret", &secret, &err));
    assert_int_equal(secret.len, 64);
    buf_addf(&hello, "{\"op\":\"hello\",\"id\":1,\"version\":2,\"worker\":\"w\",\"secret\":\"%s\"}",
             buf_text(&secret));
    greet_raw(site, buf_text(&hello), &answer);
    assert_non_null(memmem(answer.ptr, answer.len, "\"pid\"", 5));
    site_wait_lost(site);
    site_leave(site);
    site_connect(site);
}

/* A job may know the secret of a runner (its folder may be open to it): it is refused for what it
 * is. */
static void a_job_is_no_worker(void **state)
{
    struct site *site = *state;
    struct runner_job job = site_shell(site, "exec /usr/bin/python3 -c 'import os, socket\n"
                                             "os.chdir(\"../..\")\n"
                                             "link = socket.socket(socket.AF_UNIX)\n"
                                             "link.connect(\"runner.sock\")\n"
                                             "ended = link.recv(1) == b\"\"\n"
                                             "os._exit(7 if ended else 1)'");
    assert_int_equal(site_end(site, &job.job).exit_code, 7);
    assert_false(site->lost);
}

static void the_lock_file_names_the_runner(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    char pid[16];
    BUF_AUTO struct buf bytes = BUF_INIT(64);
    (void)snprintf(pid, sizeof(pid), "%d\n", (int)site->runner);
    assert_ok(fs_read(site->work_dir, "runner.lock", &bytes, &err));
    assert_string_equal(buf_text(&bytes), pid);
}

static void workers_may_come_and_go_quickly(void **state)
{
    struct site *site = *state;
    for (int i = 0; i < 40; i++) {
        runner_client_close(site->client, true);
        site_connect(site);
    }
    site_grant(site, FAR_MS, 0);
    assert_int_equal(site_shell_end(site, "exit 3").exit_code, 3);
}

static void a_runner_that_hangs_is_told_in_time(void **state)
{
    struct site *site = *state;
    const struct runner_callbacks callbacks = {0};
    const struct runner_client_config cfg = {.work_dir = site->work,
                                             .worker_name = "test",
                                             .runner_path = "/no/such/runner",
                                             .timeout_ms = 200};
    struct err err = {0};
    struct runner_client *client = NULL;
    assert_int_equal(kill(site->runner, SIGSTOP), 0);
    assert_code(runner_client_open(&cfg, &callbacks, &client, &err), ERR_TIMEOUT);
    assert_int_equal(kill(site->runner, SIGCONT), 0);
}

static void a_ping_that_was_delayed_grants_nothing_more(void **state)
{
    struct site *site = *state;
    struct runner_job job = site_shell(site, "exec sleep 1000");
    struct err err = {0};
    int64_t until = clock_boot_ms() + 100; /* what is left of a longer one that was on its way */
    assert_ok(runner_client_ping(site->client, until, 0, &err));
    struct runner_record record = site_end(site, &job.job);
    assert_in_range(clock_boot_ms() - until, 0, 1400);
    assert_int_equal(record.reason, RUNNER_LEASE_EXPIRED);
}

static void the_socket_is_for_its_owner_only(void **state)
{
    struct site *site = *state;
    struct stat status;
    assert_int_equal(fstatat(site->work_dir, "runner.sock", &status, 0), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void a_request_that_is_too_large_is_refused_here(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    static char word[RUNNER_REQUEST_MAX];
    memset(word, 'a', sizeof(word) - 1);
    const char *argv[] = {"true", word, NULL};
    struct runner_start start = site_start(site, argv);
    struct runner_job job;
    bool existing = false;
    assert_code(runner_client_start(site->client, &start, &job, &existing, &err), ERR_TOO_LARGE);
    word[120000] = 0; /* as much as one argument may have; start has its address */
    (void)site_run(site, &start);
}

static void a_runner_that_cannot_be_started_is_told_at_once(void **state)
{
    struct site *site = *state;
    struct err err = {0};
    const struct runner_callbacks callbacks = {0};
    struct runner_client *client = NULL;
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/empty", site->root);
    assert_int_equal(mkdir(path, 0700), 0);
    const struct runner_client_config cfg = {
        .work_dir = path, .worker_name = "t", .runner_path = "/no/such/runner"};
    assert_code(runner_client_open(&cfg, &callbacks, &client, &err), ERR_CONFIG);
    assert_null(client);
}

int main(void)
{
#define SITE_TEST(name) cmocka_unit_test_setup_teardown(name, site_set_up, site_tear_down)
    const struct CMUnitTest tests[] = {
        SITE_TEST(a_kill_leaves_no_process),
        SITE_TEST(what_a_job_leaves_behind_ends_with_it),
        SITE_TEST(one_job_does_not_end_the_processes_of_another),
        SITE_TEST(a_fork_bomb_is_ended),
        SITE_TEST(a_stopped_job_hears_its_term),
        SITE_TEST(a_signal_reaches_the_group),
        SITE_TEST(a_wrong_fence_is_refused),
        SITE_TEST(adopting_changes_the_fence_and_keeps_the_process),
        SITE_TEST(two_starts_of_one_job_give_one_process),
        SITE_TEST(an_end_is_shown_again_until_it_is_forgotten),
        SITE_TEST(a_run_is_forgotten_without_an_answer),
        SITE_TEST(a_later_owner_starts_beside_the_end_of_an_earlier_run),
        SITE_TEST(nothing_starts_without_a_grant),
        SITE_TEST(the_end_of_the_grant_ends_the_jobs_and_the_runner),
        SITE_TEST(the_end_of_the_grant_ends_many_jobs_in_time),
        SITE_TEST(a_worker_that_vanished_is_outlived_until_the_grant_ends),
        SITE_TEST(a_ping_prolongs_the_grant),
        SITE_TEST(a_runner_without_free_descriptors_does_not_spin),
        SITE_TEST(nonsense_on_the_socket_hurts_nobody),
        SITE_TEST(who_does_not_know_the_secret_is_no_worker),
        SITE_TEST(who_knows_the_secret_is_the_worker),
        SITE_TEST(a_job_is_no_worker),
        SITE_TEST(the_lock_file_names_the_runner),
        SITE_TEST(workers_may_come_and_go_quickly),
        SITE_TEST(a_runner_that_hangs_is_told_in_time),
        SITE_TEST(a_ping_that_was_delayed_grants_nothing_more),
        SITE_TEST(the_socket_is_for_its_owner_only),
        SITE_TEST(a_request_that_is_too_large_is_refused_here),
        SITE_TEST(a_runner_that_cannot_be_started_is_told_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
