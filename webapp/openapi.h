/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_OPENAPI_H
#define WEBAPP_OPENAPI_H

/* openapi: the contract (OpenAPI 3.1), made of routes.def and openapi.json.
 * Threads: any. Memory: the caller drops the result; NULL if openapi.json is not JSON. */

#include <jansson.h>

json_t *openapi_document(void);

#endif
