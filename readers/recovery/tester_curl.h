/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_TESTER_CURL_H
#define READERS_RECOVERY_TESTER_CURL_H

/* tester_curl: what testers that ask by libcurl share: the deadline, no redirection, no proxy, and
 * only addresses that a test may go to. These are looked at when the socket is made, after the name
 * was resolved: a name may stand for another address each time.
 * Threads: any. Memory: test_ask_end() frees. */

#include "readers/recovery/tester.h"

#include <curl/curl.h>

struct test_ask {
    const struct test_site *site;
    CURL *curl;
    bool refused; /* an address was */
};

/* false: no memory. ret_ask must stay where it is. */
MUST_USE bool test_ask_begin(const struct test_question *question, const char *url,
                             struct test_ask *ret_ask);
CURLcode test_ask(struct test_ask *ask);
void test_ask_end(struct test_ask *ask);
/* For an ask that failed because of an address: it counts as a test, so that patience ends. */
struct test_answer test_refused(const char *host);

#endif
