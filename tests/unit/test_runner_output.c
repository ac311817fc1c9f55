/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/base/fs.h"
#include "worker/runner/output.h"

#include <fcntl.h>
#include <unistd.h>

#define CAP ((uint64_t)4096)
#define HALF (CAP / 2)

struct fixture {
    char path[64];
    int dir;
    struct output output;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    struct err err = {0};
    (void)snprintf(fixture.path, sizeof(fixture.path), "/tmp/test_runner_output.XXXXXX");
    if (!mkdtemp(fixture.path) || fs_open_dir(fixture.path, false, &fixture.dir, &err) != ERR_OK)
        return 1;
    *state = &fixture;
    return output_open(&fixture.output, fixture.dir, "stdout", CAP, &err) != ERR_OK;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    struct err err = {0};
    output_close(&fixture->output);
    fd_close(&fixture->dir);
    FD_AUTO int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fs_remove_tree(tmp, fixture->path + sizeof("/tmp"), &err) != ERR_OK;
}

/* Byte i of the stream that the tests write. */
static char byte_at(uint64_t i)
{
    return (char)(i * 31 + i / 251);
}

static void write_stream(struct output *output, uint64_t size, size_t piece)
{
    char bytes[5000];
    for (uint64_t at = 0; at < size;) {
        size_t count = size - at < piece ? (size_t)(size - at) : piece;
        for (size_t i = 0; i < count; i++)
            bytes[i] = byte_at(at + i);
        output_write(output, bytes, count);
        at += count;
    }
}

static void finish(struct fixture *fixture, struct buf *ret_file)
{
    struct err err = {0};
    while (!output_finish(&fixture->output))
        continue;
    assert_ok(fs_read(fixture->dir, "stdout", ret_file, &err));
}

static void check_bytes(const char *bytes, uint64_t from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(bytes[i], byte_at(from + i));
}

static void check_cut(struct fixture *fixture, uint64_t size, size_t piece)
{
    struct err err = {0};
    char marker[64];
    BUF_AUTO struct buf file = BUF_INIT(3 * CAP);
    output_close(&fixture->output);
    assert_ok(output_open(&fixture->output, fixture->dir, "stdout", CAP, &err));
    write_stream(&fixture->output, size, piece);
    finish(fixture, &file);
    size_t length = (size_t)snprintf(marker, sizeof(marker), "\n[sluice: %llu bytes left out]\n",
                                     (unsigned long long)(size - CAP));
    assert_int_equal(file.len, CAP + length);
    check_bytes(file.ptr, 0, HALF);
    assert_memory_equal(file.ptr + HALF, marker, length);
    check_bytes(file.ptr + HALF + length, size - HALF, HALF);
    struct runner_stream result = output_result(&fixture->output);
    assert_int_equal(result.total_bytes, size);
    assert_int_equal(result.kept_bytes, CAP);
    assert_true(result.truncated);
    assert_string_equal(result.error, "");
}

static void up_to_the_cap_the_file_is_the_stream(void **state)
{
    struct fixture *fixture = *state;
    BUF_AUTO struct buf file = BUF_INIT(2 * CAP);
    write_stream(&fixture->output, CAP, 1000);
    finish(fixture, &file);
    assert_int_equal(file.len, CAP);
    check_bytes(file.ptr, 0, CAP);
    struct runner_stream result = output_result(&fixture->output);
    assert_int_equal(result.kept_bytes, CAP);
    assert_false(result.truncated);
}

static void beyond_the_cap_head_and_tail_are_kept(void **state)
{
    const uint64_t sizes[] = {CAP + 1,        CAP + HALF - 1, CAP + HALF, CAP + HALF + 1,
                              CAP + 2 * HALF, 10 * CAP + 77,  100000};
    const size_t pieces[] = {1, 7, 1000, 2048, 5000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        for (size_t j = 0; j < ARRAY_LEN(pieces); j++)
            check_cut(*state, sizes[i], pieces[j]);
    }
}

static void what_is_in_the_file_does_not_change_before_the_end(void **state)
{
    struct fixture *fixture = *state;
    struct err err = {0};
    BUF_AUTO struct buf file = BUF_INIT(2 * CAP);
    write_stream(&fixture->output, 5 * CAP, 999);
    assert_ok(fs_read(fixture->dir, "stdout", &file, &err));
    assert_int_equal(file.len, CAP);
    check_bytes(file.ptr, 0, CAP);
}

static void nothing_else_is_left_in_the_directory(void **state)
{
    struct fixture *fixture = *state;
    BUF_AUTO struct buf file = BUF_INIT(2 * CAP);
    write_stream(&fixture->output, 3 * CAP, 4096);
    finish(fixture, &file);
    assert_int_equal(faccessat(fixture->dir, ".stdout.new", F_OK, 0), -1);
    assert_int_equal(faccessat(fixture->dir, ".stdout.tail", F_OK, 0), -1);
}

static void a_disk_that_fails_cuts_the_output_and_is_told(void **state)
{
    struct fixture *fixture = *state;
    FD_AUTO int full = open("/dev/full", O_RDWR | O_CLOEXEC);
    int file = fixture->output.file;
    write_stream(&fixture->output, 100, 100);
    fixture->output.file = full;
    write_stream(&fixture->output, 5 * CAP, 1000);
    fixture->output.file = file;
    while (!output_finish(&fixture->output))
        continue;
    struct runner_stream result = output_result(&fixture->output);
    assert_string_equal(result.error, "ENOSPC");
    assert_int_equal(result.total_bytes, 100 + 5 * CAP);
    assert_int_equal(result.kept_bytes, 100);
    assert_true(result.truncated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(up_to_the_cap_the_file_is_the_stream, set_up, tear_down),
        cmocka_unit_test_setup_teardown(beyond_the_cap_head_and_tail_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_in_the_file_does_not_change_before_the_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nothing_else_is_left_in_the_directory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_disk_that_fails_cuts_the_output_and_is_told, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
