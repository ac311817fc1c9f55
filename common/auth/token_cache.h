/* SPDX-License-Identifier: MIT */
#ifndef COMMON_AUTH_TOKEN_CACHE_H
#define COMMON_AUTH_TOKEN_CACHE_H

/* token_cache: verified tokens, by their digest, so that a signature is checked once. Its size is
 * fixed; what is least useful makes room. An entry holds only for the keys (stamp) that verified
 * it. For this folder only.
 * Threads: locked. */

#include "common/auth/auth.h"

#define TOKEN_DIGEST_SIZE 32 /* SHA-256 */

struct token_cache; /* opaque: the body is in token_cache.c */

/* At most entries tokens; 0: a cache that forgets everything. */
MUST_USE enum err_code token_cache_new(size_t entries, struct token_cache **ret_cache,
                                       struct err *err);
void token_cache_free(struct token_cache *cache);
MUST_USE bool token_cache_get(struct token_cache *cache, const unsigned char *digest,
                              struct identity *ret_identity, uint64_t *ret_stamp);
void token_cache_put(struct token_cache *cache, const unsigned char *digest,
                     const struct identity *identity, uint64_t stamp);
size_t token_cache_count(struct token_cache *cache); /* entries in use */

#endif
