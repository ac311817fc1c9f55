/* SPDX-License-Identifier: MIT */
#include "tests/unit/auth_fixture.h"

#include "common/auth/base64url.h"
#include "common/base/buf.h"
#include "common/base/openssl.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/pem.h>

static struct auth *open_auth(void)
{
    struct auth *auth = NULL;
    struct err err = {0};
    assert_ok(auth_open(&fx.cfg, &auth, &err));
    return auth;
}

static void a_new_key_works_without_a_restart(void **unused)
{
    (void)unused;
    AUTO(auth_close) struct auth *auth = open_auth();
    AUTH_KEY_AUTO struct auth_private_key key = {0};
    fixture_make("acme", "rotated", AUTH_ES256, &key);
    TEXT_AUTO char *token = fixture_token(&key, "rotated", "acme", 600);
    assert_refused(auth, token, "no key rotated"); /* looked a moment ago */
    fixture_wait_s(1);
    assert_accepted(auth, token);
    fixture_remove("acme/rotated.pem");
    assert_accepted(auth, token);
    fixture_wait_s(4);
    assert_refused(auth, token, "no key rotated");
}

static void a_key_that_was_replaced_takes_its_tokens_along(void **unused)
{
    (void)unused;
    AUTO(auth_close) struct auth *auth = open_auth();
    AUTH_KEY_AUTO struct auth_private_key old = {0};
    AUTH_KEY_AUTO struct auth_private_key new = {0};
    fixture_make("acme", "swap", AUTH_ES256, &old);
    fixture_make("acme", "other", AUTH_ES256, &new);
    auth_rescan(auth);
    TEXT_AUTO char *token = fixture_token(&old, "swap", "acme", 600);
    assert_accepted(auth, token);
    char from[128];
    char to[128];
    snprintf(from, sizeof(from), "%s/acme/other.pem", fx.keys_dir);
    snprintf(to, sizeof(to), "%s/acme/swap.pem", fx.keys_dir);
    assert_int_equal(rename(from, to), 0);
    fixture_wait_s(4);
    assert_refused(auth, token, "signature is not that of key swap");
    fixture_remove("acme/swap.pem");
}

static void a_tenant_comes_and_goes_with_its_folder(void **unused)
{
    (void)unused;
    AUTO(auth_close) struct auth *auth = open_auth();
    AUTH_KEY_AUTO struct auth_private_key key = {0};
    char name[AUTH_TENANT_SIZE];
    fixture_make("gamma", "k", AUTH_ES256, &key);
    TEXT_AUTO char *token = fixture_token(&key, "k", "gamma", 600);
    fixture_wait_s(1);
    assert_accepted(auth, token);
    assert_int_equal(auth_tenants(auth), 3);
    assert_true(auth_tenant(auth, 2, name));
    assert_string_equal(name, "gamma");
    assert_false(auth_tenant(auth, 3, name));
    fixture_remove("gamma/k.pem");
    char path[128];
    snprintf(path, sizeof(path), "%s/gamma", fx.keys_dir);
    assert_int_equal(rmdir(path), 0);
    fixture_wait_s(4);
    assert_refused(auth, token, "tenant gamma has no key");
}

static void shared_secrets_count_only_when_allowed_and_private(void **unused)
{
    (void)unused;
    AUTH_KEY_AUTO struct auth_private_key key = {0};
    fixture_make("acme", "shared", AUTH_HS256, &key);
    TEXT_AUTO char *token = fixture_token(&key, "shared", "acme", 600);
    AUTO(auth_close) struct auth *strict = open_auth();
    assert_refused(strict, token, "no key shared");
    fx.cfg.allow_hs256 = true;
    AUTO(auth_close) struct auth *allowing = open_auth();
    assert_accepted(allowing, token);
    fixture_write("acme", "shared.hs256", (struct sv){key.bytes, key.size}, 0644);
    auth_rescan(allowing);
    assert_refused(allowing, token, "no key shared");
    fixture_write("acme", "shared.hs256", SV("short"), 0600);
    auth_rescan(allowing);
    assert_refused(allowing, token, "no key shared");
    fx.cfg.allow_hs256 = false;
    fixture_remove("acme/shared.hs256");
}

static void weak_and_misplaced_keys_are_left_out(void **unused)
{
    (void)unused;
    struct err err = {0};
    TEXT_AUTO char *token = NULL;
    EVP_PKEY *weak = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);
    BIO *out = BIO_new(BIO_s_mem());
    char *pem = NULL;
    assert_true(PEM_write_bio_PUBKEY(out, weak));
    long size = BIO_get_mem_data(out, &pem);
    fixture_write("acme", "weak.pem", (struct sv){pem, (size_t)size}, 0644);
    (void)BIO_reset(out);
    assert_true(PEM_write_bio_PrivateKey(out, weak, NULL, NULL, 0, NULL, NULL));
    size = BIO_get_mem_data(out, &pem);
    struct auth_private_key key = {AUTH_RS256, pem, (size_t)size};
    assert_ok(auth_sign_json(&key, "weak", "{\"tenant\":\"acme\"}", &token, &err));
    fixture_write("acme", "misplaced.pem", (struct sv){fx.ec1.bytes, fx.ec1.size}, 0644);
    fixture_write("acme", "junk.pem", SV("junk"), 0644);
    fixture_write("acme", ".hidden.pem", SV("junk"), 0644);
    AUTO(auth_close) struct auth *auth = open_auth();
    assert_refused(auth, token, "no key weak");
    TEXT_AUTO char *misplaced = fixture_token(&fx.ec1, "misplaced", "acme", 60);
    assert_refused(auth, misplaced, "no key misplaced");
    TEXT_AUTO char *good = fixture_token(&fx.ec1, "ec1", "acme", 60);
    assert_accepted(auth, good);
    BIO_free(out);
    EVP_PKEY_free(weak);
    fixture_remove("acme/weak.pem");
    fixture_remove("acme/misplaced.pem");
    fixture_remove("acme/junk.pem");
    fixture_remove("acme/.hidden.pem");
}

/* A number of a private key as a member of a JWK. */
static void add_number(struct buf *jwk, EVP_PKEY *pkey, const char *param, const char *member)
{
    BIGNUM *number = NULL;
    unsigned char bytes[512];
    assert_true(EVP_PKEY_get_bn_param(pkey, param, &number));
    int length = EVP_PKEY_is_a(pkey, "EC") ? 32 : BN_num_bytes(number);
    assert_int_equal(BN_bn2binpad(number, bytes, length), length);
    buf_addf(jwk, ",\"%s\":\"", member);
    assert_true(base64url_encode((struct sv){(const char *)bytes, (size_t)length}, jwk));
    buf_addf(jwk, "\"");
    BN_free(number);
}

static EVP_PKEY *private_of(const struct auth_private_key *key)
{
    BIO *in = BIO_new_mem_buf(key->bytes, (int)key->size);
    EVP_PKEY *pkey = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
    BIO_free(in);
    assert_non_null(pkey);
    return pkey;
}

static void a_jwks_holds_rsa_and_ec_keys(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf jwks = BUF_INIT(10000);
    EVP_PKEY *rsa = private_of(&fx.rsa1);
    EVP_PKEY *ec = private_of(&fx.ec1);
    buf_addf(&jwks, "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"j1\",\"use\":\"sig\",\"alg\":\"RS256\"");
    add_number(&jwks, rsa, OSSL_PKEY_PARAM_RSA_N, "n");
    add_number(&jwks, rsa, OSSL_PKEY_PARAM_RSA_E, "e");
    buf_addf(&jwks, "},{\"kty\":\"EC\",\"kid\":\"j2\",\"crv\":\"P-256\"");
    add_number(&jwks, ec, OSSL_PKEY_PARAM_EC_PUB_X, "x");
    add_number(&jwks, ec, OSSL_PKEY_PARAM_EC_PUB_Y, "y");
    buf_addf(&jwks,
             "},{\"kty\":\"EC\",\"kid\":\"j3\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"},"
             "{\"kty\":\"oct\",\"kid\":\"j4\",\"k\":\"AAAA\"},{\"kid\":7},3,"
             "{\"kty\":\"RSA\",\"kid\":\"j5\",\"alg\":\"RS512\"");
    add_number(&jwks, rsa, OSSL_PKEY_PARAM_RSA_N, "n");
    add_number(&jwks, rsa, OSSL_PKEY_PARAM_RSA_E, "e");
    buf_addf(&jwks, "}]}");
    assert_false(jwks.failed);
    fixture_write("jwks", "jwks.json", buf_sv(&jwks), 0644);
    AUTO(auth_close) struct auth *auth = open_auth();
    TEXT_AUTO char *first = fixture_token(&fx.rsa1, "j1", "jwks", 60);
    TEXT_AUTO char *second = fixture_token(&fx.ec1, "j2", "jwks", 60);
    TEXT_AUTO char *third = fixture_token(&fx.rsa1, "j5", "jwks", 60);
    assert_accepted(auth, first);
    assert_accepted(auth, second);
    assert_refused(auth, third, "no key j5");
    fixture_write("jwks", "jwks.json", SV("[]"), 0644);
    auth_rescan(auth);
    assert_refused(auth, first, "no key j1");
    fixture_remove("jwks/jwks.json");
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(ec);
}

static void keys_are_made_once_and_under_safe_names(void **unused)
{
    (void)unused;
    char path[AUTH_PATH_SIZE];
    struct err err = {0};
    struct auth_new_key wanted = {fx.keys_dir, fx.private_dir, "acme", "ec1", AUTH_ES256};
    assert_code(auth_make_key(&wanted, path, &err), ERR_DUPLICATE);
    static const char *const bad[] = {"", "../x", ".x", "-x", "a/b", "a b"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err_clear(&err);
        wanted.kid = bad[i];
        assert_code(auth_make_key(&wanted, path, &err), ERR_INVALID);
    }
    err_clear(&err);
    wanted.kid = "x";
    wanted.tenant = "../acme";
    assert_code(auth_make_key(&wanted, path, &err), ERR_INVALID);
}

static void a_private_key_that_others_may_read_is_refused(void **unused)
{
    (void)unused;
    struct auth_private_key key = {0};
    struct err err = {0};
    struct stat st;
    char path[128];
    snprintf(path, sizeof(path), "%s/acme.ec1.pem", fx.private_dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(chmod(path, 0644), 0);
    assert_code(auth_key_read(path, &key, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "0644"));
    assert_int_equal(chmod(path, 0600), 0);
    err_clear(&err);
    assert_code(auth_key_read("/nowhere", &key, &err), ERR_NOT_FOUND);
}

static void a_missing_folder_of_keys_is_told_at_start(void **unused)
{
    (void)unused;
    struct auth *auth = NULL;
    struct err err = {0};
    struct auth_config cfg = fx.cfg;
    cfg.keys_dir = "/nowhere/keys";
    assert_code(auth_open(&cfg, &auth, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "auth.keys_dir: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_key_works_without_a_restart),
        TEST(a_key_that_was_replaced_takes_its_tokens_along),
        TEST(a_tenant_comes_and_goes_with_its_folder),
        TEST(shared_secrets_count_only_when_allowed_and_private),
        TEST(weak_and_misplaced_keys_are_left_out),
        TEST(a_jwks_holds_rsa_and_ec_keys),
        TEST(keys_are_made_once_and_under_safe_names),
        TEST(a_private_key_that_others_may_read_is_refused),
        TEST(a_missing_folder_of_keys_is_told_at_start),
    };
    return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
