/* SPDX-License-Identifier: MIT */
#include "common/store/migration.h"

static struct sv trim(struct sv text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1]))
        text.len--;
    return text;
}

static struct sv take_line(struct sv *rest)
{
    const char *end = memchr(rest->ptr, '\n', rest->len);
    struct sv line = {rest->ptr, end ? (size_t)(end - rest->ptr) + 1 : rest->len};
    rest->ptr += line.len;
    rest->len -= line.len;
    return trim(line);
}

static bool is_comment(struct sv line)
{
    return line.len == 0 || (line.len >= 2 && memcmp(line.ptr, "--", 2) == 0);
}

/* Comment lines inside a statement are left to the server, which knows them too. */
bool migration_next(struct sv *rest, struct sv *ret_statement)
{
    const char *begin = NULL;
    while (rest->len > 0) {
        struct sv before = *rest;
        struct sv line = take_line(rest);
        if (is_comment(line))
            continue;
        if (!begin)
            begin = before.ptr;
        if (line.ptr[line.len - 1] == ';') {
            *ret_statement = trim((struct sv){begin, (size_t)(line.ptr + line.len - 1 - begin)});
            return true;
        }
    }
    if (begin) {
        rest->len = (size_t)(rest->ptr - begin);
        rest->ptr = begin;
    }
    return false;
}
