/* SPDX-License-Identifier: MIT */
#include "common/auth/auth_sign.h"

#include "common/auth/auth.h"
#include "common/auth/auth_key.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/openssl.h"
#include "common/base/spare.h"
#include "common/base/uuid.h"

#include <errno.h>
#include <fcntl.h>
#include <jwt.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_BYTES_MAX (64 * 1024)
#define RSA_BITS 2048
#define SECRET_BYTES 32
#define FILE_NAME_SIZE 256 /* KID.hs256 */

void auth_key_done(struct auth_private_key *key)
{
    if (key->bytes)
        explicit_bzero(key->bytes, key->size);
    free(key->bytes);
    *key = (struct auth_private_key){0};
}

/* The key in PEM as our libraries write it, without passphrase. */
static enum err_code private_to_pem(EVP_PKEY *pkey, struct auth_private_key *ret_key,
                                    struct err *err)
{
    struct auth_private_key key = {0};
    char *text = NULL;
    enum err_code rc = auth_key_alg(pkey, &key.alg, err);
    if (rc)
        return rc;
    BIO_AUTO BIO *out = BIO_new(BIO_s_secmem());
    if (!out || !PEM_write_bio_PrivateKey(out, pkey, NULL, NULL, 0, NULL, NULL))
        return err_set(err, ERR_NOMEM, "out of memory for a key");
    long size = BIO_get_mem_data(out, &text);
    key.bytes = size > 0 ? strndup(text, (size_t)size) : NULL;
    if (!key.bytes)
        return err_set(err, ERR_NOMEM, "out of memory for a key");
    key.size = (size_t)size;
    *ret_key = key;
    return ERR_OK;
}

static enum err_code parse_private(struct sv text, struct auth_private_key *ret_key,
                                   struct err *err)
{
    BIO_AUTO BIO *in = BIO_new_mem_buf(text.ptr, (int)text.len);
    PKEY_AUTO EVP_PKEY *pkey =
        in ? PEM_read_bio_PrivateKey(in, NULL, auth_no_passphrase, NULL) : NULL;
    ERR_clear_error();
    if (!pkey)
        return err_set(err, ERR_CONFIG, "it holds no private key in PEM without a passphrase");
    return private_to_pem(pkey, ret_key, err);
}

static enum err_code parse_secret(struct sv text, struct auth_private_key *ret_key, struct err *err)
{
    struct auth_key key = {0};
    enum err_code rc = auth_key_from_secret(text, &key, err);
    if (rc)
        return rc;
    ret_key->bytes = strndup((const char *)key.bytes, key.size);
    ret_key->size = ret_key->bytes ? strlen(ret_key->bytes) : 0;
    bool whole = ret_key->size == key.size;
    auth_key_clear(&key);
    if (!whole) {
        auth_key_done(ret_key);
        return err_set(err, ERR_CONFIG, "the secret is not a text");
    }
    ret_key->alg = AUTH_HS256;
    return ERR_OK;
}

/* Reads through one descriptor, so that what is checked is what is read. */
static enum err_code read_guarded(const char *path, struct buf *ret_bytes, struct err *err)
{
    struct stat st;
    FD_AUTO int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno, "cannot open");
    if (st.st_mode & (S_IRWXO | S_IWGRP))
        return err_set(err, ERR_CONFIG,
                       "mode %04o lets others read or write a private key; 0600 is needed",
                       st.st_mode & 07777);
    char chunk[4096];
    ssize_t got = 0;
    while ((got = read(fd, chunk, sizeof(chunk))) > 0)
        if (!buf_add(ret_bytes, chunk, (size_t)got))
            return err_set(err, ERR_TOO_LARGE, "more than %d bytes", KEY_BYTES_MAX);
    explicit_bzero(chunk, sizeof(chunk));
    return got < 0 ? err_set_errno(err, ERR_IO, errno, "cannot read") : ERR_OK;
}

enum err_code auth_key_read(const char *path, struct auth_private_key *ret_key, struct err *err)
{
    struct auth_private_key key = {0};
    BUF_AUTO struct buf bytes = BUF_INIT(KEY_BYTES_MAX);
    size_t length = strlen(path);
    bool secret = length > 6 && strcmp(path + length - 6, ".hs256") == 0;
    enum err_code rc = read_guarded(path, &bytes, err);
    if (!rc)
        rc = secret ? parse_secret(buf_sv(&bytes), &key, err)
                    : parse_private(buf_sv(&bytes), &key, err);
    if (bytes.ptr)
        explicit_bzero(bytes.ptr, bytes.len);
    if (rc) {
        err_prefix(err, "key %s: ", path);
        return rc;
    }
    *ret_key = key;
    return ERR_OK;
}

enum err_code auth_sign_json(const struct auth_private_key *key, const char *kid,
                             const char *claims_json, char **ret_token, struct err *err)
{
    static const jwt_alg_t algs[] = {
        [AUTH_RS256] = JWT_ALG_RS256, [AUTH_ES256] = JWT_ALG_ES256, [AUTH_HS256] = JWT_ALG_HS256};
    jwt_t *jwt = NULL;
    char *token = NULL;
    if (jwt_new(&jwt) != 0)
        return err_set(err, ERR_NOMEM, "out of memory for a token");
    if (jwt_set_alg(jwt, algs[key->alg], (const unsigned char *)key->bytes, (int)key->size) == 0 &&
        jwt_add_grants_json(jwt, claims_json) == 0 &&
        (!kid || jwt_add_header(jwt, "kid", kid) == 0))
        token = jwt_encode_str(jwt);
    jwt_free(jwt);
    ERR_clear_error();
    if (!token)
        return err_set(err, ERR_INVALID, "the key cannot sign these claims");
    *ret_token = token;
    return ERR_OK;
}

static json_t *role_list(const char *roles)
{
    json_t *list = json_array();
    while (list && roles && *roles) {
        size_t length = strcspn(roles, " ");
        if (length > 0)
            (void)json_array_append_new(list, json_stringn(roles, length));
        roles += length + (roles[length] == ' ');
    }
    return list;
}

enum err_code auth_sign(const struct auth_private_key *key, const char *kid,
                        const struct auth_claims *claims, char **ret_token, struct err *err)
{
    JSON_AUTO json_t *root = json_object();
    int64_t now = clock_wall_s();
    int failed = json_object_set_new(root, "sub", json_string(claims->user));
    failed |= json_object_set_new(root, claims->tenant_claim, json_string(claims->tenant));
    failed |= json_object_set_new(root, claims->roles_claim, role_list(claims->roles));
    failed |= json_object_set_new(root, "iat", json_integer(now));
    failed |= json_object_set_new(root, "exp", json_integer(now + claims->lifetime_s));
    if (claims->issuer && claims->issuer[0])
        failed |= json_object_set_new(root, "iss", json_string(claims->issuer));
    if (claims->audience && claims->audience[0])
        failed |= json_object_set_new(root, "aud", json_string(claims->audience));
    TEXT_AUTO char *text = failed ? NULL : spare_text(json_dumps(root, JSON_COMPACT));
    if (!text)
        return err_set(err, ERR_INVALID, "the claims are not valid UTF-8");
    return auth_sign_json(key, kid, text, ret_token, err);
}

static enum err_code make_pair(enum auth_alg alg, struct auth_private_key *ret_private,
                               struct auth_key *ret_public, struct err *err)
{
    PKEY_AUTO EVP_PKEY *pkey = alg == AUTH_RS256
                                   ? EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)RSA_BITS)
                                   : EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    if (!pkey)
        return err_set(err, ERR_INTERNAL, "OpenSSL cannot make a key for %s", auth_alg_name(alg));
    enum err_code rc = private_to_pem(pkey, ret_private, err);
    return rc ? rc : auth_key_from_pkey(pkey, ret_public, err);
}

/* A secret is text, so that people can copy it. */
static enum err_code make_secret(struct auth_private_key *ret_private, struct auth_key *ret_public,
                                 struct err *err)
{
    unsigned char random[SECRET_BYTES];
    BUF_AUTO struct buf text = BUF_INIT(2 * SECRET_BYTES + 1);
    random_bytes(random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++)
        buf_addf(&text, "%02x", random[i]);
    explicit_bzero(random, sizeof(random));
    enum err_code rc = parse_secret(buf_sv(&text), ret_private, err);
    if (!rc)
        rc = auth_key_from_secret(buf_sv(&text), ret_public, err);
    if (text.ptr)
        explicit_bzero(text.ptr, text.len);
    return rc;
}

static bool kid_is_safe(const char *kid)
{
    size_t length =
        strspn(kid, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return length > 0 && !kid[length] && length < AUTH_KID_SIZE && kid[0] != '.' && kid[0] != '-';
}

static enum err_code store_key(const struct auth_new_key *wanted, struct sv public_part,
                               struct sv private_part, char *ret_private_path, struct err *err)
{
    FD_AUTO int keys_fd = -1;
    FD_AUTO int tenant_fd = -1;
    FD_AUTO int private_fd = -1;
    char name[FILE_NAME_SIZE];
    char private_name[FILE_NAME_SIZE + AUTH_TENANT_SIZE];
    bool secret = wanted->alg == AUTH_HS256;
    snprintf(name, sizeof(name), "%s.%s", wanted->kid, secret ? "hs256" : "pem");
    snprintf(private_name, sizeof(private_name), "%s.%s", wanted->tenant, name);
    enum err_code rc = fs_open_dir(wanted->keys_dir, true, &keys_fd, err);
    if (!rc)
        rc = fs_make_dirs(keys_fd, wanted->tenant, 0755, &tenant_fd, err);
    if (!rc)
        rc = fs_open_dir(wanted->private_dir, true, &private_fd, err);
    if (rc)
        return rc;
    if (faccessat(tenant_fd, name, F_OK, 0) == 0 ||
        faccessat(private_fd, private_name, F_OK, 0) == 0)
        return err_set(err, ERR_DUPLICATE, "tenant %s has a key %s already", wanted->tenant, name);
    int length =
        snprintf(ret_private_path, AUTH_PATH_SIZE, "%s/%s", wanted->private_dir, private_name);
    if (length < 0 || length >= AUTH_PATH_SIZE)
        return err_set(err, ERR_INVALID, "the path of the private folder is too long");
    rc = fs_write_sync(private_fd, private_name, private_part, 0600, err);
    if (!rc)
        rc = fs_write_sync(tenant_fd, name, public_part, secret ? 0600 : 0644, err);
    return rc;
}

enum err_code auth_make_key(const struct auth_new_key *wanted, char *ret_private_path,
                            struct err *err)
{
    AUTH_KEY_AUTO struct auth_private_key private_part = {0};
    struct auth_key public_part = {0};
    if (!auth_tenant_is_valid(sv_of(wanted->tenant)))
        return err_set(err, ERR_INVALID,
                       "\"%.80s\" is not the name of a tenant: 1 to 63 of a-z, 0-9 and '-', not "
                       "beginning with '-'",
                       wanted->tenant);
    if (!kid_is_safe(wanted->kid))
        return err_set(err, ERR_INVALID,
                       "\"%.80s\" is not the name of a key: 1 to %d letters, digits, '.', '_' or "
                       "'-', beginning with a letter, digit or '_'",
                       wanted->kid, AUTH_KID_SIZE - 1);
    enum err_code rc = wanted->alg == AUTH_HS256
                           ? make_secret(&private_part, &public_part, err)
                           : make_pair(wanted->alg, &private_part, &public_part, err);
    if (!rc)
        rc = store_key(wanted, (struct sv){(const char *)public_part.bytes, public_part.size},
                       (struct sv){private_part.bytes, private_part.size}, ret_private_path, err);
    auth_key_clear(&public_part);
    return rc;
}
