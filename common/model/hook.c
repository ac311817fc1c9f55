/* SPDX-License-Identifier: MIT */
#include "common/model/hook.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

static enum err_code refuse(struct err *err, const char *why)
{
    return err_set(err, ERR_INVALID, "a webhook's URL %s", why);
}

/* Past the scheme; NULL: it is another one. */
static const char *read_scheme(const char *url, bool *ret_https)
{
    *ret_https = strncasecmp(url, "https://", 8) == 0;
    if (*ret_https)
        return url + 8;
    return strncasecmp(url, "http://", 7) == 0 ? url + 7 : NULL;
}

static bool is_host(struct sv host)
{
    bool bracketed = host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
    for (size_t i = bracketed; i < host.len - bracketed; i++) {
        unsigned char c = (unsigned char)host.ptr[i];
        bool good =
            bracketed ? isxdigit(c) || c == ':' || c == '.' : isalnum(c) || strchr("-._", c);
        if (!good)
            return false;
    }
    return host.len > 0 && host.len <= 255;
}

/* "host", "host:port", "[::1]:port" */
static bool read_authority(struct sv text, struct hook_url *url)
{
    uint64_t port = url->is_https ? 443 : 80;
    const char *close = text.len > 0 && text.ptr[0] == '[' ? memchr(text.ptr, ']', text.len) : NULL;
    size_t from = close ? (size_t)(close - text.ptr) : 0;
    const char *colon = memchr(text.ptr + from, ':', text.len - from);
    url->host = (struct sv){text.ptr, colon ? (size_t)(colon - text.ptr) : text.len};
    if (colon) {
        struct sv digits = {colon + 1, text.len - url->host.len - 1};
        if (!sv_u64(digits, UINT16_MAX, &port) || port == 0)
            return false;
    }
    url->port = (uint16_t)port;
    return is_host(url->host);
}

enum err_code hook_url_read(const char *url, struct hook_url *ret_url, struct err *err)
{
    struct hook_url parts = {0};
    if (strlen(url) > HOOK_URL_BYTES)
        return err_set(err, ERR_INVALID, "a webhook's URL has at most %d bytes", HOOK_URL_BYTES);
    for (const char *at = url; *at; at++) {
        if (*at <= ' ' || *at > '~' || *at == '\\')
            return refuse(err, "has no blanks, control characters, backslashes or letters beyond "
                               "ASCII");
    }
    const char *rest = read_scheme(url, &parts.is_https);
    if (!rest)
        return refuse(err, "begins with https:// or http://");
    if (strchr(rest, '#'))
        return refuse(err, "has no fragment (#)");
    struct sv authority = {rest, strcspn(rest, "/?")};
    if (memchr(authority.ptr, '@', authority.len))
        return refuse(err, "has no user or password; deliveries are signed instead");
    if (!read_authority(authority, &parts))
        return refuse(err, "names a host, and perhaps a port from 1 to 65535");
    *ret_url = parts;
    return ERR_OK;
}

const char *hook_states_text(unsigned states, char *ret_text)
{
    size_t length = 0;
    ret_text[0] = 0;
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        if (states & 1u << i)
            length += (size_t)snprintf(ret_text + length, HOOK_STATES_SIZE - length, "%s%s",
                                       length ? "," : "", job_state_text((enum job_state)i));
    }
    return ret_text;
}

unsigned hook_states_parse(const char *text)
{
    unsigned states = 0;
    while (*text) {
        enum job_state state;
        size_t length = strcspn(text, ",");
        if (job_state_parse((struct sv){text, length}, &state))
            states |= 1u << state;
        text += length + (text[length] == ',');
    }
    return states;
}
