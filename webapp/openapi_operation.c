/* SPDX-License-Identifier: MIT */
/* One operation of the contract: what it takes and what it answers. */
#include "webapp/openapi_impl.h"

#include <microhttpd.h>

json_t *openapi_reference(const char *kind, const char *name)
{
    char text[OPENAPI_TEXT_SIZE];
    (void)snprintf(text, sizeof(text), "#/components/%s/%s", kind, name);
    return json_pack("{s:s}", "$ref", text);
}

struct sv openapi_resource(const char *path)
{
    static const char version[] = "/v1/";
    path += strncmp(path, version, sizeof(version) - 1) == 0 ? sizeof(version) - 1 : 1;
    return (struct sv){path, strcspn(path, "/:")};
}

/* ---- what it takes --------------------------------------------------------------------------- */

json_t *openapi_path_parameters(const char *path, const json_t *source)
{
    json_t *list = json_array();
    struct sv resource = openapi_resource(path);
    const char *name = NULL;
    json_t *about = NULL;
    for (const char *at = strchr(path, '{'); at; at = strchr(at + 1, '{')) {
        char key[OPENAPI_KEY_SIZE];
        (void)snprintf(key, sizeof(key), "%.*s.%.*s", SV_ARG(resource), (int)strcspn(at + 1, ".}"),
                       at + 1);
        json_array_append_new(list, openapi_reference("parameters", key));
    }
    json_object_foreach(json_object_get(source, "x-headers"), name, about)
    {
        if (!json_object_get(about, "routes"))
            json_array_append_new(list, openapi_reference("parameters", name));
    }
    return list;
}

static json_t *parameters_of(const struct route *route, const json_t *source)
{
    json_t *list = json_array();
    const char *at = route->query;
    const char *name = NULL;
    json_t *about = NULL;
    while (*at) {
        char key[OPENAPI_KEY_SIZE];
        size_t length = strcspn(at, " ");
        (void)snprintf(key, sizeof(key), "%.*s", (int)length, at);
        json_array_append_new(list, openapi_reference("parameters", key));
        at += length + (at[length] == ' ');
    }
    json_object_foreach(json_object_get(source, "x-headers"), name, about)
    {
        if (openapi_has_word(json_object_get(about, "routes"), route->name))
            json_array_append_new(list, openapi_reference("parameters", name));
    }
    return list;
}

/* name, in and what source tells. */
static void add_parameters(json_t *all, const json_t *table, const char *in)
{
    const char *key = NULL;
    json_t *about = NULL;
    json_object_foreach((json_t *)(uintptr_t)table, key, about)
    {
        const char *dot = strcmp(in, "path") == 0 ? strrchr(key, '.') : NULL;
        json_t *parameter = json_pack("{s:s,s:s}", "name", dot ? dot + 1 : key, "in", in);
        if (dot)
            json_object_set_new(parameter, "required", json_true());
        json_object_update(parameter, about);
        json_object_del(parameter, "routes");
        json_object_set_new(all, key, parameter);
    }
}

json_t *openapi_parameters(const json_t *source)
{
    json_t *all = json_object();
    add_parameters(all, json_object_get(source, "x-path"), "path");
    add_parameters(all, json_object_get(source, "x-query"), "query");
    add_parameters(all, json_object_get(source, "x-headers"), "header");
    return all;
}

/* ---- what it answers ------------------------------------------------------------------------- */

static json_t *text_content(const char *type)
{
    return json_pack("{s:{s:{s:s}}}", type, "schema", "type", "string");
}

static json_t *bytes_content(const struct route *route, const char *status)
{
    json_t *content = json_pack("{s:{}}", "application/octet-stream");
    if (route_takes(route, SV("follow")) && strcmp(status, "200") == 0)
        json_object_update_new(content, text_content("text/event-stream"));
    return content;
}

/* NULL: none. */
static json_t *content_of(const struct route *route, const char *status)
{
    const char *answer = route->answer;
    if (strcmp(status, "204") == 0 || strcmp(status, "304") == 0)
        return NULL;
    if (strcmp(answer, "Bytes") == 0)
        return bytes_content(route, status);
    if (strcmp(answer, "EventStream") == 0)
        return text_content("text/event-stream");
    if (strcmp(answer, "Metrics") == 0)
        return text_content("text/plain");
    if (strcmp(answer, "Page") == 0)
        return json_pack("{s:{}}", "*/*");
    if (strcmp(answer, "Contract") == 0)
        return json_pack("{s:{s:{s:s}}}", "application/json", "schema", "type", "object");
    return json_pack("{s:{s:o}}", "application/json", "schema",
                     openapi_reference("schemas", answer));
}

static void add_header(json_t *headers, const char *name, const char *component)
{
    json_object_set_new(headers, name, openapi_reference("headers", component));
}

static bool may_be_kept(const struct route *route, const json_t *source)
{
    return openapi_has_word(json_object_get(json_object_get(source, "x-statuses"), route->name),
                            "304");
}

static json_t *headers_of(const struct route *route, const char *status, const json_t *source)
{
    json_t *headers = json_object();
    bool is_page = strcmp(route->answer, "Page") == 0;
    add_header(headers, "X-Request-Id", "X-Request-Id");
    add_header(headers, "traceparent", "traceparent");
    if (strcmp(status, "201") == 0)
        add_header(headers, "Location", "Location");
    else if (strcmp(route->answer, "Job") == 0)
        add_header(headers, "Location", "JobLocation");
    if (is_page || (openapi_has_word(json_object_get(source, "x-tagged"), route->answer) &&
                    strcmp(status, "204") != 0))
        add_header(headers, "ETag", "ETag");
    else if (may_be_kept(route, source) &&
             (strcmp(status, "200") == 0 || strcmp(status, "304") == 0))
        add_header(headers, "ETag", "KeptETag");
    if (route->id == ROUTE_job_file && *status == '2')
        add_header(headers, "Content-Disposition", "Content-Disposition");
    if (strcmp(route->answer, "JobList") == 0)
        add_header(headers, "Link", "Link");
    if (strcmp(route->answer, "Bytes") == 0)
        add_header(headers, "Accept-Ranges", "Accept-Ranges");
    if (strcmp(status, "206") == 0)
        add_header(headers, "Content-Range", "Content-Range");
    return headers;
}

static json_t *answer_of(const struct route *route, const char *status, const json_t *source)
{
    const json_t *texts = json_object_get(source, "x-answers");
    const char *text = json_string_value(json_object_get(texts, status));
    json_t *content = content_of(route, status);
    json_t *answer = json_pack("{s:s,s:o}", "description", text ? text : route->summary, "headers",
                               headers_of(route, status, source));
    if (content)
        json_object_set_new(answer, "content", content);
    return answer;
}

/* A status that says both "here it is" and "no": both kinds of content. */
static void add_refusal(json_t *answer)
{
    json_object_set_new(json_object_get(answer, "content"), "application/problem+json",
                        json_pack("{s:o}", "schema", openapi_reference("schemas", "Problem")));
    add_header(json_object_get(answer, "headers"), "Retry-After", "RetryAfterOfProblem");
}

static json_t *responses_of(const struct route *route, const json_t *source)
{
    json_t *responses = json_object();
    const json_t *own = json_object_get(json_object_get(source, "x-statuses"), route->name);
    json_t *refusals = openapi_refusals(route, source);
    size_t i = 0;
    const json_t *item = NULL;
    if (!own)
        json_object_set_new(responses, "200", answer_of(route, "200", source));
    json_array_foreach(own, i, item)
    {
        const char *status = json_string_value(item);
        json_object_set_new(responses, status, answer_of(route, status, source));
    }
    json_array_foreach(refusals, i, item)
    {
        const char *status = json_string_value(item);
        char name[OPENAPI_KEY_SIZE];
        (void)snprintf(name, sizeof(name), "Problem%s", status);
        if (json_object_get(responses, status))
            add_refusal(json_object_get(responses, status));
        else
            json_object_set_new(responses, status, openapi_reference("responses", name));
    }
    json_decref(refusals);
    return responses;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static json_t *tag_of(const struct route *route, const json_t *source)
{
    struct sv resource = openapi_resource(route->path);
    size_t i = 0;
    const json_t *tag = NULL;
    json_array_foreach(json_object_get(source, "tags"), i, tag)
    {
        if (sv_is(resource, json_string_value(json_object_get(tag, "name"))))
            return json_pack("[s#]", resource.ptr, (int)resource.len);
    }
    return json_pack("[s]", "service");
}

json_t *openapi_operation(const struct route *route, const json_t *source)
{
    json_t *operation =
        json_pack("{s:s,s:s,s:o,s:o}", "operationId", route->name, "summary", route->summary,
                  "tags", tag_of(route, source), "parameters", parameters_of(route, source));
    if (route_body_max(route, UINT64_MAX) < UINT64_MAX && route_has_body(route))
        json_object_set_new(operation, "x-body-max-bytes",
                            json_integer((json_int_t)route_body_max(route, UINT64_MAX)));
    if (route_has_body(route))
        json_object_set_new(
            operation, "requestBody",
            json_pack("{s:b,s:{s:{s:o}}}", "required",
                      !openapi_has_word(json_object_get(source, "x-optional-bodies"), route->name),
                      "content", "application/json", "schema",
                      openapi_reference("schemas", route->body)));
    json_object_set_new(operation, "responses", responses_of(route, source));
    if (route->is_public) {
        json_object_set_new(operation, "security", json_array());
        return operation;
    }
    json_object_set_new(operation, "x-role", json_string(role_name(route->least)));
    json_object_set_new(operation, "x-role-others", json_string(role_name(route->others)));
    return operation;
}
