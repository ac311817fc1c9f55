/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_CORS_H
#define WEBAPP_CORS_H

/* cors: which pages of other origins a browser lets read our answers (web.cors_origins). Tokens
 * travel in Authorization, never in cookies, so credentials are not allowed.
 * Threads: immutable. Memory: cors_free() frees. */

#include "common/config/config.h"

#include <microhttpd.h>

struct cors;

/* NULL in ret_cors when no origin is named. ERR_CONFIG: one of them is no origin. */
MUST_USE enum err_code cors_open(const struct config *cfg, struct cors **ret_cors, struct err *err);
void cors_free(struct cors *cors); /* NULL is allowed */

/* The header fields for whoever asks from this origin (NULL: he names none); cors may be NULL. */
void cors_answer(const struct cors *cors, const char *origin, struct MHD_Response *response);
/* And those of the answer to his browser's question whether he may; methods as in Allow. */
void cors_preflight(const struct cors *cors, const char *origin, const char *methods,
                    struct MHD_Response *response);

#endif
