/* SPDX-License-Identifier: MIT */
#include "worker/glob.h"

#include "common/base/buf.h"
#include "tests/fuzz/fuzz.h"

/* Input: a pattern, a line feed and a path. The answer is that of a slow matcher which tries every
 * way; short texts only, for its sake. */

#define SHORT 24
#define STARS_MAX 8

/* The set at the beginning of the pattern; 0: it has no end, so that '[' stands for itself. */
static size_t set_length(const char *pattern)
{
    size_t at = pattern[1] == '!' || pattern[1] == '^' ? 2 : 1;
    for (size_t first = at; pattern[at] && (pattern[at] != ']' || at == first); at++) {
        if (pattern[at + 1] == '-' && pattern[at + 2] && pattern[at + 2] != ']')
            at += 2;
    }
    return pattern[at] ? at + 1 : 0;
}

static bool set_has(const char *pattern, size_t length, unsigned char byte)
{
    bool negated = pattern[1] == '!' || pattern[1] == '^';
    bool found = false;
    for (size_t at = negated ? 2 : 1; at + 1 < length; at++) {
        unsigned char low = (unsigned char)pattern[at];
        unsigned char high = low;
        if (at + 3 < length && pattern[at + 1] == '-') {
            high = (unsigned char)pattern[at + 2];
            at += 2;
        }
        found = found || (low <= byte && byte <= high);
    }
    return found != negated;
}

static bool slow(const char *start, const char *pattern, const char *path);

static bool slow_stars(const char *start, const char *pattern, const char *path)
{
    bool parts = pattern[2] == '/' && (pattern == start || pattern[-1] == '/');
    const char *rest = pattern + (parts ? 3 : 2);
    if (slow(start, rest, path))
        return true;
    for (; *path; path++) {
        if ((!parts || *path == '/') && slow(start, rest, path + 1))
            return true;
    }
    return false;
}

static bool slow_star(const char *start, const char *pattern, const char *path)
{
    for (;; path++) {
        if (slow(start, pattern + 1, path))
            return true;
        if (!*path || *path == '/')
            return false;
    }
}

static bool slow_byte(const char *start, const char *pattern, const char *path)
{
    size_t length = *pattern == '[' ? set_length(pattern) : 0;
    if (!*path)
        return false;
    if (length > 0)
        return *path != '/' && set_has(pattern, length, (unsigned char)*path) &&
               slow(start, pattern + length, path + 1);
    if (*pattern == '?')
        return *path != '/' && slow(start, pattern + 1, path + 1);
    if (*pattern == '\\' && pattern[1])
        pattern++;
    return *pattern == *path && slow(start, pattern + 1, path + 1);
}

static bool slow(const char *start, const char *pattern, const char *path)
{
    if (!*pattern)
        return !*path;
    if (pattern[0] == '*' && pattern[1] == '*')
        return slow_stars(start, pattern, path);
    if (*pattern == '*')
        return slow_star(start, pattern, path);
    return slow_byte(start, pattern, path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct sv path;
    struct sv pattern = first_line(bytes, size, &path);
    BUF_AUTO struct buf first = BUF_INIT(size + 1);
    BUF_AUTO struct buf second = BUF_INIT(size + 1);
    buf_add_sv(&first, pattern);
    buf_add_sv(&second, path);
    const char *p = buf_text(&first);
    const char *text = buf_text(&second);
    bool matches = glob_match(p, text);
    MUST(!matches || glob_covers(p, text));
    size_t stars = 0;
    for (const char *c = p; *c; c++)
        stars += *c == '*';
    if (strlen(p) <= SHORT && strlen(text) <= SHORT && stars <= STARS_MAX)
        MUST(matches == slow(p, p, text));
    return 0;
}
