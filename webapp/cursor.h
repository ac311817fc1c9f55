/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_CURSOR_H
#define WEBAPP_CURSOR_H

/* cursor: where a page of a list ended, as text that only we can make. It is bound to the query:
 * one that was changed, or that is used with another query, is refused.
 * The key is web.cursor_key. Without one it is derived from how we reach the database, which all
 * web processes of a site share and no client knows.
 * Threads: immutable. Memory: the caller's. */

#include "common/base/err.h"
#include "common/base/uuid.h"
#include "common/config/config.h"

#define CURSOR_KEY_SIZE 32
#define CURSOR_TEXT_SIZE 64

struct cursor_key {
    uint8_t bytes[CURSOR_KEY_SIZE];
};

void cursor_key_init(const struct config *cfg, struct cursor_key *ret_key);
/* query is any text that names the query (tenant, filters, order). Into CURSOR_TEXT_SIZE bytes. */
void cursor_write(const struct cursor_key *key, struct sv query, const struct uuid *after,
                  char *ret_text);
/* ERR_CURSOR for anything that cursor_write did not make for this query. */
MUST_USE enum err_code cursor_read(const struct cursor_key *key, struct sv query, struct sv text,
                                   struct uuid *ret_after, struct err *err);

#endif
