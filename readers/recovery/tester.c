/* SPDX-License-Identifier: MIT */
#include "readers/recovery/tester.h"

#include "common/base/clock.h"

#include <curl/curl.h>
#include <stdarg.h>

enum tester_way { GOES_IN, GOES_OUT };

static const struct {
    const char *name;
    tester_fn *ask;
    enum tester_way way;
} testers[] = {
#define TESTER(name, goes) {#name, tester_##name, GOES_##goes},
#include "readers/recovery/tester.def"
#undef TESTER
};

const char *test_result_text(enum test_result result)
{
    static const char *const texts[TEST_RESULT_COUNT] = {
        [TEST_CLEAR] = "clear",
        [TEST_NOT_YET] = "not yet",
        [TEST_CANNOT_TELL] = "cannot tell",
        [TEST_NEVER] = "never",
    };
    return texts[result];
}

enum err_code test_start(struct err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ERR_INTERNAL, "libcurl does not start");
    return ERR_OK;
}

void test_end(void)
{
    curl_global_cleanup();
}

struct test_answer test_clear(uint32_t jobs)
{
    return (struct test_answer){.result = TEST_CLEAR, .jobs = jobs};
}

struct test_answer test_says(enum test_result result, const char *format, ...)
{
    struct test_answer answer = {.result = result};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(answer.detail, sizeof(answer.detail), format, args);
    va_end(args);
    return answer;
}

struct test_answer test_failed(const struct err *err)
{
    return test_says(TEST_CANNOT_TELL, "%s", err->text);
}

struct test_answer test_lacks(const char *name)
{
    return test_says(TEST_CANNOT_TELL, "the cause's params lack '%s'", name);
}

const char *test_param(const struct test_question *question, const char *name)
{
    return json_string_value(json_object_get(question->params, name));
}

int64_t test_left_ms(const struct test_question *question)
{
    int64_t left_ms = question->deadline_ms - clock_mono_ms();
    return left_ms > 0 ? left_ms : 1;
}

static void json_done(json_t **json)
{
    json_decref(*json);
}

bool test_goes_out(const char *tester)
{
    for (size_t i = 0; i < ARRAY_LEN(testers); i++) {
        if (strcmp(testers[i].name, tester) == 0)
            return testers[i].way == GOES_OUT;
    }
    return false;
}

struct test_answer test_run(const struct test_site *site, const char *tenant, const char *tester,
                            const char *params)
{
    __attribute__((cleanup(json_done))) json_t *object =
        json_loads(params, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(object))
        return test_says(TEST_CANNOT_TELL, "the cause's params are no JSON object");
    const struct test_question question = {.site = site,
                                           .tenant = tenant,
                                           .params = object,
                                           .deadline_ms = clock_mono_ms() + site->timeout_ms};
    for (size_t i = 0; i < ARRAY_LEN(testers); i++) {
        if (strcmp(testers[i].name, tester) == 0)
            return testers[i].ask(&question);
    }
    return test_says(TEST_CANNOT_TELL, "this program knows no tester '%s'", tester);
}
