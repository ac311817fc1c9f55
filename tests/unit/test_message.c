/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/model/ended.h"
#include "common/model/message.h"
#include "common/model/retry.h"

static void a_message_survives_its_text(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct message message = {.job = uuid_v7(), .epoch = 4294967295u};
    struct message again;
    char text[MESSAGE_SIZE_MAX];
    size_t length = message_write(&message, text);
    assert_ok(message_read((struct sv){text, length}, &again, &err));
    assert_true(uuid_eq(&message.job, &again.job));
    assert_int_equal(again.epoch, message.epoch);
}

static void garbage_is_refused_with_its_reason(void **unused)
{
    (void)unused;
    static const char *const bodies[] = {
        "",
        "\x01\xff",
        "[]",
        "{\"v\":2,\"job\":\"00000000-0000-7000-8000-000000000000\",\"epoch\":1}",
        "{\"v\":1,\"job\":\"no\",\"epoch\":1}",
        "{\"v\":1,\"job\":\"00000000-0000-7000-8000-000000000000\",\"epoch\":0}",
        "{\"v\":1,\"job\":\"00000000-0000-7000-8000-000000000000\",\"epoch\":1.5}",
        "{\"v\":1,\"v\":1,\"job\":\"00000000-0000-7000-8000-000000000000\",\"epoch\":1}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct err err = {0};
        struct message message;
        assert_code(message_read(sv_of(bodies[i]), &message, &err), ERR_MALFORMED);
        assert_true(err.text[0] != 0);
    }
}

static void ends_survive_their_text(void **unused)
{
    (void)unused;
    char text[ENDED_SIZE_MAX];
    struct uuid jobs[ENDED_JOBS_MAX];
    struct uuid again[ENDED_JOBS_MAX];
    struct err err = {0};
    size_t found = 0;
    for (size_t i = 0; i < ENDED_JOBS_MAX; i++)
        jobs[i] = uuid_v7();
    for (size_t count = 0; count <= ENDED_JOBS_MAX; count += 8) {
        size_t length = ended_write(jobs, count, text);
        assert_int_equal(length, strlen(text));
        assert_ok(ended_read((struct sv){text, length}, again, &found, &err));
        assert_int_equal(found, count);
        for (size_t i = 0; i < count; i++)
            assert_true(uuid_eq(&jobs[i], &again[i]));
    }
}

static void a_list_of_ends_that_is_none_is_refused(void **unused)
{
    (void)unused;
    static const char *const bodies[] = {
        "",
        "[]",
        "{\"v\":2,\"jobs\":[]}",
        "{\"v\":1}",
        "{\"v\":1,\"jobs\":{}}",
        "{\"v\":1,\"jobs\":[7]}",
        "{\"v\":1,\"jobs\":[\"x\"]}",
        "{\"v\":1,\"job\":\"019a9f1e-0000-7000-8000-000000000000\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct uuid jobs[ENDED_JOBS_MAX];
        struct err err = {0};
        size_t count = 0;
        assert_code(ended_read(sv_of(bodies[i]), jobs, &count, &err), ERR_MALFORMED);
    }
    char text[ENDED_SIZE_MAX + 1];
    struct uuid jobs[ENDED_JOBS_MAX];
    struct err err = {0};
    size_t count = 0;
    memset(text, ' ', sizeof(text));
    assert_code(ended_read((struct sv){text, sizeof(text)}, jobs, &count, &err), ERR_TOO_LARGE);
}

static void pauses_double_up_to_the_most(void **unused)
{
    (void)unused;
    const struct retry retry = {.first_ms = 100, .most_ms = 1000};
    for (uint32_t tries = 1; tries < 100; tries++) {
        int64_t pause = retry_pause_ms(&retry, tries);
        int64_t full = tries < 5 ? 100 << (tries - 1) : 1000;
        assert_true(pause <= full && pause > full / 2 - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_message_survives_its_text),  TEST(garbage_is_refused_with_its_reason),
        TEST(ends_survive_their_text),      TEST(a_list_of_ends_that_is_none_is_refused),
        TEST(pauses_double_up_to_the_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
