/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_SHOWN_URL_H
#define COMMON_BASE_SHOWN_URL_H

/* shown_url: an address as people may see it, in reasons and logs: without user, password, query
 * and fragment, which may hold credentials; cut, and fit to be quoted (last_line.h).
 * Threads: any. Memory: none. */

#include "common/base/base.h"

#define SHOWN_URL_SIZE 154

/* "http" and "..." alone if it cannot be told where a password ends. Answers ret_text. */
const char *shown_url(const char *url, char ret_text[SHOWN_URL_SIZE]);

#endif
