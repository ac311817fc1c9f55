/* SPDX-License-Identifier: MIT */
#include "tests/unit/auth_fixture.h"

#include "common/auth/base64url.h"
#include "common/base/buf.h"
#include "common/base/openssl.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/param_build.h>
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

/* Whoever knows n can sign for e = 1: the signature is the padded digest itself. */
static void rsa_keys_have_an_exponent_that_is_large_and_odd(void **unused)
{
    (void)unused;
    static const char *const bad[] = {"AQ", "Ag", "Aw", "EQ", "AQAA", "AQAC", "__8"};
    EVP_PKEY *rsa = private_of(&fx.rsa1);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        BUF_AUTO struct buf jwks = BUF_INIT(10000);
        buf_addf(&jwks, "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"weak\",\"e\":\"%s\"", bad[i]);
        add_number(&jwks, rsa, OSSL_PKEY_PARAM_RSA_N, "n");
        buf_addf(&jwks, "}]}");
        fixture_write("jwks", "jwks.json", buf_sv(&jwks), 0644);
        AUTO(auth_close) struct auth *auth = open_auth();
        TEXT_AUTO char *token = fixture_token(&fx.rsa1, "weak", "jwks", 60);
        assert_refused(auth, token, "no key weak");
    }
    fixture_remove("jwks/jwks.json");
    EVP_PKEY_free(rsa);
}

/* A public key of the same modulus with another exponent, in PEM. */
static void write_pem_with(EVP_PKEY *rsa, unsigned long exponent)
{
    BIGNUM *n = NULL;
    BIGNUM *e = BN_new();
    EVP_PKEY *made = NULL;
    char *pem = NULL;
    BIO *out = BIO_new(BIO_s_mem());
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    assert_true(EVP_PKEY_get_bn_param(rsa, OSSL_PKEY_PARAM_RSA_N, &n));
    assert_true(BN_set_word(e, exponent));
    assert_true(OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n));
    assert_true(OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e));
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    assert_true(EVP_PKEY_fromdata_init(context) > 0);
    assert_true(EVP_PKEY_fromdata(context, &made, EVP_PKEY_PUBLIC_KEY, params) > 0);
    assert_true(PEM_write_bio_PUBKEY(out, made));
    long size = BIO_get_mem_data(out, &pem);
    fixture_write("acme", "exponent.pem", (struct sv){pem, (size_t)size}, 0644);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(made);
    BIO_free(out);
    BN_free(n);
    BN_free(e);
}

static void the_exponent_counts_in_pem_as_well(void **unused)
{
    (void)unused;
    EVP_PKEY *rsa = private_of(&fx.rsa1);
    TEXT_AUTO char *token = fixture_token(&fx.rsa1, "exponent", "acme", 60);
    static const unsigned long bad[] = {1, 3, 65536, 65538};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        write_pem_with(rsa, bad[i]);
        AUTO(auth_close) struct auth *auth = open_auth();
        assert_refused(auth, token, "no key exponent");
    }
    write_pem_with(rsa, 65537);
    AUTO(auth_close) struct auth *auth = open_auth();
    assert_accepted(auth, token);
    fixture_remove("acme/exponent.pem");
    EVP_PKEY_free(rsa);
}

static void make_folder(const char *name)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", fx.keys_dir, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void remove_folder(const char *name)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", fx.keys_dir, name);
    assert_int_equal(rmdir(path), 0);
}

static void a_removed_key_is_refused_however_full_its_folder_is(void **unused)
{
    (void)unused;
    AUTO(auth_close) struct auth *auth = open_auth();
    AUTH_KEY_AUTO struct auth_private_key lost = {0};
    AUTH_KEY_AUTO struct auth_private_key kept = {0};
    AUTH_KEY_AUTO struct auth_private_key late = {0};
    fixture_make("full", "lost", AUTH_ES256, &lost);
    fixture_make("full", "kept", AUTH_ES256, &kept);
    TEXT_AUTO char *old = fixture_token(&lost, "lost", "full", 600);
    TEXT_AUTO char *fresh = fixture_token(&lost, "lost", "full", 601);
    TEXT_AUTO char *other = fixture_token(&kept, "kept", "full", 600);
    fixture_wait_s(4);
    assert_accepted(auth, old);
    assert_accepted(auth, other);
    for (int i = 0; i < 130; i++) {
        char name[32];
        snprintf(name, sizeof(name), "junk-%03d.pem", i);
        fixture_write("full", name, SV("junk"), 0644);
    }
    fixture_make("full", "late", AUTH_ES256, &late);
    TEXT_AUTO char *new = fixture_token(&late, "late", "full", 600);
    fixture_wait_s(4);
    assert_accepted(auth, old);
    assert_refused(auth, new, "no key late");
    assert_int_equal(auth_trouble(auth).folders, 1);
    fixture_remove("full/lost.pem");
    fixture_wait_s(4);
    assert_refused(auth, old, "no key lost");
    assert_refused(auth, fresh, "no key lost");
    assert_accepted(auth, other);
    for (int i = 0; i < 130; i++) {
        char name[48];
        snprintf(name, sizeof(name), "full/junk-%03d.pem", i);
        fixture_remove(name);
    }
    fixture_wait_s(4);
    assert_accepted(auth, other);
    assert_accepted(auth, new);
    assert_refused(auth, old, "no key lost");
    assert_int_equal(auth_trouble(auth).folders, 0);
    fixture_remove("full/kept.pem");
    fixture_remove("full/late.pem");
    remove_folder("full");
}

/* As a user that permissions count for; the folders are of another one. */
static void see_as_nobody(bool nobody)
{
    if (getuid() == 0)
        assert_int_equal(seteuid(nobody ? 65534 : 0), 0);
}

static void what_cannot_be_read_opens_nothing(void **unused)
{
    (void)unused;
    AUTH_KEY_AUTO struct auth_private_key key = {0};
    char folder[128];
    fixture_make("closed", "k", AUTH_ES256, &key);
    snprintf(folder, sizeof(folder), "%s/closed", fx.keys_dir);
    assert_int_equal(chmod(fx.root, 0755), 0);
    see_as_nobody(true);
    AUTO(auth_close) struct auth *auth = open_auth();
    TEXT_AUTO char *token = fixture_token(&key, "k", "closed", 600);
    TEXT_AUTO char *other = fixture_token(&fx.ec1, "ec1", "acme", 600);
    struct identity who;
    char detail[200];
    assert_int_equal(fixture_check(auth, token, &who, detail), ERR_OK);
    assert_null(auth_ended(auth, &who));
    see_as_nobody(false);
    assert_int_equal(chmod(folder, 0), 0);
    see_as_nobody(true);
    fixture_wait_s(4);
    assert_refused(auth, token, "no key");
    assert_non_null(auth_ended(auth, &who));
    assert_accepted(auth, other);
    assert_int_equal(auth_trouble(auth).folders, 1);
    assert_false(auth_trouble(auth).all);
    see_as_nobody(false);
    assert_int_equal(chmod(folder, 0755), 0);
    see_as_nobody(true);
    fixture_wait_s(4);
    assert_accepted(auth, token);
    see_as_nobody(false);
    assert_int_equal(chmod(fx.keys_dir, 0), 0);
    see_as_nobody(true);
    fixture_wait_s(4);
    assert_refused(auth, token, "no key");
    assert_refused(auth, other, "no key");
    assert_true(auth_trouble(auth).all);
    see_as_nobody(false);
    assert_int_equal(chmod(fx.keys_dir, 0755), 0);
    fixture_wait_s(4);
    assert_accepted(auth, other);
    fixture_remove("closed/k.pem");
    remove_folder("closed");
}

static void a_removed_key_is_refused_however_many_tenants_there_are(void **unused)
{
    (void)unused;
    AUTH_KEY_AUTO struct auth_private_key key = {0};
    fixture_make("many", "k", AUTH_ES256, &key);
    AUTO(auth_close) struct auth *auth = open_auth();
    TEXT_AUTO char *token = fixture_token(&key, "k", "many", 600);
    assert_accepted(auth, token);
    for (int i = 0; i < 10010; i++) {
        char name[32];
        snprintf(name, sizeof(name), "aaa-%05d", i);
        make_folder(name);
    }
    fixture_wait_s(4);
    assert_accepted(auth, token);
    assert_int_equal(auth_tenants(auth), 10000);
    assert_in_range(auth_trouble(auth).folders, 10, 20);
    fixture_remove("many/k.pem");
    fixture_wait_s(4);
    assert_refused(auth, token, "no key");
    for (int i = 0; i < 10010; i++) {
        char name[32];
        snprintf(name, sizeof(name), "aaa-%05d", i);
        remove_folder(name);
    }
    remove_folder("many");
}

static atomic_int step_s;

static int64_t slow_clock_us(void)
{
    return (int64_t)atomic_fetch_add(&clock_s, atomic_load(&step_s)) * 1000000;
}

/* Each question for the time takes a second: looking takes one at least. */
static void a_removed_key_is_refused_however_long_looking_takes(void **unused)
{
    (void)unused;
    AUTH_KEY_AUTO struct auth_private_key key = {0};
    fixture_make("acme", "slow", AUTH_ES256, &key);
    clock_replace(slow_clock_us, fixture_clock_us);
    atomic_store(&step_s, 0);
    AUTO(auth_close) struct auth *auth = open_auth();
    TEXT_AUTO char *token = fixture_token(&key, "slow", "acme", 600);
    atomic_store(&step_s, 1);
    fixture_wait_s(4);
    assert_accepted(auth, token);
    atomic_store(&step_s, 0);
    fixture_remove("acme/slow.pem");
    fixture_wait_s(4);
    assert_refused(auth, token, "no key slow");
    clock_replace(fixture_clock_us, fixture_clock_us);
}

/* What holds a stream is the key that signed, and not that the folder stays as it was. */
static void what_was_let_in_holds_as_long_as_token_and_key(void **unused)
{
    (void)unused;
    AUTO(auth_close) struct auth *auth = open_auth();
    AUTH_KEY_AUTO struct auth_private_key key = {0};
    AUTH_KEY_AUTO struct auth_private_key more = {0};
    struct identity who;
    char detail[200];
    fixture_make("acme", "stream", AUTH_ES256, &key);
    fixture_wait_s(4);
    TEXT_AUTO char *token = fixture_token(&key, "stream", "acme", 60);
    assert_int_equal(fixture_check(auth, token, &who, detail), ERR_OK);
    fixture_make("acme", "beside", AUTH_ES256, &more);
    fixture_wait_s(4);
    auth_look(auth);
    assert_null(auth_ended(auth, &who));
    fixture_wait_s(60 - 4 + 29);
    assert_null(auth_ended(auth, &who)); /* by leeway */
    fixture_wait_s(1);
    assert_string_equal(auth_ended(auth, &who), "the token has expired");
    TEXT_AUTO char *second = fixture_token(&key, "stream", "acme", 600);
    assert_int_equal(fixture_check(auth, second, &who, detail), ERR_OK);
    fixture_remove("acme/stream.pem");
    fixture_wait_s(4);
    auth_look(auth); /* nobody else has asked */
    assert_string_equal(auth_ended(auth, &who), "the key of the token was removed");
    fixture_remove("acme/beside.pem");
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
        TEST(rsa_keys_have_an_exponent_that_is_large_and_odd),
        TEST(the_exponent_counts_in_pem_as_well),
        TEST(a_removed_key_is_refused_however_full_its_folder_is),
        TEST(what_cannot_be_read_opens_nothing),
        TEST(a_removed_key_is_refused_however_many_tenants_there_are),
        TEST(a_removed_key_is_refused_however_long_looking_takes),
        TEST(what_was_let_in_holds_as_long_as_token_and_key),
        TEST(keys_are_made_once_and_under_safe_names),
        TEST(a_private_key_that_others_may_read_is_refused),
        TEST(a_missing_folder_of_keys_is_told_at_start),
    };
    return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
