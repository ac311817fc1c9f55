/* SPDX-License-Identifier: MIT */
#include "webapp/queue_body.h"
#include "webapp/route.h"

#include "tests/support/test.h"

#include <jansson.h>

static void find(const char *path, const char *method, struct uri *uri, struct route_match *match)
{
    struct err err = {0};
    assert_ok(uri_parse(path, uri, &err));
    route_find(uri, method, match);
}

static void check_route(const char *path, const char *method, const char *name)
{
    struct uri uri;
    struct route_match match;
    find(path, method, &uri, &match);
    const char *found = match.route ? match.route->name : "none";
    if (strcmp(found, name) != 0)
        fail_msg("%s %s is %s, not %s", method, path, found, name);
    uri_done(&uri);
}

static void each_path_and_method_has_its_handler(void **unused)
{
    (void)unused;
    check_route("/v1/jobs", "GET", "job_list");
    check_route("/v1/jobs", "HEAD", "job_list");
    check_route("/v1/jobs", "POST", "job_submit");
    check_route("/v1/jobs?wait=3", "POST", "job_submit");
    check_route("/v1/jobs:batch", "POST", "job_batch");
    check_route("/v1/jobs%3Abatch", "POST", "job_batch");
    check_route("/v1/jobs/x", "GET", "job_get");
    check_route("/v1/jobs/x/output/stdout", "GET", "job_output");
    check_route("/v1/jobs/x/files", "GET", "job_files");
    check_route("/v1/jobs/x/files/a", "GET", "job_file");
    check_route("/v1/jobs/x/files/a/b/c", "GET", "job_file");
    check_route("/v1/queues:explain", "POST", "queue_explain");
    check_route("/v1/queues/q", "PUT", "queue_put");
    check_route("/v1/queues/q:reroute", "POST", "queue_reroute");
    check_route("/v1/queues/q", "GET", "queue_get");
    check_route("/v1/apps/a/1", "DELETE", "app_delete");
    check_route("/v1/apps/a/1/enable", "POST", "app_enable");
    check_route("/livez", "GET", "livez");
}

static void other_paths_and_methods_have_none(void **unused)
{
    (void)unused;
    const char *paths[] = {"/ui",
                           "/v1",
                           "/v1/",
                           "/v1/jobs/",
                           "/v1//jobs",
                           "/v1/jobs/x/",
                           "/v1/jobs/x/y",
                           "/v2/jobs",
                           "/v1/queues/q/x",
                           "//v1/jobs",
                           "/v1/jobs/x/files/"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        check_route(paths[i], "GET", "none");
    check_route("/v1/jobs", "get", "none");
    check_route("/v1/jobs", "TRACE", "none");
}

static void a_path_tells_which_methods_it_knows(void **unused)
{
    (void)unused;
    struct uri uri;
    struct route_match match;
    find("/v1/queues/q", "PATCH", &uri, &match);
    assert_null(match.route);
    assert_string_equal(match.allow, "GET, HEAD, PUT, DELETE, OPTIONS");
    uri_done(&uri);
    find("/nowhere", "GET", &uri, &match);
    assert_string_equal(match.allow, "");
    uri_done(&uri);
}

static void parts_in_braces_are_handed_over(void **unused)
{
    (void)unused;
    struct uri uri;
    struct route_match match;
    find("/v1/apps/my%20app/2", "GET", &uri, &match);
    assert_true(sv_is(match.params[0], "my app"));
    assert_true(sv_is(match.params[1], "2"));
    uri_done(&uri);
    find("/v1/jobs/x/files/a/b", "GET", &uri, &match);
    assert_true(sv_is(uri.segments[match.rest_at], "a"));
    uri_done(&uri);
}

/* Who may do what: a change of this table is a change of the contract. */
static void roles_are_as_they_were_decided(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        const char *least;
        const char *others;
    } wanted[] = {
        {"job_submit", "user", "user"},
        {"job_batch", "user", "user"},
        {"jobs_cancel", "user", "operator"},
        {"job_list", "viewer", "viewer"},
        {"job_get", "viewer", "viewer"},
        {"job_events", "viewer", "viewer"},
        {"job_why", "viewer", "viewer"},
        {"job_explain", "viewer", "viewer"},
        {"job_output", "viewer", "viewer"},
        {"job_files", "viewer", "viewer"},
        {"job_file", "viewer", "viewer"},
        {"job_cancel", "user", "operator"},
        {"job_resubmit", "user", "operator"},
        {"job_hide", "user", "operator"},
        {"job_unhide", "user", "operator"},
        {"queue_list", "viewer", "viewer"},
        {"queue_explain", "user", "operator"},
        {"queue_get", "viewer", "viewer"},
        {"queue_why", "viewer", "viewer"},
        {"queue_put", "admin", "admin"},
        {"queue_check", "viewer", "viewer"},
        {"queue_reroute", "operator", "operator"},
        {"queue_delete", "admin", "admin"},
        {"app_list", "viewer", "viewer"},
        {"app_get", "viewer", "viewer"},
        {"app_put", "admin", "admin"},
        {"app_delete", "admin", "admin"},
        {"app_enable", "admin", "admin"},
        {"app_disable", "admin", "admin"},
        {"system_list", "viewer", "viewer"},
        {"system_get", "viewer", "viewer"},
        {"system_put", "admin", "admin"},
        {"system_delete", "admin", "admin"},
        {"system_enable", "admin", "admin"},
        {"system_disable", "admin", "admin"},
        {"quota_list", "viewer", "viewer"},
        {"quota_get", "viewer", "viewer"},
        {"quota_put", "admin", "admin"},
        {"quota_delete", "admin", "admin"},
        {"worker_list", "viewer", "viewer"},
        {"worker_get", "viewer", "viewer"},
        {"worker_why", "viewer", "viewer"},
        {"worker_drain", "operator", "operator"},
        {"worker_undrain", "operator", "operator"},
        {"recovery_list", "viewer", "viewer"},
        {"recovery_get", "viewer", "viewer"},
        {"recovery_why", "viewer", "viewer"},
        {"recovery_check", "operator", "operator"},
        {"recovery_release", "operator", "operator"},
        {"recovery_fail", "operator", "operator"},
        {"subscription_list", "operator", "operator"},
        {"subscription_get", "operator", "operator"},
        {"subscription_put", "admin", "admin"},
        {"subscription_delete", "admin", "admin"},
        {"subscription_enable", "admin", "admin"},
        {"subscription_disable", "admin", "admin"},
        {"subscription_rotate", "admin", "admin"},
        {"delivery_list", "viewer", "viewer"},
        {"delivery_get", "viewer", "viewer"},
        {"delivery_redeliver", "operator", "operator"},
        {"dead_list", "operator", "operator"},
        {"dead_get", "operator", "operator"},
        {"dead_why", "operator", "operator"},
        {"dead_replay", "operator", "operator"},
        {"dead_discard", "operator", "operator"},
        {"overview", "viewer", "viewer"},
        {"events", "viewer", "viewer"},
        {"audit_list", "admin", "admin"},
        {"whoami", "viewer", "viewer"},
        {"openapi", NULL, NULL},
        {"error_page", NULL, NULL},
        {"livez", NULL, NULL},
        {"readyz", NULL, NULL},
        {"metrics", NULL, NULL},
        {"ui_index", NULL, NULL},
        {"ui_file", NULL, NULL},
    };
    assert_int_equal(ROUTE_COUNT, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        assert_string_equal(routes[i].name, wanted[i].name);
        assert_int_equal(routes[i].is_public, wanted[i].least == NULL);
        if (routes[i].is_public)
            continue;
        assert_string_equal(role_name(routes[i].least), wanted[i].least);
        assert_string_equal(role_name(routes[i].others), wanted[i].others);
    }
}

/* ---- the body of a queue --------------------------------------------------------------------- */

static enum err_code read_queue(const char *text, struct job_queue *queue, struct err *err)
{
    struct filter *filter = NULL;
    struct filter_report report = {0};
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    enum err_code rc = queue_body_read(root, 100, queue, &filter, &report, err);
    filter_free(filter);
    queue->filter = NULL; /* borrowed from root */
    json_decref(root);
    return rc;
}

static void a_queue_is_read_strictly(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        const char *pointer;
    } bad[] = {
        {"{}", "/priority"},
        {"{\"priority\":\"1\"}", "/priority"},
        {"{\"priority\":1.5}", "/priority"},
        {"{\"priority\":9999999999}", "/priority"},
        {"{\"priority\":1,\"filter\":3}", "/filter"},
        {"{\"priority\":1,\"filter\":\"owner = \"}", "/filter"},
        {"{\"priority\":1,\"queueType\":\"stream\"}", "/queueType"},
        {"{\"priority\":1,\"enabled\":1}", "/enabled"},
        {"{\"priority\":1,\"maxMinutes\":0}", "/maxMinutes"},
        {"{\"priority\":1,\"maxMinutes\":101}", "/maxMinutes"},
        {"{\"priority\":1,\"colour\":1}", "/colour"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct job_queue queue = {0};
        struct err err = {0};
        if (read_queue(bad[i].text, &queue, &err) == ERR_OK)
            fail_msg("%s was taken", bad[i].text);
        assert_string_equal(err.pointer, bad[i].pointer);
    }
    struct job_queue queue = {.enabled = true};
    struct err err = {0};
    assert_ok(read_queue("{\"priority\":-3,\"filter\":\"owner = 'a'\",\"enabled\":false,"
                         "\"queueType\":\"classic\",\"maxMinutes\":100,\"description\":\"d\"}",
                         &queue, &err));
    assert_int_equal(queue.priority, -3);
    assert_false(queue.enabled);
    assert_int_equal(queue.max_seconds, 6000);
    assert_string_equal(queue.queue_type, "classic");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_path_and_method_has_its_handler), TEST(other_paths_and_methods_have_none),
        TEST(a_path_tells_which_methods_it_knows),  TEST(parts_in_braces_are_handed_over),
        TEST(roles_are_as_they_were_decided),       TEST(a_queue_is_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
