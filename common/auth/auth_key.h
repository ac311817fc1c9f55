/* SPDX-License-Identifier: MIT */
#ifndef COMMON_AUTH_AUTH_KEY_H
#define COMMON_AUTH_AUTH_KEY_H

/* auth_key: a key that verifies tokens, with the one algorithm it is good for. For this folder
 * only. Threads: immutable. Memory: auth_key_clear() frees and wipes what a key holds. */

#include "common/auth/auth_sign.h"
#include "common/base/openssl.h"

#include <jansson.h>

#define AUTH_KID_SIZE 129
#define AUTH_SECRET_MIN 32 /* bytes of an HS256 secret (RFC 7518, 3.2) */

struct auth_key {
    char kid[AUTH_KID_SIZE];
    enum auth_alg alg;
    bool in_jwks;         /* its file is jwks.json, else KID.pem or KID.hs256 */
    uint64_t id;          /* of its name and bytes; a key that is replaced has another */
    unsigned char *bytes; /* public key in PEM, or the secret */
    size_t size;
};

/* ERR_CONFIG: not such a key, or too weak a one (RSA below 2048 bits, another curve than P-256). */
MUST_USE enum err_code auth_key_from_pem(struct sv pem, struct auth_key *ret_key, struct err *err);
MUST_USE enum err_code auth_key_from_secret(struct sv secret, struct auth_key *ret_key,
                                            struct err *err);
/* One member of the "keys" of a JWKS; fills kid too. */
MUST_USE enum err_code auth_key_from_jwk(const json_t *jwk, struct auth_key *ret_key,
                                         struct err *err);
void auth_key_clear(struct auth_key *key);

/* The algorithm that an OpenSSL key is good for. */
MUST_USE enum err_code auth_key_alg(const EVP_PKEY *pkey, enum auth_alg *ret_alg, struct err *err);
MUST_USE enum err_code auth_key_from_pkey(EVP_PKEY *pkey, struct auth_key *ret_key,
                                          struct err *err);
/* What OpenSSL asks for a passphrase: there is nobody to ask. */
int auth_no_passphrase(char *text, int size, int writing, void *unused);

static inline void auth_pkey_free(EVP_PKEY **pkey)
{
    EVP_PKEY_free(*pkey);
}
static inline void auth_bio_free(BIO **bio)
{
    BIO_free(*bio);
}
static inline void auth_json_free(json_t **json)
{
    json_decref(*json);
}
#define PKEY_AUTO __attribute__((cleanup(auth_pkey_free)))
#define BIO_AUTO __attribute__((cleanup(auth_bio_free)))
#define JSON_AUTO __attribute__((cleanup(auth_json_free)))

#endif
