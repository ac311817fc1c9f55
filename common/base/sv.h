/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_SV_H
#define COMMON_BASE_SV_H

/* sv: a view of text that somebody else owns; not ended by NUL.
 * Threads: any. Memory: borrowed. */

#include "common/base/base.h"

struct sv {
    const char *ptr;
    size_t len;
};

#define SV(literal) ((struct sv){(literal), sizeof(literal) - 1})
/* For printf: "%.*s", SV_ARG(view). */
#define SV_ARG(view) (int)(view).len, (view).ptr

static inline struct sv sv_of(const char *text)
{
    return (struct sv){text, text ? strlen(text) : 0};
}

static inline bool sv_eq(struct sv a, struct sv b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool sv_is(struct sv a, const char *text)
{
    return sv_eq(a, sv_of(text));
}

/* Not so for the database, which compares texts as if blanks at the end were not there. */
static inline bool sv_has_blank_end(struct sv a)
{
    return a.len > 0 && (a.ptr[0] == ' ' || a.ptr[a.len - 1] == ' ');
}

/* A whole non-negative decimal number with nothing around it, at most max. */
MUST_USE bool sv_u64(struct sv text, uint64_t max, uint64_t *ret_value);
int sv_hex(char digit); /* its value; -1 if it is none */
#define SV_DISTANCE_MAX 64
/* How many characters must be put in, taken out or changed to make b of a, letters in any case
 * (Levenshtein); SIZE_MAX if one is longer than SV_DISTANCE_MAX. */
size_t sv_distance(struct sv a, struct sv b);
/* Valid UTF-8 (RFC 3629: no surrogates, no overlong forms). */
MUST_USE bool sv_is_utf8(struct sv text);
/* Copies into a buffer of size bytes and ends it; false if it does not fit or holds a NUL. */
MUST_USE bool sv_copy(struct sv text, char *ret_text, size_t size);

#endif
