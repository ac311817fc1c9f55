/* SPDX-License-Identifier: MIT */

/* What jobs reach outside their folders, as a worker asks for it. */

#include "tests/support/runner_fixture.h"

#include "common/base/fs.h"
#include "common/base/landlock.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char shared[96];
static char hidden[128];
static char later[128];
static char seen[128];
static const char *const none[] = {NULL};
static const char *const one[] = {shared, NULL};
static const char *const denied[] = {hidden, later, NULL};

static void put(const char *path, const char *text)
{
    FD_AUTO int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* A worker that asks for this takes the place of the one before. */
static void ask_for(struct site *site, const struct runner_confine *confine)
{
    site_leave(site);
    site->confine = confine;
    site_connect(site);
    site_grant(site, 60000, 1000);
}

static void make_shared(struct site *site)
{
    (void)snprintf(shared, sizeof(shared), "%s/shared", site->root);
    (void)snprintf(hidden, sizeof(hidden), "%s/hidden", shared);
    (void)snprintf(later, sizeof(later), "%s/later", shared);
    (void)snprintf(seen, sizeof(seen), "%s/seen", shared);
    assert_int_equal(mkdir(shared, 0755), 0);
    assert_int_equal(mkdir(hidden, 0755), 0);
    assert_int_equal(mkdir(seen, 0755), 0);
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/secret", hidden);
    put(path, "secret");
    (void)snprintf(path, sizeof(path), "%s/open", seen);
    put(path, "open");
}

/* $S is the shared folder. */
static int end_of(struct site *site, const char *rest)
{
    char script[512];
    (void)snprintf(script, sizeof(script), "S=%s; %s", shared, rest);
    return site_shell_end(site, script).exit_code;
}

static bool has_landlock(void)
{
    if (landlock_abi() > 0)
        return true;
    print_message("no Landlock here\n");
    return false;
}

static void what_is_denied_lies_in_what_is_open(void **state)
{
    struct site *site = *state;
    const struct runner_confine confinement = {
        .mode = RUNNER_CONFINE_AUTO, .read = one, .write = none, .deny = denied};
    make_shared(site);
    assert_int_equal(end_of(site, "cat $S/hidden/secret && cat $S/seen/open"), 0);
    ask_for(site, &confinement);
    if (!has_landlock())
        return;
    assert_int_equal(end_of(site, "cat $S/seen/open"), 0);
    assert_int_equal(end_of(site, "cat $S/hidden/secret"), 1);
    assert_int_equal(end_of(site, "ls $S/hidden"), 2);
    assert_int_equal(end_of(site, "ln -s $S/hidden/secret l; cat l"), 1);
    assert_int_equal(end_of(site, "touch $S/seen/made"), 1);
    assert_int_equal(end_of(site, "cat $S/seen/../hidden/secret"), 1);
}

static void what_comes_later_is_seen_and_what_is_denied_is_not(void **state)
{
    struct site *site = *state;
    char path[160];
    const struct runner_confine confinement = {
        .mode = RUNNER_CONFINE_AUTO, .read = none, .write = one, .deny = denied};
    make_shared(site);
    ask_for(site, &confinement);
    if (!has_landlock())
        return;
    assert_int_equal(end_of(site, "echo x >$S/seen/made"), 0);
    (void)snprintf(path, sizeof(path), "%s/new", shared);
    put(path, "new");
    assert_int_equal(end_of(site, "cat $S/new"), 0);
    assert_int_equal(mkdir(later, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/secret", later);
    put(path, "secret");
    assert_int_equal(end_of(site, "cat $S/later/secret"), 1);
    assert_int_equal(end_of(site, "cat $S/new && echo y >>$S/seen/made"), 0);
}

static void a_folder_without_anything_denied_is_open_as_a_whole(void **state)
{
    struct site *site = *state;
    const struct runner_confine confinement = {
        .mode = RUNNER_CONFINE_AUTO, .read = none, .write = one, .deny = none};
    make_shared(site);
    assert_int_equal(end_of(site, "cat ../../runner.lock"), 0);
    ask_for(site, &confinement);
    assert_int_equal(end_of(site, "mkdir $S/made && cat $S/hidden/secret"), 0);
    if (has_landlock())
        assert_int_equal(end_of(site, "cat ../../runner.lock"), 1);
}

static void a_kernel_without_landlock_is_refused_if_it_is_required(void **state)
{
    struct site *site = *state;
    const struct runner_confine able = {
        .mode = RUNNER_CONFINE_AUTO, .read = none, .write = none, .deny = none};
    struct runner_confine must = able;
    const char *argv[] = {"true", NULL};
    struct err err = {0};
    struct runner_job job;
    bool existing = false;
    must.mode = RUNNER_CONFINE_REQUIRED;
    site_kill_runner(site);
    assert_int_equal(setenv("SLUICE_FAULT", "runner.landlock=fail", 1), 0);
    site->confine = &able;
    site_connect(site);
    assert_int_equal(unsetenv("SLUICE_FAULT"), 0);
    site_grant(site, 60000, 1000);
    assert_int_equal(site_shell_end(site, "true").exit_code, 0);
    ask_for(site, &must);
    struct runner_start start = site_start(site, argv);
    assert_ok(runner_client_start(site->client, &start, &job, &existing, &err));
    assert_true(job.exited);
    assert_string_equal(job.record.start_step, "confine");
    assert_string_equal(job.record.start_error, "EOPNOTSUPP");
}

static size_t open_files(pid_t pid)
{
    char path[64];
    size_t count = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir)) /* NOLINT(concurrency-mt-unsafe): own DIR */
        count++;
    (void)closedir(dir);
    return count - 2;
}

/* Or it would start with half of what it may reach. */
static void a_shortage_of_descriptors_starts_no_job(void **state)
{
    struct site *site = *state;
    const struct runner_confine confinement = {
        .mode = RUNNER_CONFINE_AUTO, .read = none, .write = none, .deny = none};
    const char *argv[] = {"true", NULL};
    struct rlimit before;
    struct err err = {0};
    struct runner_job job;
    bool existing = false;
    if (!has_landlock() || geteuid() != 0)
        return; /* who is not root cannot count the runner's descriptors */
    ask_for(site, &confinement);
    assert_int_equal(prlimit(site->runner, RLIMIT_NOFILE, NULL, &before), 0);
    const struct rlimit few = {open_files(site->runner) + 6, before.rlim_max};
    struct runner_start start = site_start(site, argv);
    assert_int_equal(prlimit(site->runner, RLIMIT_NOFILE, &few, NULL), 0);
    assert_ok(runner_client_start(site->client, &start, &job, &existing, &err));
    assert_int_equal(prlimit(site->runner, RLIMIT_NOFILE, &before, NULL), 0);
    assert_true(job.exited);
    assert_string_equal(job.record.start_step, "confine");
    assert_string_equal(job.record.start_error, "EMFILE");
    assert_int_equal(site_shell_end(site, "ls /usr/bin >/dev/null").exit_code, 0);
}

static void a_job_has_no_capability(void **state)
{
    struct site *site = *state;
    assert_int_equal(site_shell_end(site,
                                    "grep -q '^CapPrm:.0000000000000000$' /proc/self/status && "
                                    "grep -q '^CapEff:.0000000000000000$' /proc/self/status")
                         .exit_code,
                     0);
}

int main(void)
{
#define SITE_TEST(name) cmocka_unit_test_setup_teardown(name, site_set_up, site_tear_down)
    const struct CMUnitTest tests[] = {
        SITE_TEST(what_is_denied_lies_in_what_is_open),
        SITE_TEST(what_comes_later_is_seen_and_what_is_denied_is_not),
        SITE_TEST(a_folder_without_anything_denied_is_open_as_a_whole),
        SITE_TEST(a_kernel_without_landlock_is_refused_if_it_is_required),
        SITE_TEST(a_shortage_of_descriptors_starts_no_job),
        SITE_TEST(a_job_has_no_capability),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
