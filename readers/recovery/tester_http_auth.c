/* SPDX-License-Identifier: MIT */
#include "readers/recovery/tester.h"
#include "readers/recovery/tester_curl.h"

#define UNAUTHORIZED 401
#define FORBIDDEN 403
#define PROXY_AUTH 407
#define SERVER_FAULT 500

static struct test_answer judge(long status)
{
    if (status == UNAUTHORIZED || status == FORBIDDEN || status == PROXY_AUTH)
        return test_says(TEST_NOT_YET, "the host still answers %ld", status);
    if (status >= SERVER_FAULT)
        return test_says(TEST_CANNOT_TELL, "the host answers %ld", status);
    return test_clear(TEST_ALL_JOBS); /* also 404: the job finds that out by itself */
}

struct test_answer tester_http_auth(const struct test_question *question)
{
    const char *url = test_param(question, "url");
    long status = 0;
    if (!url)
        return test_lacks("url");
    struct test_ask ask;
    if (!test_ask_begin(question, url, &ask))
        return test_says(TEST_CANNOT_TELL, "no memory");
    (void)curl_easy_setopt(ask.curl, CURLOPT_NOBODY, 1L);
    CURLcode code = test_ask(&ask);
    (void)curl_easy_getinfo(ask.curl, CURLINFO_RESPONSE_CODE, &status);
    test_ask_end(&ask);
    if (code != CURLE_OK && ask.refused)
        return test_refused(url);
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        return test_says(TEST_NEVER, "%s", curl_easy_strerror(code));
    if (code != CURLE_OK)
        return test_says(TEST_CANNOT_TELL, "%s", curl_easy_strerror(code));
    return judge(status);
}
