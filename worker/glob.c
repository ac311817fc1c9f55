/* SPDX-License-Identifier: MIT */
#include "worker/glob.h"

#define GLOB_PATH_MAX 4096

/* Does [set] match the byte? *ret_length is its length in the pattern; a '[' without its ']' stands
 * for itself. */
static bool in_set(const char *pattern, unsigned char byte, size_t *ret_length)
{
    size_t at = 1;
    bool negated = pattern[at] == '!' || pattern[at] == '^';
    bool found = false;
    at += negated;
    size_t first = at;
    while (pattern[at] && (pattern[at] != ']' || at == first)) {
        unsigned char low = (unsigned char)pattern[at];
        unsigned char high = low;
        if (pattern[at + 1] == '-' && pattern[at + 2] && pattern[at + 2] != ']') {
            high = (unsigned char)pattern[at + 2];
            at += 2;
        }
        found |= low <= byte && byte <= high;
        at++;
    }
    *ret_length = pattern[at] ? at + 1 : 1;
    return pattern[at] ? found != negated : byte == '[';
}

/* One byte against what the pattern has there; *ret_length: of that. */
static bool one(const char *pattern, unsigned char byte, size_t *ret_length)
{
    *ret_length = 1;
    if (*pattern == '?')
        return byte != '/';
    if (*pattern == '[')
        return in_set(pattern, byte, ret_length) && byte != '/';
    if (*pattern == '\\' && pattern[1]) {
        *ret_length = 2;
        return (unsigned char)pattern[1] == byte;
    }
    return *pattern && (unsigned char)*pattern == byte;
}

/* Where matching may begin again: after the last star, with one byte more beneath it. */
struct again {
    const char *pattern;
    const char *path;
    bool parts; /* only at the beginning of a part of the path */
};

static bool advance(struct again *stars)
{
    const char *next = stars->path;
    if (stars->parts)
        next = strchr(next, '/');
    if (!next || !*next)
        return false;
    stars->path = next + 1;
    return true;
}

bool glob_match(const char *pattern, const char *path)
{
    struct again star = {0};  /* '*': not across '/' */
    struct again stars = {0}; /* '**' */
    const char *start = pattern;
    while (*path || *pattern) {
        size_t length = 0;
        if (pattern[0] == '*' && pattern[1] == '*') {
            /* A part of its own may stand for nothing at all. */
            bool parts = pattern[2] == '/' && (pattern == start || pattern[-1] == '/');
            pattern += parts ? 3 : 2;
            stars = (struct again){pattern, path, parts};
            star = (struct again){0};
        } else if (*pattern == '*') {
            star = (struct again){++pattern, path, false};
        } else if (*path && one(pattern, (unsigned char)*path, &length)) {
            pattern += length;
            path++;
        } else if (star.pattern && *star.path && *star.path != '/') {
            pattern = star.pattern;
            path = ++star.path;
        } else if (stars.pattern && advance(&stars)) {
            pattern = stars.pattern;
            path = stars.path;
            star = (struct again){0};
        } else {
            return false;
        }
    }
    return true;
}

bool glob_covers(const char *pattern, const char *path)
{
    char above[GLOB_PATH_MAX];
    size_t length = strlen(path);
    if (glob_match(pattern, path))
        return true;
    if (length >= sizeof(above))
        return false;
    memcpy(above, path, length + 1);
    for (char *slash = strrchr(above, '/'); slash; slash = strrchr(above, '/')) {
        *slash = 0;
        if (glob_match(pattern, above))
            return true;
    }
    return false;
}
