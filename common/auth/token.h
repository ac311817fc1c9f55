/* SPDX-License-Identifier: MIT */
#ifndef COMMON_AUTH_TOKEN_H
#define COMMON_AUTH_TOKEN_H

/* token: a JWT taken apart, and the checks of its parts. Errors say what was wrong in full: they
 * are for the log, never for the client. For this folder only. Threads: owner. Memory: token_done()
 * frees; names in it are borrowed from its claims. */

#include "common/auth/auth.h"
#include "common/auth/auth_key.h"

#include <jansson.h>

struct token {
    char text[AUTH_TOKEN_MAX + 1];
    json_t *claims;    /* an object; not to be believed before token_verify */
    enum auth_alg alg; /* that the header names */
    const json_t *kid; /* NULL: the header names none; borrowed from header */
    json_t *header;
};

/* The token in the value of an Authorization header. */
MUST_USE enum err_code token_of_header(struct sv authorization, struct sv *ret_token,
                                       struct err *err);
MUST_USE enum err_code token_parse(struct sv text, struct token *ret_token, struct err *err);
void token_done(struct token *token);
/* The signature, by the algorithm of the key, which must be the one that the header names. */
MUST_USE enum err_code token_verify(const struct token *token, const struct auth_key *key,
                                    struct err *err);
/* The tenant that the token claims to be of. */
MUST_USE enum err_code token_tenant(const struct token *token, const struct auth_config *cfg,
                                    struct sv *ret_tenant, struct err *err);
/* exp, nbf and iat. ret_tell: it is over, or has not begun, which the holder of a token that is
 * good in all else may be told. */
MUST_USE enum err_code token_times(const struct token *token, unsigned leeway_s,
                                   int64_t *ret_expires_s, bool *ret_tell, struct err *err);
/* iss, aud, sub and roles; expires_s is left at 0. */
MUST_USE enum err_code token_identity(const struct token *token, const struct auth_config *cfg,
                                      struct identity *ret_identity, struct err *err);

#define TOKEN_AUTO __attribute__((cleanup(token_done)))

#endif
