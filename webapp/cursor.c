/* SPDX-License-Identifier: MIT */
#include "webapp/cursor.h"

#include "common/base/buf.h"

#include "common/base/openssl.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#define MAC_SIZE 16 /* of the 32 bytes of HMAC-SHA256 */
#define BODY_SIZE (1 + sizeof(struct uuid) + MAC_SIZE)
#define VERSION 1
/* Bytes of BODY_SIZE (33, divisible by 3) in base64: no padding is needed. */
#define TEXT_LENGTH (BODY_SIZE / 3 * 4)
_Static_assert(BODY_SIZE % 3 == 0, "no padding");
_Static_assert(TEXT_LENGTH < CURSOR_TEXT_SIZE, "a cursor fits");

static void hmac(const void *key, size_t key_size, struct sv text, uint8_t *ret_mac)
{
    unsigned length = 0;
    (void)HMAC(EVP_sha256(), key, (int)key_size, (const unsigned char *)text.ptr, text.len, ret_mac,
               &length);
}

void cursor_key_init(const struct config *cfg, cursor_secret_fn secret, void *arg,
                     struct cursor_key *ret_key)
{
    const char *own = cfg->web_cursor_key;
    pthread_mutex_init(&ret_key->lock, NULL);
    if (own[0]) {
        hmac(own, strlen(own), SV("sluice cursor"), ret_key->bytes);
        return;
    }
    random_bytes(ret_key->bytes, sizeof(ret_key->bytes));
    ret_key->secret = secret;
    ret_key->arg = arg;
}

/* The lock is held while the first cursor of the process waits for the database. */
static enum err_code key_bytes(struct cursor_key *key, uint8_t *ret_bytes, struct err *err)
{
    enum err_code rc = ERR_OK;
    memcpy(ret_bytes, key->bytes, CURSOR_KEY_SIZE);
    if (!key->secret)
        return ERR_OK;
    pthread_mutex_lock(&key->lock);
    if (!key->is_read)
        rc = key->secret(key->arg, key->shared, err);
    key->is_read = rc == ERR_OK;
    if (key->is_read)
        memcpy(ret_bytes, key->shared, CURSOR_KEY_SIZE);
    pthread_mutex_unlock(&key->lock);
    return rc;
}

static void mac_of(const uint8_t *key, struct sv query, const uint8_t *body, uint8_t *ret_mac)
{
    uint8_t full[EVP_MAX_MD_SIZE];
    uint8_t both[EVP_MAX_MD_SIZE + BODY_SIZE];
    hmac(key, CURSOR_KEY_SIZE, query, both);
    memcpy(both + CURSOR_KEY_SIZE, body, BODY_SIZE - MAC_SIZE);
    struct sv text = {(const char *)both, CURSOR_KEY_SIZE + BODY_SIZE - MAC_SIZE};
    hmac(key, CURSOR_KEY_SIZE, text, full);
    memcpy(ret_mac, full, MAC_SIZE);
}

void cursor_write(struct cursor_key *key, struct sv query, const struct uuid *after, char *ret_text)
{
    struct err ignored = {0};
    uint8_t bytes[CURSOR_KEY_SIZE];
    (void)!key_bytes(key, bytes, &ignored);
    uint8_t body[BODY_SIZE] = {VERSION};
    memcpy(body + 1, after->bytes, sizeof(after->bytes));
    mac_of(bytes, query, body, body + BODY_SIZE - MAC_SIZE);
    (void)EVP_EncodeBlock((unsigned char *)ret_text, body, (int)BODY_SIZE);
    for (char *c = ret_text; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
}

static bool decode(struct sv text, uint8_t *ret_body)
{
    unsigned char plain[TEXT_LENGTH];
    if (text.len != TEXT_LENGTH)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '+' || c == '/' || c == '=')
            return false;
        plain[i] = (unsigned char)(c == '-' ? '+' : c == '_' ? '/' : c);
    }
    return EVP_DecodeBlock(ret_body, plain, (int)TEXT_LENGTH) == (int)BODY_SIZE;
}

enum err_code cursor_read(struct cursor_key *key, struct sv query, struct sv text,
                          struct uuid *ret_after, struct err *err)
{
    uint8_t body[BODY_SIZE];
    uint8_t mac[MAC_SIZE];
    uint8_t bytes[CURSOR_KEY_SIZE];
    enum err_code rc = key_bytes(key, bytes, err);
    if (rc)
        return rc;
    if (decode(text, body) && body[0] == VERSION) {
        mac_of(bytes, query, body, mac);
        if (CRYPTO_memcmp(mac, body + BODY_SIZE - MAC_SIZE, MAC_SIZE) == 0) {
            memcpy(ret_after->bytes, body + 1, sizeof(ret_after->bytes));
            return ERR_OK;
        }
    }
    return err_set_at(err, ERR_CURSOR, "?cursor",
                      "the cursor is not one of this query: use nextCursor as it was given, with "
                      "the same parameters, or leave it out to begin anew");
}
