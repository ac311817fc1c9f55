/* SPDX-License-Identifier: MIT */
#include "common/base/shown_url.h"

#include "common/base/last_line.h"

#include <stdio.h>
#include <string.h>

/* Behind the host and its ':', if there is one outside of brackets. */
static const char *port_of(struct sv server)
{
    for (size_t at = server.len; at > 0 && server.ptr[at - 1] != ']'; at--) {
        if (server.ptr[at - 1] == ':')
            return server.ptr + at;
    }
    return NULL;
}

/* A '/', '?' or '#' in a password ends what is taken for host and port, and an '@' comes later. A
 * port of digits may be the begin of one, too; behind a '?' an '@' is common, so it counts less. */
static bool may_be_password(struct sv server, const char *path)
{
    const char *port = port_of(server);
    if (!port || !strchr(path, '@'))
        return false;
    size_t digits = strspn(port, "0123456789");
    return port + digits != server.ptr + server.len || memchr(path, '@', strcspn(path, "?#"));
}

const char *shown_url(const char *url, char ret_text[SHOWN_URL_SIZE])
{
    const char *scheme_end = strstr(url, "://");
    const char *authority = scheme_end ? scheme_end + 3 : url;
    const char *path = authority + strcspn(authority, "/?#\\");
    const char *host = authority;
    const char *end = path + strcspn(path, "?#");
    for (const char *at = authority; at < path; at++) {
        if (*at == '@')
            host = at + 1;
    }
    struct sv server = {host, (size_t)(path - host)};
    if (may_be_password(server, path)) {
        (void)snprintf(ret_text, SHOWN_URL_SIZE, "%.*s...", scheme_end ? (int)(authority - url) : 0,
                       url);
        return ret_text;
    }
    size_t used = scheme_end && authority - url < 10 ? (size_t)(authority - url) : 0;
    memcpy(ret_text, url, used);
    struct sv rest = {host, (size_t)(end - host)};
    (void)text_quotable(rest, ret_text + used, SHOWN_URL_SIZE - 3 - used);
    if (rest.len > SHOWN_URL_SIZE - 4 - used)
        memcpy(ret_text + strlen(ret_text), "...", sizeof("..."));
    return ret_text;
}
