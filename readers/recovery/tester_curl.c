/* SPDX-License-Identifier: MIT */
#include "readers/recovery/tester_curl.h"

CURL *test_curl(const struct test_question *question, const char *url)
{
    CURL *curl = curl_easy_init();
    if (!curl)
        return NULL;
    CURLcode code = curl_easy_setopt(curl, CURLOPT_URL, url);
    if (code == CURLE_OK)
        code = curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    if (code == CURLE_OK)
        code = curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (code == CURLE_OK)
        code = curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    if (code == CURLE_OK)
        code = curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)test_left_ms(question));
    if (code == CURLE_OK)
        return curl;
    curl_easy_cleanup(curl);
    return NULL;
}
