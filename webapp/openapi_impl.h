/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_OPENAPI_IMPL_H
#define WEBAPP_OPENAPI_IMPL_H

/* openapi_impl: what the files of the contract share. source is openapi.json; what it holds beside
 * components and texts is told in docs/development.md.
 * Threads: any. Memory: the caller drops what is returned. */

#include "webapp/route.h"

#include <jansson.h>

#define OPENAPI_TEXT_SIZE 160 /* of a path */
#define OPENAPI_KEY_SIZE 96   /* of a name among components */
#define OPENAPI_STATUS_SIZE 8

/* {"$ref": "#/components/KIND/NAME"} */
json_t *openapi_reference(const char *kind, const char *name);
/* "jobs" of "/v1/jobs/{id}" and of "/v1/jobs:batch"; "" of "/". */
struct sv openapi_resource(const char *path);
/* Statuses with which a route refuses, as texts, rising, none twice. */
json_t *openapi_refusals(const struct route *route, const json_t *source);
/* One response for each status of the list (and 405, which belongs to no route): its codes are
 * those of err.def. */
json_t *openapi_problems(const json_t *statuses);
json_t *openapi_operation(const struct route *route, const json_t *source);
/* What all methods of a path take. */
json_t *openapi_path_parameters(const char *path, const json_t *source);
/* The tables of parameters in source as components. */
json_t *openapi_parameters(const json_t *source);
bool openapi_has_word(const json_t *list, const char *word);

#endif
