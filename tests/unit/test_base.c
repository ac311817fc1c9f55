/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/hosts.h"
#include "common/base/sv.h"
#include "common/base/uuid.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void the_first_error_stays(void **unused)
{
    (void)unused;
    struct err err = {0};
    assert_int_equal(err_set(&err, ERR_INVALID, "first %d", 1), ERR_INVALID);
    assert_int_equal(err_set(&err, ERR_IO, "second"), ERR_INVALID);
    assert_string_equal(err.text, "first 1");
    assert_int_equal(err_http(ERR_NOT_FOUND), 404);
}

static void error_numbers_are_unique_and_rise(void **unused)
{
    (void)unused;
    for (int code = ERR_OK + 1; code < ERR_CODE_COUNT; code++)
        assert_true(err_number((enum err_code)code) > err_number((enum err_code)(code - 1)));
}

static void a_buffer_refuses_what_passes_its_limit(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf buf = BUF_INIT(8);
    assert_true(buf_add_text(&buf, "12345678"));
    assert_false(buf_add_text(&buf, "9"));
    assert_true(buf.failed);
    assert_string_equal(buf_text(&buf), "12345678");
}

static void json_strings_are_one_line_of_valid_utf8(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf buf = BUF_INIT(1000);
    assert_true(buf_add_json_string(&buf, SV("a\"\\\r\n\x1b[0m\xff\xc3\xa4")));
    assert_string_equal(buf_text(&buf), "\"a\\\"\\\\\\r\\n\\u001b[0m\\ufffd\xc3\xa4\"");
}

static void utf8_refuses_surrogates_and_overlong_forms(void **unused)
{
    (void)unused;
    assert_true(sv_is_utf8(SV("\xf0\x9f\x98\x80")));
    assert_false(sv_is_utf8(SV("\xed\xa0\x80")));
    assert_false(sv_is_utf8(SV("\xc0\xaf")));
    assert_false(sv_is_utf8(SV("\xf4\x90\x80\x80")));
    assert_false(sv_is_utf8(SV("\xe2\x82")));
}

static void uuids_rise_and_survive_text(void **unused)
{
    (void)unused;
    struct uuid last = uuid_v7();
    for (int i = 0; i < 10000; i++) {
        struct uuid next = uuid_v7();
        assert_true(memcmp(last.bytes, next.bytes, 8) < 0);
        last = next;
    }
    char text[UUID_TEXT_SIZE];
    struct uuid again;
    assert_true(uuid_parse(sv_of(uuid_text(&last, text)), &again));
    assert_true(uuid_eq(&last, &again));
    assert_int_equal(text[14], '7');
    assert_false(uuid_parse(SV("00000000-0000-0000-0000-00000000000g"), &again));
}

static void times_survive_text(void **unused)
{
    (void)unused;
    int64_t us = 0;
    char text[CLOCK_TEXT_SIZE];
    assert_true(clock_parse_rfc3339(SV("2024-02-29T12:00:00.250+05:30"), &us));
    clock_rfc3339(us, text);
    assert_string_equal(text, "2024-02-29T06:30:00.250Z");
    assert_false(clock_parse_rfc3339(SV("2023-02-29T12:00:00Z"), &us));
    assert_false(clock_parse_rfc3339(SV("2024-02-29 12:00:00Z"), &us));
    assert_false(clock_parse_rfc3339(SV("2024-02-29T12:00:00"), &us));
}

static void numbers_do_not_wrap(void **unused)
{
    (void)unused;
    uint64_t value = 0;
    assert_true(sv_u64(SV("18446744073709551615"), UINT64_MAX, &value));
    assert_true(value == UINT64_MAX);
    assert_false(sv_u64(SV("18446744073709551616"), UINT64_MAX, &value));
    assert_false(sv_u64(SV("+1"), 10, &value));
    assert_false(sv_u64(SV(""), 10, &value));
    assert_false(sv_u64(SV("11"), 10, &value));
}

static void files_stay_beneath_their_root(void **unused)
{
    (void)unused;
    struct err err = {0};
    char path[] = "/tmp/sluice-test-XXXXXX";
    assert_non_null(mkdtemp(path));
    FD_AUTO int root = -1;
    FD_AUTO int fd = -1;
    assert_ok(fs_open_dir(path, false, &root, &err));
    assert_ok(fs_make_dirs(root, "a/b", 0700, NULL, &err));
    FD_AUTO int deep = -1;
    assert_ok(fs_open_beneath(root, "a/b", O_RDONLY | O_DIRECTORY, 0, &deep, &err));
    assert_ok(fs_write_sync(deep, "file", SV("text"), 0600, &err));
    assert_int_equal(symlinkat("/etc", root, "out"), 0);
    assert_code(fs_open_beneath(root, "out/passwd", O_RDONLY, 0, &fd, &err), ERR_INVALID);
    err_clear(&err);
    assert_code(fs_open_beneath(root, "../etc/passwd", O_RDONLY, 0, &fd, &err), ERR_INVALID);
    err_clear(&err);
    BUF_AUTO struct buf bytes = BUF_INIT(100);
    assert_ok(fs_read(root, "a/b/file", &bytes, &err));
    assert_string_equal(buf_text(&bytes), "text");
    assert_ok(fs_remove_tree(root, "a", &err));
    assert_ok(fs_remove_tree(root, "out", &err));
    assert_int_equal(access("/etc/passwd", F_OK), 0);
    assert_int_equal(rmdir(path), 0);
    assert_false(fs_path_is_safe(SV("a/../b")));
    assert_false(fs_path_is_safe(SV("/a")));
    assert_false(fs_path_is_safe(SV("a//b")));
    assert_true(fs_path_is_safe(SV("a/..b/c.txt")));
}

static void assert_host(const char *text, unsigned which, const char *name, int port)
{
    struct host host;
    assert_true(hosts_at(text, which, 5672, &host));
    assert_string_equal(host.name, name);
    assert_int_equal(host.port, port);
}

static void a_list_of_hosts_goes_round_and_has_ports(void **unused)
{
    (void)unused;
    const char *three = "rabbit1, rabbit2:5673 ,[::1]:5674";
    assert_int_equal(hosts_count(three), 3);
    assert_host(three, 0, "rabbit1", 5672);
    assert_host(three, 1, "rabbit2", 5673);
    assert_host(three, 2, "::1", 5674);
    assert_host(three, 3, "rabbit1", 5672);
    assert_host("fe80::1", 7, "fe80::1", 5672);
    assert_host("[fe80::1]", 0, "fe80::1", 5672);
}

static void what_is_no_list_of_hosts_is_none(void **unused)
{
    (void)unused;
    static const char *const bad[] = {"",          " ",        ",",          "a,",   "a,,b",
                                      "a b",       "a:",       ":5672",      "a:0",  "a:65536",
                                      "a:x",       "[::1",     "[::1]5672",  "[]:1", "a:-1",
                                      "user@host", "amqp://a", "[::1]:5672:"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(hosts_count(bad[i]), 0);
    char many[2 * (HOSTS_MAX + 1)] = "a";
    for (size_t i = 0; i < HOSTS_MAX; i++)
        memcpy(many + 1 + 2 * i, ",a", 3);
    assert_int_equal(hosts_count(many), 0);
    many[2 * HOSTS_MAX - 1] = 0;
    assert_int_equal(hosts_count(many), HOSTS_MAX);
    char name[HOST_SIZE + 1];
    memset(name, 'a', HOST_SIZE);
    name[HOST_SIZE] = 0;
    assert_int_equal(hosts_count(name), 0);
    assert_int_equal(hosts_count(name + 1), 1);
}

/* ---- trees that a stranger made -------------------------------------------------------------- */

#define NOBODY 65534
#define DEPTH 2000

/* Directories inside one another, each with a file; the modes are taken away at the end. */
static int make_chain(int root, const char *name, int depth, mode_t mode)
{
    int at = dup(root);
    for (int i = 0; i < depth; i++) {
        const char *part = i == 0 ? name : "d";
        if (mkdirat(at, part, 0700) != 0)
            return 1;
        int next = openat(at, part, O_RDONLY | O_DIRECTORY);
        int file = openat(next, "file", O_WRONLY | O_CREAT, 0400);
        if (next < 0 || file < 0 || (i > 0 && fchmod(at, mode) != 0))
            return 1;
        (void)close(file);
        (void)close(at);
        at = next;
    }
    return fchmod(at, mode);
}

static int make_wide(int root)
{
    static const mode_t modes[] = {0, 0111, 0444, 0555, 0200};
    char name[40];
    if (mkdirat(root, "wide", 0700) != 0)
        return 1;
    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof(name), "wide/.removed-%d", i); /* names that removal may use */
        if (mkdirat(root, name, 0700) != 0)
            return 1;
        (void)snprintf(name, sizeof(name), "wide/.removed-%d/full", i);
        if (mkdirat(root, name, 0700) != 0 || fchmodat(root, name, modes[i % 5], 0) != 0)
            return 1;
        *strrchr(name, '/') = 0;
        if (fchmodat(root, name, modes[(i / 5) % 5], 0) != 0)
            return 1;
    }
    return symlinkat("/etc", root, "wide/link") || fchmodat(root, "wide", 0, 0);
}

/* As a user whom modes bind, with few descriptors: 0, or the number of the step that failed. */
static int make_and_remove(const char *path)
{
    struct err err = {0};
    int root = open(path, O_RDONLY | O_DIRECTORY);
    const struct rlimit few = {24, 24};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0)
        return 1;
    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        return 2;
    if (make_chain(root, "deep", DEPTH, 0555) || make_chain(root, "shut", 50, 0) || make_wide(root))
        return 3;
    static const char *const trees[] = {"deep", "shut", "wide"};
    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        if (fs_remove_tree(root, trees[i], &err) != ERR_OK) {
            (void)fprintf(stderr, "%s: %s\n", trees[i], err.text);
            return 4;
        }
    }
    return access("/etc/passwd", F_OK) ? 5 : 0;
}

static void trees_of_any_depth_and_mode_are_removed(void **unused)
{
    (void)unused;
    int status = 0;
    char path[] = "/tmp/sluice-test-XXXXXX";
    assert_non_null(mkdtemp(path));
    if (geteuid() == 0)
        assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(make_and_remove(path));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(rmdir(path), 0);
}

static void what_cannot_be_removed_does_not_keep_the_rest(void **unused)
{
    (void)unused;
    struct err err = {0};
    char path[] = "/tmp/sluice-test-XXXXXX";
    assert_non_null(mkdtemp(path));
    FD_AUTO int root = open(path, O_RDONLY | O_DIRECTORY);
    if (geteuid() != 0) /* only another's directory stays in spite of its mode */
        skip();
    assert_ok(fs_make_dirs(root, "tree/theirs/inner", 0755, NULL, &err));
    assert_ok(fs_make_dirs(root, "tree/ours/inner", 0755, NULL, &err));
    assert_int_equal(fchownat(root, ".", NOBODY, NOBODY, 0), 0);
    assert_int_equal(fchownat(root, "tree", NOBODY, NOBODY, 0), 0);
    assert_int_equal(fchownat(root, "tree/ours", NOBODY, NOBODY, 0), 0);
    assert_int_equal(fchownat(root, "tree/ours/inner", NOBODY, NOBODY, 0), 0);
    pid_t child = fork();
    if (child == 0) {
        bool gone = setgid(NOBODY) == 0 && setuid(NOBODY) == 0 &&
                    fs_remove_tree(root, "tree", &err) == ERR_OK;
        _exit(gone ? 1 : err.code == ERR_IO && strstr(err.text, "inner") ? 0 : 2);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_not_equal(faccessat(root, "tree/ours", F_OK, 0), 0);
    assert_int_equal(faccessat(root, "tree/theirs/inner", F_OK, 0), 0);
    assert_ok(fs_remove_tree(root, "tree", &err));
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_error_stays),
        TEST(error_numbers_are_unique_and_rise),
        TEST(a_buffer_refuses_what_passes_its_limit),
        TEST(json_strings_are_one_line_of_valid_utf8),
        TEST(utf8_refuses_surrogates_and_overlong_forms),
        TEST(uuids_rise_and_survive_text),
        TEST(times_survive_text),
        TEST(numbers_do_not_wrap),
        TEST(a_list_of_hosts_goes_round_and_has_ports),
        TEST(what_is_no_list_of_hosts_is_none),
        TEST(files_stay_beneath_their_root),
        TEST(trees_of_any_depth_and_mode_are_removed),
        TEST(what_cannot_be_removed_does_not_keep_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
