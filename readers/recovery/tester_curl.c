/* SPDX-License-Identifier: MIT */
#include "readers/recovery/tester_curl.h"

#include <sys/socket.h>

static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct test_ask *ask = arg;
    const struct test_site *site = ask->site;
    if (purpose != CURLSOCKTYPE_IPCXN || !address_may(&site->networks, &address->addr) ||
        (!site->link_local && address_is_of_host(&address->addr))) {
        ask->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

bool test_ask_begin(const struct test_question *question, const char *url, struct test_ask *ret_ask)
{
    *ret_ask = (struct test_ask){.site = question->site, .curl = curl_easy_init()};
    CURL *curl = ret_ask->curl;
    if (!curl)
        return false;
    CURLcode bad = CURLE_OK;
    bad |= curl_easy_setopt(curl, CURLOPT_URL, url);
    bad |= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    bad |= curl_easy_setopt(curl, CURLOPT_PROXY, "");
    bad |= curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    bad |= curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)test_left_ms(question));
    bad |= curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    bad |= curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, ret_ask);
    if (bad == CURLE_OK)
        return true;
    test_ask_end(ret_ask);
    return false;
}

CURLcode test_ask(struct test_ask *ask)
{
    return curl_easy_perform(ask->curl);
}

void test_ask_end(struct test_ask *ask)
{
    curl_easy_cleanup(ask->curl);
    ask->curl = NULL;
}

struct test_answer test_refused(const char *host)
{
    return test_says(
        TEST_NOT_YET,
        "%.150s: tests do not go to this address (recovery.test_networks); release the "
        "group when it is clear",
        host);
}
