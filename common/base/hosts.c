/* SPDX-License-Identifier: MIT */
#include "common/base/hosts.h"

#include "common/base/sv.h"

#define PORT_MAX 65535
#define BLANKS " \t"

static struct sv trimmed(const char *text, size_t length)
{
    size_t blanks = strspn(text, BLANKS);
    struct sv part = {text + blanks, blanks < length ? length - blanks : 0};
    while (part.len > 0 && strchr(BLANKS, part.ptr[part.len - 1]))
        part.len--;
    return part;
}

/* Where the name ends: an IPv6 address has colons of its own, and brackets if a port follows. */
static bool split(struct sv part, struct sv *ret_name, struct sv *ret_port)
{
    const char *end = part.ptr + part.len;
    const char *colon = memchr(part.ptr, ':', part.len);
    *ret_name = part;
    *ret_port = (struct sv){end, 0};
    if (part.len > 0 && part.ptr[0] == '[') {
        const char *close = memchr(part.ptr, ']', part.len);
        if (!close || (close + 1 < end && close[1] != ':'))
            return false;
        *ret_name = (struct sv){part.ptr + 1, (size_t)(close - part.ptr - 1)};
        colon = close + 1 < end ? close + 1 : NULL;
    } else if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1))) {
        return true;
    } else if (colon) {
        ret_name->len = (size_t)(colon - part.ptr);
    }
    if (colon)
        *ret_port = (struct sv){colon + 1, (size_t)(end - colon - 1)};
    return !colon || ret_port->len > 0;
}

static bool read_one(struct sv part, int port, struct host *ret_host)
{
    struct sv name, digits;
    uint64_t number = (uint64_t)port;
    if (!split(part, &name, &digits) || name.len == 0)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (strchr(BLANKS "[]/@", name.ptr[i]))
            return false;
    if (digits.len > 0 && (!sv_u64(digits, PORT_MAX, &number) || number == 0))
        return false;
    ret_host->port = (int)number;
    return sv_copy(name, ret_host->name, sizeof(ret_host->name));
}

unsigned hosts_count(const char *text)
{
    struct host host;
    unsigned count = 0;
    for (const char *at = text; at; count++) {
        size_t length = strcspn(at, ",");
        if (count == HOSTS_MAX || !read_one(trimmed(at, length), 0, &host))
            return 0;
        at = at[length] ? at + length + 1 : NULL;
    }
    return count;
}

bool hosts_at(const char *text, unsigned which, int port, struct host *ret_host)
{
    unsigned count = hosts_count(text);
    if (count == 0)
        return false;
    const char *at = text;
    for (unsigned i = which % count; i > 0; i--)
        at += strcspn(at, ",") + 1;
    return read_one(trimmed(at, strcspn(at, ",")), port, ret_host);
}
