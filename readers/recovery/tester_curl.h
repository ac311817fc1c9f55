/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_TESTER_CURL_H
#define READERS_RECOVERY_TESTER_CURL_H

/* tester_curl: what the testers that reach other hosts share. Threads: any. */

#include "readers/recovery/tester.h"

#include <curl/curl.h>

/* For http and https only, ended at the deadline, through no proxy; curl_easy_cleanup() it.
 * NULL: no memory. */
CURL *test_curl(const struct test_question *question, const char *url);

#endif
