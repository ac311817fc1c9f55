/* SPDX-License-Identifier: MIT */
#include "webapp/openapi.h"

#include "webapp/handlers.h"
#include "webapp/openapi_impl.h"
#include "webapp/request.h"

extern const char openapi_source[]; /* openapi.json: schemas and what routes.def does not hold */

/* "/v1/jobs/{id}/files/{path...}" without the dots. */
static void plain_path(const char *pattern, char *ret_path)
{
    size_t length = 0;
    for (const char *c = pattern; *c && length + 1 < OPENAPI_TEXT_SIZE; c++) {
        if (strncmp(c, "...}", 4) == 0)
            c += 3;
        ret_path[length++] = *c;
    }
    ret_path[length] = 0;
}

static const char *method_key(enum method method)
{
    static const char *const keys[] = {"get", "put", "post", "delete"};
    return keys[method];
}

static json_t *paths_of(const json_t *source)
{
    json_t *paths = json_object();
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        char path[OPENAPI_TEXT_SIZE];
        plain_path(routes[i].path, path);
        if (!json_object_get(paths, path))
            json_object_set_new(
                paths, path,
                json_pack("{s:o}", "parameters", openapi_path_parameters(path, source)));
        json_object_set_new(json_object_get(paths, path), method_key(routes[i].method),
                            openapi_operation(&routes[i], source));
    }
    return paths;
}

static json_t *problems_of(const json_t *source)
{
    json_t *statuses = json_array();
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        json_t *own = openapi_refusals(&routes[i], source);
        json_array_extend(statuses, own);
        json_decref(own);
    }
    json_t *problems = openapi_problems(statuses);
    json_decref(statuses);
    return problems;
}

json_t *openapi_document(void)
{
    json_t *source = json_loads(openapi_source, 0, NULL);
    if (!source)
        return NULL;
    json_t *document = json_object();
    json_t *components = json_deep_copy(json_object_get(source, "components"));
    const char *name = NULL;
    json_t *value = NULL;
    json_object_set_new(components, "parameters", openapi_parameters(source));
    json_object_set_new(components, "responses", problems_of(source));
    json_object_foreach(source, name, value)
    {
        if (strncmp(name, "x-", 2) != 0 && strcmp(name, "components") != 0)
            json_object_set(document, name, value);
    }
    json_object_set_new(json_object_get(document, "info"), "version", json_string(SLUICE_VERSION));
    json_object_set_new(document, "security", json_pack("[{s:[]}]", "bearer"));
    json_object_set_new(document, "paths", paths_of(source));
    json_object_set_new(document, "components", components);
    json_decref(source);
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
