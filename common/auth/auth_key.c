/* SPDX-License-Identifier: MIT */
#include "common/auth/auth_key.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/pem.h>

#define RSA_BITS_MIN 2048
#define RSA_BITS_MAX 8192    /* more only makes checking slow */
#define EXPONENT_BITS_MIN 17 /* an odd number of 17 bits is 65537 or more */
#define EXPONENT_BITS_MAX 64

static const char *const alg_names[] = {
    [AUTH_RS256] = "RS256", [AUTH_ES256] = "ES256", [AUTH_HS256] = "HS256"};

const char *auth_alg_name(enum auth_alg alg)
{
    return alg_names[alg];
}

bool auth_alg_parse(struct sv text, enum auth_alg *ret_alg)
{
    for (unsigned i = 0; i < AUTH_ALG_COUNT; i++) {
        if (!sv_is(text, alg_names[i]))
            continue;
        *ret_alg = (enum auth_alg)i;
        return true;
    }
    return false;
}

int auth_no_passphrase(char *text, int size, int writing, void *unused)
{
    (void)text;
    (void)size;
    (void)writing;
    (void)unused;
    return -1;
}

/* With e = 1 a signature is the padded digest, which anybody can write; with 3 faulty paddings have
 * been forged. A large one makes each check slow. */
static enum err_code check_exponent(const EVP_PKEY *pkey, struct err *err)
{
    BIGNUM *e = NULL;
    if (!EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_RSA_E, &e))
        return err_set(err, ERR_CONFIG, "the key has no public exponent");
    bool good =
        BN_is_odd(e) && BN_num_bits(e) >= EXPONENT_BITS_MIN && BN_num_bits(e) <= EXPONENT_BITS_MAX;
    BN_free(e);
    if (!good)
        return err_set(err, ERR_CONFIG,
                       "the public exponent of an RSA key is odd and from 65537 up to %d bits: "
                       "make a key with 65537",
                       EXPONENT_BITS_MAX);
    return ERR_OK;
}

enum err_code auth_key_alg(const EVP_PKEY *pkey, enum auth_alg *ret_alg, struct err *err)
{
    int bits = EVP_PKEY_get_bits(pkey);
    char curve[64] = "";
    if (EVP_PKEY_is_a(pkey, "RSA")) {
        if (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX)
            return err_set(err, ERR_CONFIG, "an RSA key has %d to %d bits, not %d", RSA_BITS_MIN,
                           RSA_BITS_MAX, bits);
        *ret_alg = AUTH_RS256;
        return check_exponent(pkey, err);
    }
    if (!EVP_PKEY_is_a(pkey, "EC"))
        return err_set(err, ERR_CONFIG, "the key is neither RSA nor EC");
    if (!EVP_PKEY_get_group_name(pkey, curve, sizeof(curve), NULL) ||
        strcmp(curve, "prime256v1") != 0)
        return err_set(err, ERR_CONFIG, "the curve of an EC key is P-256, not %s", curve);
    *ret_alg = AUTH_ES256;
    return ERR_OK;
}

enum err_code auth_key_from_pkey(EVP_PKEY *pkey, struct auth_key *ret_key, struct err *err)
{
    BIO_AUTO BIO *out = BIO_new(BIO_s_mem());
    char *text = NULL;
    enum err_code rc = auth_key_alg(pkey, &ret_key->alg, err);
    if (rc)
        return rc;
    if (!out || !PEM_write_bio_PUBKEY(out, pkey))
        return err_set(err, ERR_NOMEM, "out of memory for a key");
    long size = BIO_get_mem_data(out, &text);
    ret_key->bytes = size > 0 ? malloc((size_t)size) : NULL;
    if (!ret_key->bytes)
        return err_set(err, ERR_NOMEM, "out of memory for a key");
    memcpy(ret_key->bytes, text, (size_t)size);
    ret_key->size = (size_t)size;
    return ERR_OK;
}

enum err_code auth_key_from_pem(struct sv pem, struct auth_key *ret_key, struct err *err)
{
    if (pem.len == 0 || pem.len > INT32_MAX)
        return err_set(err, ERR_CONFIG, "the file is empty");
    if (memmem(pem.ptr, pem.len, "PRIVATE KEY-----", 16))
        return err_set(err, ERR_CONFIG,
                       "it holds a private key, which has no place here; put the public one");
    BIO_AUTO BIO *in = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    PKEY_AUTO EVP_PKEY *pkey = in ? PEM_read_bio_PUBKEY(in, NULL, auth_no_passphrase, NULL) : NULL;
    ERR_clear_error();
    if (!pkey)
        return err_set(err, ERR_CONFIG, "it holds no public key in PEM");
    return auth_key_from_pkey(pkey, ret_key, err);
}

enum err_code auth_key_from_secret(struct sv secret, struct auth_key *ret_key, struct err *err)
{
    if (secret.len > 0 && secret.ptr[secret.len - 1] == '\n')
        secret.len--;
    if (secret.len < AUTH_SECRET_MIN)
        return err_set(err, ERR_CONFIG, "a shared secret has at least %d bytes, not %zu",
                       AUTH_SECRET_MIN, secret.len);
    ret_key->bytes = malloc(secret.len);
    if (!ret_key->bytes)
        return err_set(err, ERR_NOMEM, "out of memory for a key");
    memcpy(ret_key->bytes, secret.ptr, secret.len);
    ret_key->size = secret.len;
    ret_key->alg = AUTH_HS256;
    return ERR_OK;
}

void auth_key_clear(struct auth_key *key)
{
    if (key->bytes)
        explicit_bzero(key->bytes, key->size);
    free(key->bytes);
    *key = (struct auth_key){0};
}
