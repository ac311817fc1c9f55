/* SPDX-License-Identifier: MIT */
#include "webapp/cors.h"

#include "common/base/sv.h"

#include <ctype.h>

#define ORIGINS_MAX 64
#define ORIGIN_SIZE 256

static const char request_headers[] =
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Range, "
    "X-Request-Id, traceparent";
static const char answer_headers[] =
    "Accept-Ranges, Allow, Content-Disposition, Content-Range, ETag, Location, Retry-After, "
    "WWW-Authenticate, X-Request-Id, traceparent";

struct cors {
    size_t count;
    char origins[ORIGINS_MAX][ORIGIN_SIZE];
    char max_age[16];
};

/* As a browser sends it: scheme, host in small letters, port if it is not the scheme's. */
static bool is_origin(struct sv text)
{
    static const char *const schemes[] = {"https://", "http://"};
    size_t start = 0;
    for (size_t i = 0; i < ARRAY_LEN(schemes) && start == 0; i++) {
        size_t length = strlen(schemes[i]);
        if (text.len > length && memcmp(text.ptr, schemes[i], length) == 0)
            start = length;
    }
    for (size_t i = start; start > 0 && i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        if (!isdigit(byte) && !islower(byte) && !strchr(".-:[]", byte))
            return false;
    }
    return start > 0;
}

static struct sv trimmed(struct sv text)
{
    while (text.len > 0 && text.ptr[0] == ' ')
        text = (struct sv){text.ptr + 1, text.len - 1};
    while (text.len > 0 && text.ptr[text.len - 1] == ' ')
        text.len--;
    return text;
}

static enum err_code add(struct cors *cors, struct sv origin, struct err *err)
{
    if (cors->count == ORIGINS_MAX)
        return err_set(err, ERR_CONFIG, "web.cors_origins: more than %d origins", ORIGINS_MAX);
    if (!is_origin(origin) || !sv_copy(origin, cors->origins[cors->count], ORIGIN_SIZE))
        return err_set(err, ERR_CONFIG,
                       "web.cors_origins: '%.*s' is not an origin as https://portal.example.org "
                       "(scheme, host, port if need be; no path, no wildcard)",
                       (int)(origin.len < 100 ? origin.len : 100), origin.ptr);
    cors->count++;
    return ERR_OK;
}

enum err_code cors_open(const struct config *cfg, struct cors **ret_cors, struct err *err)
{
    const char *at = cfg->web_cors_origins;
    enum err_code rc = ERR_OK;
    *ret_cors = NULL;
    if (!*at)
        return ERR_OK;
    struct cors *cors = calloc(1, sizeof(*cors));
    if (!cors)
        return err_set(err, ERR_NOMEM, "out of memory");
    (void)snprintf(cors->max_age, sizeof(cors->max_age), "%u", cfg->web_cors_max_age_s);
    while (rc == ERR_OK && *at) {
        size_t length = strcspn(at, ",");
        rc = add(cors, trimmed((struct sv){at, length}), err);
        at += length + (at[length] == ',');
    }
    if (rc) {
        free(cors);
        return rc;
    }
    *ret_cors = cors;
    return ERR_OK;
}

void cors_free(struct cors *cors)
{
    free(cors);
}

static bool allows(const struct cors *cors, const char *origin)
{
    for (size_t i = 0; origin && i < cors->count; i++) {
        if (strcmp(cors->origins[i], origin) == 0)
            return true;
    }
    return false;
}

void cors_answer(const struct cors *cors, const char *origin, struct MHD_Response *response)
{
    if (!cors)
        return;
    (void)MHD_add_response_header(response, "Vary", "Origin");
    if (!allows(cors, origin))
        return;
    (void)MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
    (void)MHD_add_response_header(response, "Access-Control-Expose-Headers", answer_headers);
}

void cors_preflight(const struct cors *cors, const char *origin, const char *methods,
                    struct MHD_Response *response)
{
    if (!cors || !allows(cors, origin))
        return;
    (void)MHD_add_response_header(response, "Access-Control-Allow-Methods", methods);
    (void)MHD_add_response_header(response, "Access-Control-Allow-Headers", request_headers);
    (void)MHD_add_response_header(response, "Access-Control-Max-Age", cors->max_age);
}
