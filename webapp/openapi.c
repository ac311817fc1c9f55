/* SPDX-License-Identifier: MIT */
#include "webapp/openapi.h"

#include "webapp/handlers.h"
#include "webapp/request.h"

#define PATH_SIZE 160

extern const char openapi_source[]; /* openapi.json: schemas and what routes.def does not hold */

/* "/v1/jobs/{id}/files/{path...}" without the dots. */
static void plain_path(const char *pattern, char *ret_path)
{
    size_t length = 0;
    for (const char *c = pattern; *c && length + 1 < PATH_SIZE; c++) {
        if (strncmp(c, "...}", 4) == 0)
            c += 3;
        ret_path[length++] = *c;
    }
    ret_path[length] = 0;
}

static void add_path_parameters(json_t *list, const char *path)
{
    for (const char *at = strchr(path, '{'); at; at = strchr(at + 1, '{')) {
        size_t length = strcspn(at + 1, "}");
        json_array_append_new(list,
                              json_pack("{s:s#,s:s,s:b,s:{s:s}}", "name", at + 1, (int)length, "in",
                                        "path", "required", 1, "schema", "type", "string"));
    }
}

static void add_query_parameters(json_t *list, const char *names, const json_t *known)
{
    while (*names) {
        size_t length = strcspn(names, " ");
        json_t *parameter = json_pack("{s:s#,s:s}", "name", names, (int)length, "in", "query");
        json_t *about =
            json_object_get(known, json_string_value(json_object_get(parameter, "name")));
        json_object_update(parameter, about);
        json_array_append_new(list, parameter);
        names += length + (names[length] == ' ');
    }
}

static json_t *reference(const char *schema)
{
    char text[PATH_SIZE];
    (void)snprintf(text, sizeof(text), "#/components/schemas/%s", schema);
    return json_pack("{s:s}", "$ref", text);
}

static json_t *content_of(const char *answer)
{
    if (strcmp(answer, "Bytes") == 0)
        return json_pack("{s:{},s:{}}", "application/octet-stream", "text/event-stream");
    if (strcmp(answer, "EventStream") == 0)
        return json_pack("{s:{}}", "text/event-stream");
    if (strcmp(answer, "Metrics") == 0)
        return json_pack("{s:{}}", "text/plain");
    if (strcmp(answer, "Contract") == 0)
        return json_pack("{s:{}}", "application/json");
    return json_pack("{s:{s:o}}", "application/json", "schema", reference(answer));
}

static json_t *responses_of(const struct route *route, const json_t *statuses)
{
    json_t *responses = json_object();
    json_t *own = json_object_get(statuses, route->name);
    size_t count = own ? json_array_size(own) : 1;
    for (size_t i = 0; i < count; i++) {
        const char *status = own ? json_string_value(json_array_get(own, i)) : "200";
        json_t *response = json_pack("{s:s}", "description", route->summary);
        if (strcmp(route->answer, "Nothing") != 0)
            json_object_set_new(response, "content", content_of(route->answer));
        json_object_set_new(responses, status, response);
    }
    json_object_set_new(responses, "default",
                        json_pack("{s:s}", "$ref", "#/components/responses/Problem"));
    return responses;
}

static bool has_word(const json_t *list, const char *word)
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

static json_t *operation_of(const struct route *route, const json_t *source)
{
    json_t *operation =
        json_pack("{s:s,s:s}", "operationId", route->name, "summary", route->summary);
    json_t *parameters = json_array();
    char path[PATH_SIZE];
    plain_path(route->path, path);
    add_path_parameters(parameters, path);
    add_query_parameters(parameters, route->query, json_object_get(source, "x-query"));
    json_object_set_new(operation, "parameters", parameters);
    if (route_has_body(route))
        json_object_set_new(
            operation, "requestBody",
            json_pack("{s:b,s:{s:{s:o}}}", "required",
                      !has_word(json_object_get(source, "x-optional-bodies"), route->name),
                      "content", "application/json", "schema", reference(route->body)));
    json_object_set_new(operation, "responses",
                        responses_of(route, json_object_get(source, "x-statuses")));
    if (route->is_public) {
        json_object_set_new(operation, "security", json_array());
        return operation;
    }
    json_object_set_new(operation, "x-role", json_string(role_name(route->least)));
    json_object_set_new(operation, "x-role-others", json_string(role_name(route->others)));
    return operation;
}

static const char *method_key(enum method method)
{
    static const char *const keys[] = {"get", "put", "post", "delete"};
    return keys[method];
}

json_t *openapi_document(void)
{
    json_t *document = json_loads(openapi_source, 0, NULL);
    json_t *paths = json_object();
    for (size_t i = 0; document && i < ROUTE_COUNT; i++) {
        char path[PATH_SIZE];
        if (strcmp(routes[i].answer, "Page") == 0)
            continue; /* for people */
        plain_path(routes[i].path, path);
        if (!json_object_get(paths, path))
            json_object_set_new(paths, path, json_object());
        json_object_set_new(json_object_get(paths, path), method_key(routes[i].method),
                            operation_of(&routes[i], document));
    }
    json_object_set_new(json_object_get(document, "info"), "version", json_string(SLUICE_VERSION));
    json_object_set_new(document, "security", json_pack("[{s:[]}]", "bearer"));
    json_object_set_new(document, "paths", paths);
    json_object_del(document, "x-query");
    json_object_del(document, "x-optional-bodies");
    json_object_del(document, "x-statuses");
    return document;
}

enum err_code openapi(struct request *req, struct err *err)
{
    json_t *document = openapi_document();
    if (!document)
        return err_set(err, ERR_INTERNAL, "the contract cannot be read");
    reply_json(req, MHD_HTTP_OK, document);
    return ERR_OK;
}
