/* SPDX-License-Identifier: MIT */
/* The refusals of the contract: which statuses a route has, and what stands in them. */
#include "webapp/openapi_impl.h"

#include "common/base/buf.h"

#include <microhttpd.h>

#define DESCRIPTION_LIMIT ((size_t)8192)

bool openapi_has_word(const json_t *list, const char *word)
{
    size_t i = 0;
    const json_t *item = NULL;
    json_array_foreach(list, i, item)
    {
        if (strcmp(json_string_value(item), word) == 0)
            return true;
    }
    return false;
}

/* Any request may meet these. */
static bool is_everywhere(unsigned status)
{
    return status == MHD_HTTP_BAD_REQUEST || status == MHD_HTTP_REQUEST_TIMEOUT ||
           status == MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE ||
           status == MHD_HTTP_INTERNAL_SERVER_ERROR || status == MHD_HTTP_SERVICE_UNAVAILABLE ||
           status == MHD_HTTP_GATEWAY_TIMEOUT;
}

static bool refuses(const struct route *route, const json_t *own, unsigned status, const char *text)
{
    if (is_everywhere(status) || openapi_has_word(own, text))
        return true;
    if (status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN ||
        status == MHD_HTTP_TOO_MANY_REQUESTS)
        return !route->is_public;
    if (status == MHD_HTTP_NOT_FOUND)
        return strchr(route->path, '{') != NULL;
    if (status == MHD_HTTP_CONTENT_TOO_LARGE || status == MHD_HTTP_UNSUPPORTED_MEDIA_TYPE)
        return route_has_body(route);
    return false;
}

static bool is_a_status(unsigned status)
{
    for (int code = ERR_OK + 1; code < ERR_CODE_COUNT; code++) {
        if ((unsigned)err_http((enum err_code)code) == status)
            return true;
    }
    return false;
}

json_t *openapi_refusals(const struct route *route, const json_t *source)
{
    const json_t *own = json_object_get(json_object_get(source, "x-refusals"), route->name);
    json_t *list = json_array();
    for (unsigned status = MHD_HTTP_BAD_REQUEST; status < 600; status++) {
        char text[OPENAPI_STATUS_SIZE];
        (void)snprintf(text, sizeof(text), "%u", status);
        if (is_a_status(status) && refuses(route, own, status, text))
            json_array_append_new(list, json_string(text));
    }
    return list;
}

static json_t *header(const char *name)
{
    return openapi_reference("headers", name);
}

static json_t *headers_of(unsigned status)
{
    json_t *headers = json_pack("{s:o}", "X-Request-Id", header("X-Request-Id"));
    json_object_set_new(headers, "traceparent", header("traceparent"));
    if (status == MHD_HTTP_UNAUTHORIZED)
        json_object_set_new(headers, "WWW-Authenticate", header("WWW-Authenticate"));
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        json_object_set_new(headers, "Allow", header("Allow"));
    if (status == MHD_HTTP_RANGE_NOT_SATISFIABLE)
        json_object_set_new(headers, "Content-Range", header("Content-Range"));
    if (status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE ||
        status == MHD_HTTP_GATEWAY_TIMEOUT)
        json_object_set_new(headers, "Retry-After", header("Retry-After"));
    return headers;
}

/* The problem document with what this status leaves open of it. */
static json_t *problem(unsigned status)
{
    BUF_AUTO struct buf description = BUF_INIT(DESCRIPTION_LIMIT);
    json_t *codes = json_array();
    for (int code = ERR_OK + 1; code < ERR_CODE_COUNT; code++) {
        enum err_code each = (enum err_code)code;
        char text[OPENAPI_TEXT_SIZE];
        if ((unsigned)err_http(each) != status)
            continue;
        (void)snprintf(text, sizeof(text), "SLUICE-%d", err_number(each));
        json_array_append_new(codes, json_string(text));
        buf_addf(&description, "%s%s: %s. %s", description.len ? "\n\n" : "", text, err_title(each),
                 err_help(each));
    }
    json_t *open = json_pack("{s:{s:{s:i},s:{s:s,s:o}}}", "properties", "status", "const",
                             (int)status, "code", "type", "string", "enum", codes);
    json_t *schema = json_pack("{s:[o,o]}", "allOf", openapi_reference("schemas", "Problem"), open);
    return json_pack("{s:s,s:o,s:{s:{s:o}}}", "description", buf_text(&description), "headers",
                     headers_of(status), "content", "application/problem+json", "schema", schema);
}

json_t *openapi_problems(const json_t *statuses)
{
    json_t *problems = json_object();
    for (unsigned status = MHD_HTTP_BAD_REQUEST; status < 600; status++) {
        char text[OPENAPI_STATUS_SIZE];
        char name[OPENAPI_KEY_SIZE];
        (void)snprintf(text, sizeof(text), "%u", status);
        (void)snprintf(name, sizeof(name), "Problem%u", status);
        if (openapi_has_word(statuses, text) || status == MHD_HTTP_METHOD_NOT_ALLOWED)
            json_object_set_new(problems, name, problem(status));
    }
    return problems;
}
