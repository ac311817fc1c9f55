/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_PROBLEM_H
#define WEBAPP_PROBLEM_H

/* problem: an error as an RFC 9457 document. Threads: any. Memory: the caller drops the result. */

#include "common/base/err.h"

#include <jansson.h>

#define PROBLEM_TYPE "application/problem+json"

/* instance: the path; "/" if it is not known. Either text may be NULL: then it is left out. */
json_t *problem_of(const struct err *err, const char *instance, size_t instance_length,
                   const char *request_id);
/* What a client, and a tenant's audit log, is told of it: of faults of ours and of our servers
 * fixed words, for their texts name accounts, hosts and paths. Those are in the log. */
const char *problem_detail(const struct err *err);
/* Text from outside as JSON: bytes that are not UTF-8 become U+FFFD. */
json_t *problem_text(const char *text, size_t length);

#endif
