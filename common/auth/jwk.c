/* SPDX-License-Identifier: MIT */
#include "common/auth/auth_key.h"

#include "common/auth/base64url.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/param_build.h>

#define NUMBER_MAX 1024    /* bytes of a modulus */
#define COORDINATE_SIZE 32 /* bytes of x and y on P-256 */

static void bn_free(BIGNUM **bn)
{
    BN_free(*bn);
}
static void builder_free(OSSL_PARAM_BLD **builder)
{
    OSSL_PARAM_BLD_free(*builder);
}
static void params_free(OSSL_PARAM **params)
{
    OSSL_PARAM_free(*params);
}
static void context_free(EVP_PKEY_CTX **context)
{
    EVP_PKEY_CTX_free(*context);
}
#define OWNED(fn) __attribute__((cleanup(fn)))

static enum err_code read_bytes(const json_t *jwk, const char *member, struct buf *ret_bytes,
                                struct err *err)
{
    const json_t *value = json_object_get(jwk, member);
    struct sv text = {json_string_value(value), json_string_length(value)};
    if (!text.ptr || !base64url_decode(text, ret_bytes) || ret_bytes->len == 0)
        return err_set(err, ERR_CONFIG, "member \"%s\" is not a number in base64url", member);
    return ERR_OK;
}

static enum err_code make_public(const char *type, OSSL_PARAM_BLD *builder,
                                 struct auth_key *ret_key, struct err *err)
{
    OWNED(params_free) OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    OWNED(context_free) EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    PKEY_AUTO EVP_PKEY *pkey = NULL;
    bool made = params && context && EVP_PKEY_fromdata_init(context) > 0 &&
                EVP_PKEY_fromdata(context, &pkey, EVP_PKEY_PUBLIC_KEY, params) > 0;
    ERR_clear_error();
    if (!made)
        return err_set(err, ERR_CONFIG, "its numbers are no %s key", type);
    return auth_key_from_pkey(pkey, ret_key, err);
}

static enum err_code from_rsa(const json_t *jwk, struct auth_key *ret_key, struct err *err)
{
    BUF_AUTO struct buf n = BUF_INIT(NUMBER_MAX);
    BUF_AUTO struct buf e = BUF_INIT(8);
    enum err_code rc = read_bytes(jwk, "n", &n, err);
    if (!rc)
        rc = read_bytes(jwk, "e", &e, err);
    if (rc)
        return rc;
    OWNED(bn_free) BIGNUM *modulus = BN_bin2bn((const unsigned char *)n.ptr, (int)n.len, NULL);
    OWNED(bn_free) BIGNUM *exponent = BN_bin2bn((const unsigned char *)e.ptr, (int)e.len, NULL);
    OWNED(builder_free) OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (!modulus || !exponent || !builder ||
        !OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) ||
        !OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent))
        return err_set(err, ERR_NOMEM, "out of memory for a key");
    return make_public("RSA", builder, ret_key, err);
}

static enum err_code from_ec(const json_t *jwk, struct auth_key *ret_key, struct err *err)
{
    const char *curve = json_string_value(json_object_get(jwk, "crv"));
    BUF_AUTO struct buf x = BUF_INIT(COORDINATE_SIZE);
    BUF_AUTO struct buf y = BUF_INIT(COORDINATE_SIZE);
    if (!curve || strcmp(curve, "P-256") != 0)
        return err_set(err, ERR_CONFIG, "the curve of an EC key is P-256");
    enum err_code rc = read_bytes(jwk, "x", &x, err);
    if (!rc)
        rc = read_bytes(jwk, "y", &y, err);
    if (rc)
        return rc;
    if (x.len != COORDINATE_SIZE || y.len != COORDINATE_SIZE)
        return err_set(err, ERR_CONFIG, "x and y have %d bytes each", COORDINATE_SIZE);
    unsigned char point[1 + 2 * COORDINATE_SIZE] = {4}; /* uncompressed */
    memcpy(point + 1, x.ptr, COORDINATE_SIZE);
    memcpy(point + 1 + COORDINATE_SIZE, y.ptr, COORDINATE_SIZE);
    OWNED(builder_free) OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (!builder ||
        !OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) ||
        !OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)))
        return err_set(err, ERR_NOMEM, "out of memory for a key");
    return make_public("EC", builder, ret_key, err);
}

/* kid, and what the key may be used for if it says so. */
static enum err_code read_purpose(const json_t *jwk, struct auth_key *ret_key, struct err *err)
{
    const json_t *kid = json_object_get(jwk, "kid");
    const char *use = json_string_value(json_object_get(jwk, "use"));
    if (!sv_copy((struct sv){json_string_value(kid), json_string_length(kid)}, ret_key->kid,
                 sizeof(ret_key->kid)) ||
        !ret_key->kid[0])
        return err_set(err, ERR_CONFIG, "a key needs a kid of 1 to %d bytes", AUTH_KID_SIZE - 1);
    if (use && strcmp(use, "sig") != 0)
        return err_set(err, ERR_CONFIG, "key %s is not for signatures", ret_key->kid);
    if (json_object_get(jwk, "d"))
        return err_set(err, ERR_CONFIG, "key %s is a private one, which has no place here",
                       ret_key->kid);
    return ERR_OK;
}

enum err_code auth_key_from_jwk(const json_t *jwk, struct auth_key *ret_key, struct err *err)
{
    const char *type = json_string_value(json_object_get(jwk, "kty"));
    const char *alg = json_string_value(json_object_get(jwk, "alg"));
    struct auth_key key = {0};
    enum err_code rc = read_purpose(jwk, &key, err);
    if (rc)
        return rc;
    if (type && strcmp(type, "RSA") == 0)
        rc = from_rsa(jwk, &key, err);
    else if (type && strcmp(type, "EC") == 0)
        rc = from_ec(jwk, &key, err);
    else
        rc = err_set(err, ERR_CONFIG, "key %s is neither RSA nor EC", key.kid);
    if (!rc && alg && strcmp(alg, auth_alg_name(key.alg)) != 0)
        rc = err_set(err, ERR_CONFIG, "key %s is for %.16s, which is not supported", key.kid, alg);
    if (rc) {
        auth_key_clear(&key);
        return rc;
    }
    *ret_key = key;
    return ERR_OK;
}
