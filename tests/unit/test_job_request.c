/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/model/job_request.h"
#include "common/model/limits.h"

#define PLAIN "\"name\":\"n\",\"command\":[\"/bin/true\"]"

static void a_full_request_is_read(void **unused)
{
    (void)unused;
    struct err err = {0};
    AUTO(job_request_free) struct job_request *request = NULL;
    assert_ok(job_request_parse(
        SV("{\"name\":\"render 7\",\"command\":[\"sh\",\"-c\",\"echo\"],\"args\":[\"x y\"],"
           "\"env\":{\"A_1\":\"b\"},\"fileInputs\":[{\"content\":\"hi\",\"targetPath\":\"in/a\","
           "\"mode\":\"0755\"},{\"sourceUrl\":\"https://h/x\",\"targetPath\":\"b\"}],"
           "\"nodeCount\":2,\"coresPerNode\":4,\"memoryMB\":512,\"maxMinutes\":3,"
           "\"archive\":{\"mode\":\"onSuccess\",\"includes\":[\"*.txt\"]},"
           "\"tags\":[\"gpu\"],\"notes\":\"n\",\"idempotencyKey\":\"k\"}"),
        &request, &err));
    assert_int_equal(request->max_seconds, 180);
    assert_int_equal(request->inputs[0].mode, 0755);
    assert_int_equal(request->inputs[1].mode, 0644);
    assert_int_equal(request->archive, ARCHIVE_ON_SUCCESS);
    assert_string_equal(request->env[0].value, "b");
    assert_string_equal(request->args.items[0], "x y");
    TEXT_AUTO char *tags = job_request_tags(request);
    assert_string_equal(tags, "[\"gpu\"]");
}

static void every_fault_is_told_with_its_pointer(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        enum err_code code;
        const char *pointer;
    } rows[] = {
        {"{", ERR_MALFORMED, ""},
        {"[]", ERR_INVALID, ""},
        {"{\"name\":\"n\",\"name\":\"n\"}", ERR_MALFORMED, ""},
        {"{\"name\":\"a\\u0000b\"}", ERR_MALFORMED, ""},
        {"{\"name\":\"\\ud800\"}", ERR_MALFORMED, ""},
        {"{\"command\":[\"x\"]}", ERR_INVALID, "/name"},
        {"{\"name\":\"n\"}", ERR_INVALID, "/command"},
        {"{\"name\":\"a/b\",\"command\":[\"x\"]}", ERR_INVALID, "/name"},
        {"{\"name\":7,\"command\":[\"x\"]}", ERR_INVALID, "/name"},
        {"{\"name\":\"n\",\"command\":[]}", ERR_INVALID, "/command"},
        {"{\"name\":\"n\",\"command\":[1]}", ERR_INVALID, "/command/0"},
        {"{" PLAIN ",\"zap\":1}", ERR_UNKNOWN_MEMBER, "/zap"},
        {"{" PLAIN ",\"a/b\":1}", ERR_UNKNOWN_MEMBER, "/a~1b"},
        {"{" PLAIN ",\"memoryMB\":0}", ERR_INVALID, "/memoryMB"},
        {"{" PLAIN ",\"memoryMB\":1.5}", ERR_INVALID, "/memoryMB"},
        {"{" PLAIN ",\"memoryMB\":null}", ERR_INVALID, "/memoryMB"},
        {"{" PLAIN ",\"nodeCount\":99999999999}", ERR_INVALID, "/nodeCount"},
        {"{" PLAIN ",\"maxMinutes\":1,\"maxSeconds\":1}", ERR_INVALID, "/maxSeconds"},
        {"{" PLAIN ",\"env\":{\"SLUICE_X\":\"1\"}}", ERR_INVALID, "/env/SLUICE_X"},
        {"{" PLAIN ",\"env\":{\"1X\":\"1\"}}", ERR_INVALID, "/env/1X"},
        {"{" PLAIN ",\"env\":{\"X\":1}}", ERR_INVALID, "/env/X"},
        {"{" PLAIN ",\"fileInputs\":[{\"content\":\"\",\"targetPath\":\"../x\"}]}", ERR_INVALID,
         "/fileInputs/0/targetPath"},
        {"{" PLAIN ",\"fileInputs\":[{\"content\":\"\",\"targetPath\":\"/x\"}]}", ERR_INVALID,
         "/fileInputs/0/targetPath"},
        {"{" PLAIN ",\"fileInputs\":[{\"sourceUrl\":\"ftp://x/\",\"targetPath\":\"x\"}]}",
         ERR_INVALID, "/fileInputs/0/sourceUrl"},
        {"{" PLAIN
         ",\"fileInputs\":[{\"sourceUrl\":\"http://x/\\r\\nHost: y\",\"targetPath\":\"x\"}]}",
         ERR_INVALID, "/fileInputs/0/sourceUrl"},
        {"{" PLAIN ",\"fileInputs\":[{\"targetPath\":\"x\"}]}", ERR_INVALID, "/fileInputs/0"},
        {"{" PLAIN ",\"fileInputs\":[{\"content\":\"\",\"targetPath\":\"x\",\"mode\":\"7777\"}]}",
         ERR_INVALID, "/fileInputs/0/mode"},
        {"{" PLAIN ",\"archive\":{\"mode\":\"maybe\"}}", ERR_INVALID, "/archive/mode"},
        {"{" PLAIN ",\"tags\":[\"\"]}", ERR_INVALID, "/tags/0"},
        {"{" PLAIN ",\"archive\":{\"includes\":[\"*.txt\",\"/etc/*\"]}}", ERR_INVALID,
         "/archive/includes/1"},
        {"{" PLAIN ",\"archive\":{\"excludes\":[\"a/../../b\"]}}", ERR_INVALID,
         "/archive/excludes/0"},
        {"{" PLAIN ",\"fileInputs\":[{\"content\":\"1\",\"targetPath\":\"x\"},"
         "{\"content\":\"2\",\"targetPath\":\"x\"}]}",
         ERR_INVALID, "/fileInputs/1/targetPath"},
        {"{\"name\":\"n\",\"appId\":\"a\"}", ERR_INVALID, "/appVersion"},
        {"{\"name\":\"n\",\"appId\":\"../a\",\"appVersion\":\"1\"}", ERR_INVALID, "/appId"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        struct job_request *request = NULL;
        enum err_code rc = job_request_parse(sv_of(rows[i].text), &request, &err);
        if (rc != rows[i].code || strcmp(err.pointer, rows[i].pointer) != 0)
            fail_msg("%s: %s at '%s' (%s)", rows[i].text, err_name(rc), err.pointer, err.text);
        assert_null(request);
    }
}

/* {"a":[0,0,...]}: the object, the name, the array and so many zeros. */
static void fill_with_values(struct buf *text, const char *value, int count)
{
    buf_clear(text);
    buf_addf(text, "{\"a\":[%s", value);
    for (int i = 1; i < count; i++)
        buf_addf(text, " , %s", value);
    buf_add_text(text, "]}");
}

static void check_number_of(const char *value, struct buf *text)
{
    struct err err = {0};
    JSON_AUTO json_t *good = NULL;
    JSON_AUTO json_t *none = NULL;
    fill_with_values(text, value, LIMIT_JSON_VALUES - 3);
    assert_ok(job_json_read(buf_sv(text), &good, &err));
    fill_with_values(text, value, LIMIT_JSON_VALUES - 2);
    assert_code(job_json_read(buf_sv(text), &none, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.text, "100001"));
    assert_non_null(strstr(err.text, "100000"));
}

static void json_has_so_many_values_and_no_more(void **unused)
{
    (void)unused;
    static const char *const values[] = {"0",  "-1.5e3", "null", "\"\"", "\"[,{\\\"\\\\\"",
                                         "{}", "[]"};
    BUF_AUTO struct buf text = BUF_INIT(4000000);
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        check_number_of(values[i], &text);
}

static void deep_json_is_refused(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_request *request = NULL;
    BUF_AUTO struct buf text = BUF_INIT(1000000);
    for (int i = 0; i < 100000; i++)
        buf_add_text(&text, "[");
    assert_code(job_request_parse(buf_sv(&text), &request, &err), ERR_MALFORMED);
    err_clear(&err);
    buf_clear(&text);
    for (int i = 0; i < 40; i++)
        buf_add_text(&text, "[");
    for (int i = 0; i < 40; i++)
        buf_add_text(&text, "]");
    assert_code(job_request_parse(buf_sv(&text), &request, &err), ERR_MALFORMED);
}

static void an_application_lies_beneath_the_request(void **unused)
{
    (void)unused;
    struct err err = {0};
    AUTO(job_request_free) struct job_request *request = NULL;
    AUTO(job_request_free) struct job_request *merged = NULL;
    struct sv app = SV("{\"command\":[\"run\"],\"args\":[\"-a\"],\"env\":{\"A\":\"app\",\"B\":"
                       "\"app\"},\"memoryMB\":64,\"maxMinutes\":5,\"tags\":[\"t\"]}");
    assert_ok(job_request_check_app(app, &err));
    assert_ok(job_request_parse(SV("{\"name\":\"n\",\"appId\":\"a\",\"appVersion\":\"1\",\"args\":["
                                   "\"-b\"],\"env\":{\"A\":\"mine\"},\"maxSeconds\":7}"),
                                &request, &err));
    assert_ok(job_request_merge(request, app, &merged, &err));
    assert_ok(job_request_complete(merged, 60, 600, &err));
    assert_code(job_request_complete(merged, 60, 6, &err), ERR_INVALID);
    assert_string_equal(err.pointer, "/maxSeconds");
    err_clear(&err);
    assert_int_equal(merged->memory_mb, 64);
    assert_int_equal(merged->max_seconds, 7);
    assert_int_equal(merged->args.count, 2);
    assert_string_equal(merged->args.items[0], "-a");
    assert_int_equal(merged->env_count, 2);
    assert_string_equal(merged->env[0].value, "mine");
    assert_code(job_request_check_app(SV("{\"name\":\"n\"}"), &err), ERR_UNKNOWN_MEMBER);
    err_clear(&err);
    assert_code(job_request_check_app(SV("{\"args\":[\"a\"]}"), &err), ERR_INVALID);
}

static void all_faults_are_told_at_once(void **unused)
{
    (void)unused;
    static const struct {
        const char *pointer;
        const char *reason;
    } wanted[] = {
        {"/nme", "'nme' is not a member of a job request; did you mean 'name'?"},
        {"/memoryMB", "a whole number from 1 to"},
        {"/env/1X", "does not begin with a digit"},
        {"/env/SLUICE_X", "set by the service"},
        {"/tags/2", "a string is wanted"},
        {"/tags/1", "must not be empty"},
        {"/archive/modes", "did you mean 'mode'?"},
        {"/archive/includes/0", "a relative pattern"},
        {"/fileInputs/0/sourceUrl", "http://, https:// or file:///"},
        {"/fileInputs/0", "targetPath is missing"},
        {"/fileInputs/1/zzzzzzzzzz", "it has sourceUrl, content, targetPath, mode"},
        {"/subscriptions/0/states/0", "did you mean 'FINISHED'?"},
        {"/subscriptions/0/url", "url is missing"},
        {"/name", "name is missing"},
    };
    struct err_list all = {0};
    struct err err = {.list = &all};
    struct job_request *request = NULL;
    assert_code(
        job_request_parse(
            SV("{\"nme\":\"n\",\"command\":[\"x\"],\"memoryMB\":\"1\",\"env\":{\"1X\":\"\","
               "\"SLUICE_X\":\"\"},\"tags\":[\"good\",\"\",1],\"archive\":{\"modes\":1,"
               "\"includes\":[\"/x\"]},\"fileInputs\":[{\"sourceUrl\":\"x\"},{\"content\":\"\","
               "\"targetPath\":\"a\",\"zzzzzzzzzz\":1}],\"subscriptions\":[{\"states\":["
               "\"FINISHD\"]}]}"),
            &request, &err),
        ERR_UNKNOWN_MEMBER);
    assert_string_equal(err.pointer, wanted[0].pointer);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        if (i >= all.count || strcmp(all.items[i].pointer, wanted[i].pointer) != 0 ||
            !strstr(all.items[i].text, wanted[i].reason))
            fail_msg("%s: %s, not '%s' at %s", wanted[i].pointer, wanted[i].reason,
                     i < all.count ? all.items[i].text : "",
                     i < all.count ? all.items[i].pointer : "");
    }
    assert_int_equal(all.count, ARRAY_LEN(wanted));
    err_list_done(&all);
}

static void so_many_faults_are_told_and_no_more(void **unused)
{
    (void)unused;
    struct err_list all = {0};
    struct err err = {.list = &all};
    struct job_request *request = NULL;
    BUF_AUTO struct buf text = BUF_INIT(1000000);
    buf_add_text(&text, "{" PLAIN);
    for (int i = 0; i < 1000; i++)
        buf_addf(&text, ",\"wrong%d\":1", i);
    buf_add_text(&text, "}");
    assert_code(job_request_parse(buf_sv(&text), &request, &err), ERR_UNKNOWN_MEMBER);
    assert_int_equal(all.count, ERR_LIST_MAX);
    err_list_done(&all);
}

static void equal_requests_have_equal_text(void **unused)
{
    (void)unused;
    struct err err = {0};
    AUTO(job_request_free) struct job_request *a = NULL;
    AUTO(job_request_free) struct job_request *b = NULL;
    assert_ok(job_request_parse(SV("{" PLAIN ",\"idempotencyKey\":\"k\"}"), &a, &err));
    assert_ok(job_request_parse(SV("{ \"command\":[\"/bin/true\"], \"name\":\"n\"}"), &b, &err));
    TEXT_AUTO char *text_a = job_request_text(a);
    TEXT_AUTO char *text_b = job_request_text(b);
    assert_string_equal(text_a, text_b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_full_request_is_read),         TEST(every_fault_is_told_with_its_pointer),
        TEST(deep_json_is_refused),           TEST(an_application_lies_beneath_the_request),
        TEST(equal_requests_have_equal_text), TEST(json_has_so_many_values_and_no_more),
        TEST(all_faults_are_told_at_once),    TEST(so_many_faults_are_told_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
