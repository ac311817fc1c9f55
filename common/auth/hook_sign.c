/* SPDX-License-Identifier: MIT */
#include "common/auth/hook_sign.h"

#include "common/auth/base64url.h"
#include "common/base/buf.h"

#include "common/base/openssl.h"

#include <inttypes.h>
#include <openssl/hmac.h>

#define MAC_SIZE 32
#define PREFIX "whsec_"

const char *hook_secret(const char *key, struct sv seed, char *ret_secret)
{
    BUF_AUTO struct buf text = BUF_INIT(HOOK_SECRET_SIZE);
    uint8_t mac[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    (void)HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)seed.ptr, seed.len, mac,
               &length);
    buf_add_text(&text, PREFIX);
    (void)base64url_encode((struct sv){(const char *)mac, MAC_SIZE}, &text);
    (void)snprintf(ret_secret, HOOK_SECRET_SIZE, "%s", buf_text(&text));
    return ret_secret;
}

const char *hook_signature(const char *secret, int64_t unix_s, struct sv body, char *ret_signature)
{
    BUF_AUTO struct buf text = BUF_INIT(body.len + 64);
    uint8_t mac[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    buf_addf(&text, "%" PRId64 ".", unix_s);
    buf_add_sv(&text, body);
    (void)HMAC(EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)buf_text(&text),
               text.len, mac, &length);
    for (size_t i = 0; i < MAC_SIZE; i++)
        (void)snprintf(ret_signature + 2 * i, 3, "%02x", mac[i]);
    return ret_signature;
}
