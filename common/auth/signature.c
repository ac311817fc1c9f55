/* SPDX-License-Identifier: MIT */
#include "common/auth/signature.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#define MAC_SIZE 32
#define NUMBER_SIZE 32 /* r, and s, on P-256 */
#define DER_MAX 80     /* a SEQUENCE of both */

static void context_free(EVP_MD_CTX **context)
{
    EVP_MD_CTX_free(*context);
}
static void pair_free(ECDSA_SIG **pair)
{
    ECDSA_SIG_free(*pair);
}
#define OWNED(fn) __attribute__((cleanup(fn)))

static bool is_mac(const struct auth_key *key, struct sv text, struct sv signature)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (key->size > INT_MAX || !HMAC(EVP_sha256(), key->bytes, (int)key->size,
                                     (const unsigned char *)text.ptr, text.len, mac, &length))
        return false;
    return length == MAC_SIZE && signature.len == MAC_SIZE &&
           CRYPTO_memcmp(mac, signature.ptr, MAC_SIZE) == 0;
}

/* r and s one behind the other (RFC 7518, 3.4), as OpenSSL wants them. 0: they are not. */
static size_t der_of(struct sv signature, unsigned char *ret_der)
{
    const unsigned char *bytes = (const unsigned char *)signature.ptr;
    if (signature.len != (size_t)2 * NUMBER_SIZE)
        return 0;
    OWNED(pair_free) ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, NUMBER_SIZE, NULL);
    BIGNUM *s = BN_bin2bn(bytes + NUMBER_SIZE, NUMBER_SIZE, NULL);
    if (!pair || !r || !s || !ECDSA_SIG_set0(pair, r, s)) {
        BN_free(r);
        BN_free(s);
        return 0;
    }
    int length = i2d_ECDSA_SIG(pair, NULL);
    if (length <= 0 || length > DER_MAX)
        return 0;
    return (size_t)i2d_ECDSA_SIG(pair, &ret_der);
}

static bool is_signed(const struct auth_key *key, struct sv text, struct sv signature)
{
    unsigned char der[DER_MAX];
    BIO_AUTO BIO *in = BIO_new_mem_buf(key->bytes, (int)key->size);
    PKEY_AUTO EVP_PKEY *pkey = in ? PEM_read_bio_PUBKEY(in, NULL, auth_no_passphrase, NULL) : NULL;
    OWNED(context_free) EVP_MD_CTX *context = EVP_MD_CTX_new();
    const unsigned char *bytes = (const unsigned char *)signature.ptr;
    size_t size = signature.len;
    if (key->alg == AUTH_ES256) {
        size = der_of(signature, der);
        bytes = der;
    }
    return pkey && context && size > 0 &&
           EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, pkey) > 0 &&
           EVP_DigestVerify(context, bytes, size, (const unsigned char *)text.ptr, text.len) == 1;
}

/* Whether the check ended for want of memory: that says nothing of the signature. */
static bool was_starved(void)
{
    bool starved = false;
    for (unsigned long fault = ERR_get_error(); fault; fault = ERR_get_error())
        starved = starved || ERR_GET_REASON(fault) == ERR_R_MALLOC_FAILURE;
    return starved;
}

enum err_code signature_check(const struct auth_key *key, struct sv text, struct sv signature,
                              struct err *err)
{
    ERR_clear_error();
    bool good =
        key->alg == AUTH_HS256 ? is_mac(key, text, signature) : is_signed(key, text, signature);
    bool starved = was_starved();
    if (good)
        return ERR_OK;
    if (starved)
        return err_set(err, ERR_NOMEM, "out of memory for a signature");
    return err_set(err, ERR_UNAUTHENTICATED, "the signature is not that of key %s", key->kid);
}
