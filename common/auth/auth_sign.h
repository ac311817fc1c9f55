/* SPDX-License-Identifier: MIT */
#ifndef COMMON_AUTH_AUTH_SIGN_H
#define COMMON_AUTH_AUTH_SIGN_H

/* auth_sign: makes keys and tokens, for administrators and tests. No service signs anything.
 * Threads: any. Memory: tokens are given to the caller, to be freed; keys are wiped. */

#include "common/base/base.h"
#include "common/base/err.h"
#include "common/base/sv.h"

#define AUTH_PATH_SIZE 1024

enum auth_alg { AUTH_RS256, AUTH_ES256, AUTH_HS256, AUTH_ALG_COUNT };

const char *auth_alg_name(enum auth_alg alg); /* "RS256" */
MUST_USE bool auth_alg_parse(struct sv text, enum auth_alg *ret_alg);

struct auth_private_key {
    enum auth_alg alg;
    char *bytes; /* private key in PEM, or the secret; ended by NUL */
    size_t size;
};

/* Reads a private key file: PEM (RSA or EC P-256), or a secret if its name ends in ".hs256".
 * ERR_CONFIG if others than its owner and group may read it, or it is no such key. */
MUST_USE enum err_code auth_key_read(const char *path, struct auth_private_key *ret_key,
                                     struct err *err);
void auth_key_done(struct auth_private_key *key); /* wipes and frees */

struct auth_claims {
    const char *tenant;
    const char *user;
    const char *roles;    /* separated by spaces */
    const char *issuer;   /* NULL or "": none */
    const char *audience; /* NULL or "": none */
    const char *tenant_claim;
    const char *roles_claim;
    int64_t lifetime_s; /* from now */
};

/* kid may be NULL: the token then names no key. */
MUST_USE enum err_code auth_sign(const struct auth_private_key *key, const char *kid,
                                 const struct auth_claims *claims, char **ret_token,
                                 struct err *err);
/* As auth_sign, with the claims as a JSON object. */
MUST_USE enum err_code auth_sign_json(const struct auth_private_key *key, const char *kid,
                                      const char *claims_json, char **ret_token, struct err *err);

struct auth_new_key {
    const char *keys_dir;    /* public part: keys_dir/TENANT/KID.pem or KID.hs256 */
    const char *private_dir; /* private part: private_dir/TENANT.KID.pem or .hs256, mode 0600 */
    const char *tenant;
    const char *kid; /* letters, digits, '.', '_' and '-' */
    enum auth_alg alg;
};

/* Makes folders and a new key, and tells the path of its private part (AUTH_PATH_SIZE bytes).
 * ERR_DUPLICATE if the tenant has a key of this name. */
MUST_USE enum err_code auth_make_key(const struct auth_new_key *wanted, char *ret_private_path,
                                     struct err *err);

#define AUTH_KEY_AUTO __attribute__((cleanup(auth_key_done)))

#endif
