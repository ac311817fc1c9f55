/* SPDX-License-Identifier: MIT */
#include "worker/fetch_address.h"

#include <string.h>

/* One part of a URL as text; "" in place of one that is not there. */
static bool copy_part(CURLU *url, CURLUPart part, char *ret_text, size_t size)
{
    char *text = NULL;
    bool good =
        curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK && strlen(text) < size;
    (void)snprintf(ret_text, size, "%s", good ? text : "");
    curl_free(text);
    return good;
}

static void strip(CURLU *url)
{
    (void)curl_url_set(url, CURLUPART_USER, NULL, 0);
    (void)curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
    (void)curl_url_set(url, CURLUPART_OPTIONS, NULL, 0);
    (void)curl_url_set(url, CURLUPART_QUERY, NULL, 0);
    (void)curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0);
}

bool fetch_split(CURLU *url, struct fetch_cause *cause)
{
    char host[FETCH_HOST_SIZE];
    char port[8];
    uint64_t number = 0;
    if (!copy_part(url, CURLUPART_HOST, host, sizeof(host)) ||
        !copy_part(url, CURLUPART_PORT, port, sizeof(port)) ||
        !sv_u64(sv_of(port), UINT16_MAX, &number))
        return false;
    bool literal = host[0] == '[';
    (void)snprintf(cause->host, sizeof(cause->host), "%.*s", (int)strcspn(host + literal, "]"),
                   host + literal);
    cause->port = (uint16_t)number;
    strip(url);
    return copy_part(url, CURLUPART_URL, cause->url, sizeof(cause->url));
}
