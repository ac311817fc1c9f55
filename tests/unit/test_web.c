/* SPDX-License-Identifier: MIT */
#include "webapp/cursor.h"
#include "webapp/problem.h"
#include "webapp/range.h"
#include "webapp/uri.h"

#include "tests/support/test.h"

/* ---- uri ------------------------------------------------------------------------------------- */

static bool parses(const char *raw)
{
    struct uri uri;
    struct err err = {0};
    bool good = uri_parse(raw, &uri, &err) == ERR_OK && uri.path_is_text;
    uri_done(&uri);
    return good;
}

static void a_path_is_split_before_it_is_decoded(void **unused)
{
    (void)unused;
    struct uri uri;
    struct err err = {0};
    assert_ok(uri_parse("/v1/a%2Fb/%C3%BC?x=1&y=a+b%26&z&x=2", &uri, &err));
    assert_int_equal(uri.segment_count, 3);
    assert_true(sv_is(uri.segments[1], "a/b"));
    assert_true(sv_is(uri.segments[2], "\xC3\xBC"));
    struct sv value;
    assert_true(uri_query(&uri, "y", &value));
    assert_true(sv_is(value, "a b&"));
    assert_true(uri_query(&uri, "z", &value));
    assert_int_equal(value.len, 0);
    assert_true(uri_query_at(&uri, "x", 1, &value));
    assert_true(sv_is(value, "2"));
    assert_false(uri_query_at(&uri, "x", 2, &value));
    assert_false(uri_query(&uri, "none", &value));
    uri_done(&uri);
}

static void broken_escapes_nul_and_bytes_that_are_not_utf8_are_refused(void **unused)
{
    (void)unused;
    const char *bad[] = {"",     "v1",    "/%",    "/%2",     "/%zz",    "/a%00b",
                         "/%ff", "/?a=%", "/?%f1", "/?a=%00", "/%C3%28", "/\xff/x"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (parses(bad[i]))
            fail_msg("'%s' was taken", bad[i]);
    }
    assert_true(parses("/"));
    assert_true(parses("/%41"));
    assert_true(parses("/a?"));
    assert_true(parses("/a?&&"));
}

static void escaped_bytes_of_a_path_are_kept_and_told(void **unused)
{
    (void)unused;
    struct uri uri;
    struct err err = {0};
    BUF_AUTO struct buf text = BUF_INIT(100);
    assert_ok(uri_parse("/a/%ff%20x", &uri, &err));
    assert_false(uri.path_is_text);
    assert_true(sv_is(uri.segments[1], "\xff x"));
    uri_encode(SV("/a/\xff x%"), &text);
    assert_string_equal(buf_text(&text), "/a/%FF%20x%25");
    uri_done(&uri);
}

static void too_many_parts_and_parameters_are_refused(void **unused)
{
    (void)unused;
    char text[4096];
    memset(text, '/', sizeof(text));
    text[URI_SEGMENTS_MAX] = 0;
    assert_true(parses(text));
    text[URI_SEGMENTS_MAX] = '/';
    text[URI_SEGMENTS_MAX + 1] = 0;
    assert_false(parses(text));
    size_t used = (size_t)snprintf(text, sizeof(text), "/?");
    for (size_t i = 0; i <= URI_QUERY_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "a=%zu&", i);
    assert_false(parses(text));
}

/* ---- range ----------------------------------------------------------------------------------- */

static void check_range(const char *header, uint64_t size, enum range_kind kind, uint64_t offset,
                        uint64_t length)
{
    struct range range = range_parse(sv_of(header), size);
    if (range.kind != kind ||
        (kind == RANGE_PART && (range.offset != offset || range.length != length)))
        fail_msg("'%s' of %llu: kind %d, %llu+%llu", header, (unsigned long long)size,
                 (int)range.kind, (unsigned long long)range.offset,
                 (unsigned long long)range.length);
}

static void one_range_of_bytes_is_understood(void **unused)
{
    (void)unused;
    check_range("bytes=0-0", 10, RANGE_PART, 0, 1);
    check_range("bytes=3-5", 10, RANGE_PART, 3, 3);
    check_range("bytes=3-", 10, RANGE_PART, 3, 7);
    check_range("bytes=3-999", 10, RANGE_PART, 3, 7);
    check_range("bytes=-2", 10, RANGE_PART, 8, 2);
    check_range("bytes=-99", 10, RANGE_PART, 0, 10);
    check_range("bytes=0-18446744073709551615", 10, RANGE_PART, 0, 10);
}

static void a_range_behind_the_end_cannot_be_served(void **unused)
{
    (void)unused;
    check_range("bytes=10-", 10, RANGE_BEYOND, 0, 0);
    check_range("bytes=0-", 0, RANGE_BEYOND, 0, 0);
    check_range("bytes=-0", 10, RANGE_BEYOND, 0, 0);
    check_range("bytes=-5", 0, RANGE_BEYOND, 0, 0);
}

static void what_is_no_single_range_is_ignored(void **unused)
{
    (void)unused;
    const char *others[] = {"",
                            "bytes",
                            "bytes=",
                            "bytes=-",
                            "bytes=5-3",
                            "lines=1-2",
                            "bytes=1-2,4-5",
                            "bytes=a-b",
                            "bytes=1 -2",
                            "bytes=--1",
                            "bytes=18446744073709551616-"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        check_range(others[i], 10, RANGE_WHOLE, 0, 0);
}

/* ---- cursor ---------------------------------------------------------------------------------- */

static void a_cursor_comes_back_as_it_was_for_the_same_query(void **unused)
{
    (void)unused;
    struct cursor_key key = {.bytes = {1, 2, 3}};
    struct uuid id = uuid_v7();
    struct uuid back = {{0}};
    char text[CURSOR_TEXT_SIZE];
    struct err err = {0};
    cursor_write(&key, SV("acme status=RUNNING"), &id, text);
    assert_ok(cursor_read(&key, SV("acme status=RUNNING"), sv_of(text), &back, &err));
    assert_true(uuid_eq(&id, &back));
}

static void a_cursor_of_another_query_or_key_is_refused(void **unused)
{
    (void)unused;
    struct cursor_key key = {.bytes = {1}};
    struct cursor_key other = {.bytes = {2}};
    struct uuid id = uuid_v7();
    char text[CURSOR_TEXT_SIZE];
    struct err err = {0};
    cursor_write(&key, SV("a"), &id, text);
    assert_code(cursor_read(&key, SV("b"), sv_of(text), &id, &err), ERR_CURSOR);
    err_clear(&err);
    assert_code(cursor_read(&other, SV("a"), sv_of(text), &id, &err), ERR_CURSOR);
    assert_string_equal(err.pointer, "?cursor");
}

static void a_cursor_with_any_character_changed_is_refused(void **unused)
{
    (void)unused;
    struct cursor_key key = {.bytes = {7}};
    struct uuid id = uuid_v7();
    struct uuid back;
    char text[CURSOR_TEXT_SIZE];
    cursor_write(&key, SV("q"), &id, text);
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        struct err err = {0};
        char old = text[i];
        text[i] = old == 'A' ? 'B' : 'A';
        assert_code(cursor_read(&key, SV("q"), sv_of(text), &back, &err), ERR_CURSOR);
        text[i] = old;
        err_clear(&err);
        assert_code(cursor_read(&key, SV("q"), (struct sv){text, i}, &back, &err), ERR_CURSOR);
    }
}

/* ---- problem --------------------------------------------------------------------------------- */

static void a_problem_names_code_place_and_request(void **unused)
{
    (void)unused;
    struct err err = {0};
    (void)err_set_at(&err, ERR_INVALID, "/memoryMB", "too much \xff\n");
    json_t *problem = problem_of(&err, "/v1/jobs?x", 8, "r-1");
    assert_string_equal(json_string_value(json_object_get(problem, "code")), "SLUICE-1002");
    assert_string_equal(json_string_value(json_object_get(problem, "type")), "/errors/SLUICE-1002");
    assert_int_equal(json_integer_value(json_object_get(problem, "status")), 400);
    assert_string_equal(json_string_value(json_object_get(problem, "instance")), "/v1/jobs");
    assert_string_equal(json_string_value(json_object_get(problem, "requestId")), "r-1");
    const json_t *first = json_array_get(json_object_get(problem, "errors"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "pointer")), "/memoryMB");
    assert_string_equal(json_string_value(json_object_get(first, "reason")),
                        "too much \xEF\xBF\xBD\n");
    json_decref(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_path_is_split_before_it_is_decoded),
        TEST(broken_escapes_nul_and_bytes_that_are_not_utf8_are_refused),
        TEST(escaped_bytes_of_a_path_are_kept_and_told),
        TEST(too_many_parts_and_parameters_are_refused),
        TEST(one_range_of_bytes_is_understood),
        TEST(a_range_behind_the_end_cannot_be_served),
        TEST(what_is_no_single_range_is_ignored),
        TEST(a_cursor_comes_back_as_it_was_for_the_same_query),
        TEST(a_cursor_of_another_query_or_key_is_refused),
        TEST(a_cursor_with_any_character_changed_is_refused),
        TEST(a_problem_names_code_place_and_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
