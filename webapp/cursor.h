/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_CURSOR_H
#define WEBAPP_CURSOR_H

/* cursor: where a page of a list ended, as text that only we can make. It is bound to the query:
 * one that was changed, or that is used with another query, is refused.
 * The key is web.cursor_key. Without one it is a random row of the database, which all web
 * processes of a site share; it is read with the first cursor. Threads: any. Memory: the caller's.
 */

#include "common/base/err.h"
#include "common/base/uuid.h"
#include "common/config/config.h"

#include <pthread.h>

#define CURSOR_KEY_SIZE 32
#define CURSOR_TEXT_SIZE 64

/* Reads the secret of the site. */
typedef enum err_code (*cursor_secret_fn)(void *arg, uint8_t ret_secret[CURSOR_KEY_SIZE],
                                          struct err *err);

struct cursor_key {
    uint8_t bytes[CURSOR_KEY_SIZE];
    /* NULL: bytes are the key. Else they are random, and shared is the key once it is there. */
    cursor_secret_fn secret;
    void *arg;
    pthread_mutex_t lock;
    bool is_read; /* lock, as is shared */
    uint8_t shared[CURSOR_KEY_SIZE];
};

void cursor_key_init(const struct config *cfg, cursor_secret_fn secret, void *arg,
                     struct cursor_key *ret_key);
/* query is any text that names the query (tenant, filters, order). Into CURSOR_TEXT_SIZE bytes.
 * Without the secret it is one that is refused when it comes back. */
void cursor_write(struct cursor_key *key, struct sv query, const struct uuid *after,
                  char *ret_text);
/* ERR_CURSOR for anything that cursor_write did not make for this query; that of the secret. */
MUST_USE enum err_code cursor_read(struct cursor_key *key, struct sv query, struct sv text,
                                   struct uuid *ret_after, struct err *err);

#endif
