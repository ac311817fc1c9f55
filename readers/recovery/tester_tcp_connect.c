/* SPDX-License-Identifier: MIT */
#include "readers/recovery/tester.h"
#include "readers/recovery/tester_curl.h"

struct test_answer tester_tcp_connect(const struct test_question *question)
{
    const char *host = test_param(question, "host");
    json_int_t port = json_integer_value(json_object_get(question->params, "port"));
    char url[400];
    char detail[TEST_DETAIL_SIZE];
    if (!host || port < 1 || port > UINT16_MAX)
        return test_lacks(host ? "port" : "host");
    bool bare_v6 = strchr(host, ':') && host[0] != '[';
    (void)snprintf(url, sizeof(url), bare_v6 ? "http://[%.300s]:%d/" : "http://%.300s:%d/", host,
                   (int)port);
    struct test_ask ask;
    if (!test_ask_begin(question, url, &ask))
        return test_says(TEST_CANNOT_TELL, "no memory");
    (void)curl_easy_setopt(ask.curl, CURLOPT_CONNECT_ONLY, 1L);
    CURLcode code = test_ask(&ask);
    test_ask_end(&ask);
    if (code == CURLE_OK)
        return test_clear(TEST_ALL_JOBS);
    if (ask.refused)
        return test_refused(host);
    (void)snprintf(detail, sizeof(detail), "%.200s port %d: %s", host, (int)port,
                   curl_easy_strerror(code));
    return test_says(code == CURLE_URL_MALFORMAT ? TEST_NEVER : TEST_NOT_YET, "%s", detail);
}
