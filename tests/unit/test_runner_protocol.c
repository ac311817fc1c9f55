/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "worker/runner/protocol.h"

static const char *const argv[] = {"/bin/echo", "\xc3\xa4 b", "", NULL};
static const char *const env[] = {"A=1", NULL};

static struct runner_start sample(void)
{
    return (struct runner_start){
        .job = uuid_v7(),
        .fence = 7,
        .argv = argv,
        .env = env,
        .output_root = "/tmp",
        .output_dir = "t/7",
        .output_max_bytes = 5000,
        .limits = {.wall_ms = 9, .open_files = 4},
    };
}

static json_t *sample_json(void)
{
    struct err err = {0};
    struct runner_start start = sample();
    json_t *json = NULL;
    assert_ok(protocol_start_json(&start, &json, &err));
    assert_int_equal(json_object_set_new(json, "id", json_integer(1)), 0);
    return json;
}

static void a_start_survives_its_message(void **unused)
{
    (void)unused;
    struct err err = {0};
    json_t *json = sample_json();
    struct runner_start start;
    assert_ok(protocol_start_parse(json, &start, &err));
    assert_int_equal(start.fence, 7);
    assert_int_equal(start.run, 7);
    assert_string_equal(start.argv[1], "\xc3\xa4 b");
    assert_string_equal(start.argv[2], "");
    assert_null(start.argv[3]);
    assert_int_equal(start.limits.wall_ms, 9);
    assert_int_equal(start.limits.open_files, 4);
    assert_non_null(strstr(start.working_dir, ".7"));
    protocol_start_clear(&start);
    json_decref(json);
}

static void a_start_with_a_wrong_member_is_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        const char *json; /* NULL: the member is missing */
    } wrong[] = {
        {"argv", "[]"},
        {"argv", "[1]"},
        {"argv", "[\"a\\u0000b\"]"},
        {"argv", NULL},
        {"env", "{}"},
        {"fence", "0"},
        {"fence", "-1"},
        {"fence", "\"7\""},
        {"job", "\"x\""},
        {"working_dir", "\"/\""},
        {"working_dir", "\"a/../..\""},
        {"output_root", "\"tmp\""},
        {"output_dir", "\"../x\""},
        {"output_max_bytes", "1"},
        {"limits", "{}"},
        {"surprise", "1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err err = {0};
        struct runner_start start;
        json_t *json = sample_json();
        if (wrong[i].json)
            (void)json_object_set_new(
                json, wrong[i].name,
                json_loads(wrong[i].json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
        else
            (void)json_object_del(json, wrong[i].name);
        assert_int_not_equal(protocol_start_parse(json, &start, &err), ERR_OK);
        assert_true(err.text[0] != 0);
        json_decref(json);
    }
}

static void a_record_survives_its_file(void **unused)
{
    (void)unused;
    struct err err = {0};
    for (int reason = 0; reason < RUNNER_REASON_COUNT; reason++) {
        struct runner_record record = {.job = uuid_v7(),
                                       .fence = 3,
                                       .run = 2,
                                       .start_error = "ENOENT",
                                       .start_step = "exec",
                                       .exit_code = -1,
                                       .signal = 9,
                                       .reason = (enum runner_reason)reason,
                                       .note = "cancelled",
                                       .out = {.total_bytes = 5, .error = "ENOSPC"}};
        struct runner_record again = {0};
        json_t *json = runner_record_json(&record);
        assert_ok(runner_record_parse(json, &again, &err));
        assert_memory_equal(&record, &again, sizeof(record));
        json_decref(json);
    }
}

static void frames_are_found_in_any_pieces(void **unused)
{
    (void)unused;
    struct err err = {0};
    BUF_AUTO struct buf all = BUF_INIT(1000);
    BUF_AUTO struct buf in = BUF_INIT(1000);
    json_t *one = json_pack("{s:i}", "a", 1);
    json_t *message = NULL;
    int found = 0;
    assert_ok(protocol_pack(&all, one, 100, &err));
    assert_ok(protocol_pack(&all, one, 100, &err));
    for (size_t i = 0; i < all.len; i++) {
        assert_true(buf_add(&in, all.ptr + i, 1));
        assert_ok(protocol_unpack(&in, 100, &message, &err));
        if (message)
            assert_true(json_equal(message, one) && ++found > 0);
        json_decref(message);
    }
    assert_int_equal(found, 2);
    assert_int_equal(in.len, 0);
    json_decref(one);
}

static void a_frame_that_is_too_large_or_no_object_is_refused(void **unused)
{
    (void)unused;
    const struct sv bad[] = {SV("\0\0\1\0"), SV("\0\0\0\2[]"), SV("\0\0\0\1{"), SV("\0\0\0\0"),
                             SV("\0\0\0\x0d{\"a\":1,\"a\":2}")};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        json_t *message = NULL;
        BUF_AUTO struct buf in = BUF_INIT(1000);
        assert_true(buf_add_sv(&in, bad[i]));
        assert_code(protocol_unpack(&in, 100, &message, &err), ERR_PROTOCOL);
        assert_null(message);
    }
}

static void errors_come_through_with_code_and_text(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct err there = {0};
    (void)err_set(&there, ERR_FENCED, "not yours");
    json_t *json = protocol_error_json(4, &there);
    assert_code(protocol_answer_error(json, &err), ERR_FENCED);
    assert_string_equal(err.text, "not yours");
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_start_survives_its_message),
        TEST(a_start_with_a_wrong_member_is_refused),
        TEST(a_record_survives_its_file),
        TEST(frames_are_found_in_any_pieces),
        TEST(a_frame_that_is_too_large_or_no_object_is_refused),
        TEST(errors_come_through_with_code_and_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
