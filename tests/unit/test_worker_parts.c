/* SPDX-License-Identifier: MIT */
#include "common/base/fs.h"
#include "tests/support/test.h"
#include "worker/archive.h"
#include "worker/environment.h"
#include "worker/fetch.h"
#include "worker/glob.h"
#include "worker/heart.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- patterns ------------------------------------------------------------------------------- */

static void patterns_match_as_the_table_says(void **unused)
{
    (void)unused;
    static const struct {
        const char *pattern;
        const char *path;
        bool matches;
    } rows[] = {
        {"a", "a", true},
        {"a", "b", false},
        {"*.txt", "x.txt", true},
        {"*.txt", "d/x.txt", false},
        {"**/*.txt", "d/x.txt", true},
        {"**/*.txt", "x.txt", true},
        {"**/*.txt", "a/b/c.txt", true},
        {"**/b", "a/xb", false},
        {"a/**/b", "a/b", true},
        {"a/**/b", "a/x/y/b", true},
        {"a**/b", "ab", false},
        {"a**/b", "axy/b", true},
        {"**a**/b", "aca/b", true},
        {"****/", "", false},
        {"a/**", "a/x/y", true},
        {"a/**", "b/x", false},
        {"**", "any/thing", true},
        {"?", "a", true},
        {"?", "/", false},
        {"a?c", "abc", true},
        {"[a-c]x", "bx", true},
        {"[!a-c]x", "bx", false},
        {"[!a-c]x", "dx", true},
        {"[", "[", true},
        {"[]]", "]", true},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"*a*b", "xaxxb", true},
        {"*a*b", "xbxxa", false},
        {"", "a", false},
        {"a*", "a", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (glob_match(rows[i].pattern, rows[i].path) != rows[i].matches)
            fail_msg("%s against %s", rows[i].pattern, rows[i].path);
    }
}

static void a_directory_covers_what_is_beneath_it(void **unused)
{
    (void)unused;
    assert_true(glob_covers("out", "out/a/b"));
    assert_true(glob_covers("o*", "out/a"));
    assert_false(glob_covers("out", "output"));
    assert_false(glob_covers("out/a", "out"));
}

static void a_hostile_pattern_costs_little(void **unused)
{
    (void)unused;
    char path[1025];
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = 0;
    assert_false(glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", path));
    assert_false(glob_match("**a**a**a**a**a**a**a**a**a**a**a**a**a**a**a**b", path));
}

/* ---- environment ---------------------------------------------------------------------------- */

static const char *value_of(const struct environment *environment, const char *name)
{
    const char *found = NULL;
    for (size_t i = 0; i < environment->count; i++) {
        size_t length = strlen(name);
        if (strncmp(environment->items[i], name, length) == 0 &&
            environment->items[i][length] == '=') {
            assert_null(found); /* each name is there once */
            found = environment->items[i] + length + 1;
        }
    }
    return found;
}

static void the_environment_is_the_table_and_the_request(void **unused)
{
    (void)unused;
    struct job job = {.tenant = "acme",
                      .owner = "ann",
                      .name = "n",
                      .queue = "q",
                      .attempts = 1,
                      .node_count = 2,
                      .cores_per_node = 3,
                      .max_seconds = 60};
    struct job_env env[] = {{"PATH", "/opt/bin"}, {"MINE", "a=b"}};
    struct job_request request = {.env = env, .env_count = 2};
    struct environment_source source = {.job = &job,
                                        .request = &request,
                                        .run = 7,
                                        .home = "/work/h",
                                        .worker_name = "w1",
                                        .traceparent = ""};
    ENVIRONMENT_AUTO struct environment made = {0};
    struct err err = {0};
    assert_ok(environment_make(&source, &made, &err));
    assert_string_equal(value_of(&made, "PATH"), "/opt/bin");
    assert_string_equal(value_of(&made, "MINE"), "a=b");
    assert_string_equal(value_of(&made, "HOME"), "/work/h");
    assert_string_equal(value_of(&made, "SLUICE_JOB_ID"), "00000000-0000-0000-0000-000000000000");
    assert_string_equal(value_of(&made, "SLUICE_FENCE"), "7");
    assert_string_equal(value_of(&made, "SLUICE_ATTEMPT"), "2");
    assert_string_equal(value_of(&made, "SLUICE_TENANT"), "acme");
    assert_string_equal(value_of(&made, "SLUICE_CORES_PER_NODE"), "3");
    assert_null(value_of(&made, "SLUICE_MEMORY_MB"));
    assert_null(value_of(&made, "TRACEPARENT"));
    assert_null(value_of(&made, "SLUICE_APP_ID"));
    assert_null(made.items[made.count]);
}

/* ---- witnesses ------------------------------------------------------------------------------ */

static void frames_count_only_after_a_beat_on_their_connection(void **unused)
{
    (void)unused;
    struct witness witness = {.beat_ms = 1000, .beaten_generation = 1};
    assert_int_equal(witness_latest_ms(&witness, 1, 1500), 1500);
    assert_int_equal(witness_latest_ms(&witness, 2, 9000), 1500); /* a new one, no beat since */
    atomic_store(&witness.beaten_generation, 2);
    assert_int_equal(witness_latest_ms(&witness, 2, 9000), 9000);
    atomic_store(&witness.beat_ms, 9500);
    assert_int_equal(witness_latest_ms(&witness, 2, 9000), 9500);
    assert_int_equal(witness_latest_ms(&witness, 0, 0), 9500);
}

/* ---- files ---------------------------------------------------------------------------------- */

static char root[64];

static int make_root(void **unused)
{
    (void)unused;
    (void)snprintf(root, sizeof(root), "/tmp/sluice-parts-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **unused)
{
    (void)unused;
    struct err err = {0};
    FD_AUTO int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fs_remove_tree(tmp, root + strlen("/tmp/"), &err) ? -1 : 0;
}

static void put(int dir, const char *path, const char *text)
{
    FD_AUTO int fd = openat(dir, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void only_regular_files_that_are_named_are_archived(void **unused)
{
    (void)unused;
    const char *includes[] = {"out", "*.log", "link", "fifo"};
    const char *excludes[] = {"**/*.tmp"};
    struct job_request request = {.includes = {includes, 4}, .excludes = {excludes, 1}};
    struct archive_limits limits = {10, 1000};
    ARCHIVE_PLAN_AUTO struct archive_plan plan = {0};
    struct err err = {0};
    FD_AUTO int home = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(home, "out", 0755), 0);
    assert_int_equal(mkdirat(home, "kept", 0755), 0);
    put(home, "out/a", "12345");
    put(home, "out/b.tmp", "no");
    put(home, "x.log", "678");
    put(home, "other", "no");
    assert_int_equal(symlinkat("/etc/passwd", home, "link"), 0);
    assert_int_equal(symlinkat("/etc", home, "out/etc"), 0);
    assert_int_equal(mkfifoat(home, "fifo", 0644), 0);
    assert_ok(archive_scan(home, &request, &limits, &plan, &err));
    assert_int_equal(plan.count, 2);
    assert_int_equal(plan.bytes, 8);
    FD_AUTO int target = openat(home, "kept", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_ok(archive_copy(home, target, &plan, NULL, NULL, &err));
    BUF_AUTO struct buf bytes = BUF_INIT(100);
    assert_ok(fs_read(target, "out/a", &bytes, &err));
    assert_string_equal(buf_text(&bytes), "12345");
    assert_int_equal(faccessat(target, "x.log", F_OK, 0), 0);
}

/* What a job that left a process behind may do between the look and the copy. */
static void a_folder_that_became_a_link_is_not_archived(void **unused)
{
    (void)unused;
    const char *includes[] = {"out/**"};
    struct job_request request = {.includes = {includes, 1}};
    struct archive_limits limits = {10, 1000};
    ARCHIVE_PLAN_AUTO struct archive_plan plan = {0};
    struct err err = {0};
    FD_AUTO int home = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(home, "out", 0755), 0);
    assert_int_equal(mkdirat(home, "private", 0755), 0);
    assert_int_equal(mkdirat(home, "kept", 0755), 0);
    put(home, "out/a", "12345");
    put(home, "private/a", "not mine");
    assert_ok(archive_scan(home, &request, &limits, &plan, &err));
    assert_int_equal(renameat(home, "out", home, "before"), 0);
    assert_int_equal(symlinkat("private", home, "out"), 0);
    FD_AUTO int target = openat(home, "kept", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_code(archive_copy(home, target, &plan, NULL, NULL, &err), ERR_INVALID);
    assert_int_equal(faccessat(target, "out/a", F_OK, 0), -1);
}

/* Without fs.protected_hardlinks a job may link what it cannot read. */
static void a_hard_link_to_the_file_of_another_user_is_not_archived(void **unused)
{
    (void)unused;
    const char *includes[] = {"*"};
    struct job_request request = {.includes = {includes, 1}};
    struct archive_limits limits = {10, 1000};
    ARCHIVE_PLAN_AUTO struct archive_plan plan = {0};
    struct err err = {0};
    FD_AUTO int above = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(above, "home", 0700), 0);
    assert_int_equal(mkdirat(above, "kept", 0755), 0);
    FD_AUTO int home = openat(above, "home", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FD_AUTO int target = openat(above, "kept", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(home, "own", "own");
    assert_int_equal(linkat(home, "own", home, "own too", 0), 0);
    assert_ok(archive_scan(home, &request, &limits, &plan, &err));
    assert_ok(archive_copy(home, target, &plan, NULL, NULL, &err));
    archive_plan_done(&plan);
    if (geteuid() != 0)
        return; /* who cannot give files away has no job of another user */
    assert_int_equal(fchown(home, 65534, 65534), 0);
    put(above, "secret", "secret");
    assert_int_equal(unlinkat(home, "own", 0), 0);
    assert_int_equal(unlinkat(home, "own too", 0), 0);
    assert_int_equal(linkat(above, "secret", home, "mine", 0), 0);
    assert_ok(archive_scan(home, &request, &limits, &plan, &err));
    assert_code(archive_copy(home, target, &plan, NULL, NULL, &err), ERR_INVALID);
    assert_int_equal(faccessat(target, "mine", F_OK, 0), -1);
}

static void the_limits_of_the_archive_are_kept(void **unused)
{
    (void)unused;
    const char *includes[] = {"**"};
    struct job_request request = {.includes = {includes, 1}};
    struct archive_limits few = {1, 1000};
    struct archive_limits small = {10, 6};
    struct archive_plan plan = {0};
    struct err err = {0};
    FD_AUTO int home = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(home, "a", "12345");
    put(home, "b", "12345");
    assert_code(archive_scan(home, &request, &few, &plan, &err), ERR_TOO_LARGE);
    err_clear(&err);
    assert_code(archive_scan(home, &request, &small, &plan, &err), ERR_TOO_LARGE);
}

static bool at_once(void *arg)
{
    (void)arg;
    return true;
}

static void a_file_url_stays_beneath_its_roots(void **unused)
{
    (void)unused;
    char url[200];
    char *roots[] = {root};
    struct config_list list = {roots, 1};
    FD_AUTO int home = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FD_AUTO int to = openat(home, "to", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    struct fetch fetch = {
        .fd = to, .max_bytes = 5, .deadline_ms = INT64_MAX, .roots = &list, .url = url};
    struct err err = {0};
    put(home, "a b", "12345");
    put(home, "large", "123456");
    assert_int_equal(symlinkat("/etc/passwd", home, "out"), 0);
    (void)snprintf(url, sizeof(url), "file://%s/a%%20b", root);
    assert_ok(fetch_run(&fetch, &err));
    (void)snprintf(url, sizeof(url), "file://%s/large", root);
    assert_code(fetch_run(&fetch, &err), ERR_TOO_LARGE);
    err_clear(&err);
    (void)snprintf(url, sizeof(url), "file://%s/out", root);
    assert_code(fetch_run(&fetch, &err), ERR_INVALID);
    err_clear(&err);
    (void)snprintf(url, sizeof(url), "file://%s/../../etc/passwd", root);
    assert_code(fetch_run(&fetch, &err), ERR_INVALID);
    err_clear(&err);
    (void)snprintf(url, sizeof(url), "file:///etc/passwd");
    assert_code(fetch_run(&fetch, &err), ERR_FORBIDDEN);
    err_clear(&err);
    (void)snprintf(url, sizeof(url), "file://%sx/passwd", root);
    assert_code(fetch_run(&fetch, &err), ERR_FORBIDDEN);
    err_clear(&err);
    fetch.interrupted = at_once;
    (void)snprintf(url, sizeof(url), "file://%s/a%%20b", root);
    assert_code(fetch_run(&fetch, &err), ERR_STOPPING);
}

#define FILE_TEST(function) cmocka_unit_test_setup_teardown(function, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(patterns_match_as_the_table_says),
        TEST(a_directory_covers_what_is_beneath_it),
        TEST(a_hostile_pattern_costs_little),
        TEST(the_environment_is_the_table_and_the_request),
        TEST(frames_count_only_after_a_beat_on_their_connection),
        FILE_TEST(only_regular_files_that_are_named_are_archived),
        FILE_TEST(a_folder_that_became_a_link_is_not_archived),
        FILE_TEST(a_hard_link_to_the_file_of_another_user_is_not_archived),
        FILE_TEST(the_limits_of_the_archive_are_kept),
        FILE_TEST(a_file_url_stays_beneath_its_roots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
