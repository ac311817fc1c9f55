/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_URI_H
#define WEBAPP_URI_H

/* uri: a request's path and query, taken apart strictly. Percent signs are decoded after the split,
 * so that %2F never makes a segment; NUL, broken escapes and bytes that are not UTF-8 are refused,
 * but for escaped bytes of the path, which name files as they are.
 * Threads: owner. Memory: one block; views live until uri_done(). */

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/sv.h"

#define URI_SEGMENTS_MAX 64
#define URI_QUERY_MAX 64

struct uri_param {
    struct sv name;
    struct sv value; /* empty for "?name" */
};

struct uri {
    char *sent;         /* the request's target as it was sent; ended by NUL */
    const char *raw;    /* its path and query; in sent, behind the host of an absolute target */
    char *block;        /* the decoded texts */
    size_t path_length; /* of raw */
    struct sv segments[URI_SEGMENTS_MAX];
    size_t segment_count;
    bool path_is_text; /* every segment is UTF-8 */
    struct uri_param query[URI_QUERY_MAX];
    size_t query_count;
};

/* "/v1/jobs?limit=3". On an error ret_uri holds sent and raw only. */
MUST_USE enum err_code uri_parse(const char *raw, struct uri *ret_uri, struct err *err);
void uri_done(struct uri *uri);
/* Writes a path so that it is one again when it is decoded: '/' and what needs no escape as it is.
 */
void uri_encode(struct sv path, struct buf *ret_text);
/* The first parameter of this name; false if there is none. */
bool uri_query(const struct uri *uri, const char *name, struct sv *ret_value);
/* The n-th of this name, from 0. */
bool uri_query_at(const struct uri *uri, const char *name, size_t n, struct sv *ret_value);

#endif
