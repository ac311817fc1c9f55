/* SPDX-License-Identifier: MIT */
#include "tests/unit/auth_fixture.h"

#include "common/auth/base64url.h"
#include "common/base/buf.h"
#include "common/base/openssl.h"

#include <jwt.h>
#include <openssl/bio.h>
#include <openssl/ecdsa.h>
#include <openssl/pem.h>

/* Every forgery of design row F-20 that needs no change of keys. */

static struct auth *auth;

static int start(void **state)
{
    struct err err = {0};
    if (fixture_start(state) != 0)
        return 1;
    return auth_open(&fx.cfg, &auth, &err) == ERR_OK ? 0 : 1;
}

static int stop(void **state)
{
    auth_close(auth);
    return fixture_stop(state);
}

/* The claims of a good token, with more of them. */
static const char *claims_with(struct buf *buf, const char *more)
{
    buf_clear(buf);
    buf_addf(buf, "{\"sub\":\"alice\",\"tenant\":\"acme\",\"roles\":[\"user\"],\"exp\":%lld%s}",
             (long long)clock_wall_s() + 60, more);
    return buf_text(buf);
}

/* header "." claims "." signature, the first two encoded here. */
static char *join(const char *header, const char *claims, const char *signature)
{
    BUF_AUTO struct buf token = BUF_INIT(100000);
    assert_true(base64url_encode(sv_of(header), &token));
    buf_add_text(&token, ".");
    assert_true(base64url_encode(sv_of(claims), &token));
    buf_addf(&token, ".%s", signature);
    return buf_take(&token);
}

static void refuse_joined(const char *header, const char *signature, const char *part)
{
    BUF_AUTO struct buf claims = BUF_INIT(1000);
    TEXT_AUTO char *token = join(header, claims_with(&claims, ""), signature);
    assert_refused(auth, token, part);
}

/* Signed well by ec1, with header members and claims as given. */
static char *sign(const char *header_json, const char *claims_json)
{
    jwt_t *jwt = NULL;
    assert_int_equal(jwt_new(&jwt), 0);
    assert_int_equal(jwt_add_grants_json(jwt, claims_json), 0);
    assert_int_equal(jwt_add_headers_json(jwt, header_json), 0);
    assert_int_equal(
        jwt_set_alg(jwt, JWT_ALG_ES256, (const unsigned char *)fx.ec1.bytes, (int)fx.ec1.size), 0);
    char *token = jwt_encode_str(jwt);
    jwt_free(jwt);
    assert_non_null(token);
    return token;
}

/* The library has its own word for typ: what it signs is taken apart and signed anew. */
static char *sign_typ(const struct auth_private_key *key, const char *header, const char *claims)
{
    BUF_AUTO struct buf token = BUF_INIT(10000);
    BIO *in = BIO_new_mem_buf(key->bytes, (int)key->size);
    EVP_PKEY *pkey = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char der[200];
    unsigned char raw[64];
    size_t length = sizeof(der);
    BUF_AUTO struct buf head = BUF_INIT(1000);
    buf_addf(&head, "{\"alg\":\"ES256\",%s", header + 1);
    assert_true(base64url_encode(buf_sv(&head), &token));
    buf_add_text(&token, ".");
    assert_true(base64url_encode(sv_of(claims), &token));
    assert_true(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, pkey));
    assert_true(
        EVP_DigestSign(context, der, &length, (const unsigned char *)buf_text(&token), token.len));
    const unsigned char *at = der;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)length);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(pair), raw, 32), 32);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(pair), raw + 32, 32), 32);
    buf_add_text(&token, ".");
    assert_true(base64url_encode((struct sv){(const char *)raw, sizeof(raw)}, &token));
    ECDSA_SIG_free(pair);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(pkey);
    BIO_free(in);
    return buf_take(&token);
}

static void refuse_claims(const char *claims, const char *part)
{
    TEXT_AUTO char *token = sign("{\"kid\":\"ec1\"}", claims);
    assert_refused(auth, token, part);
}

static void refuse_header(const char *header_json, const char *part)
{
    BUF_AUTO struct buf claims = BUF_INIT(1000);
    TEXT_AUTO char *token = sign(header_json, claims_with(&claims, ""));
    assert_refused(auth, token, part);
}

static void alg_none_is_refused_in_any_spelling(void **unused)
{
    (void)unused;
    static const char *const spellings[] = {"none", "None", "NONE", "nOnE", "", "none\\u0020"};
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
        char header[100];
        snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"kid\":\"ec1\"}", spellings[i]);
        refuse_joined(header, "", "the signature is not base64url");
        refuse_joined(header, "AAAA", "is not supported");
    }
    refuse_joined("{\"kid\":\"ec1\"}", "AAAA", "is not supported");
    refuse_joined("{\"alg\":null,\"kid\":\"ec1\"}", "AAAA", "is not supported");
    refuse_joined("{\"alg\":[\"ES256\"],\"kid\":\"ec1\"}", "AAAA", "is not supported");
    refuse_joined("{\"alg\":\"ES256\",\"alg\":\"none\"}", "AAAA", "not a JSON object");
}

static void the_public_key_is_no_shared_secret(void **unused)
{
    (void)unused;
    struct err err = {0};
    BUF_AUTO struct buf pem = BUF_INIT(10000);
    FD_AUTO int fd = -1;
    assert_ok(fs_open_dir(fx.keys_dir, false, &fd, &err));
    assert_ok(fs_read(fd, "acme/rsa1.pem", &pem, &err));
    struct auth_private_key forged = {AUTH_HS256, pem.ptr, pem.len};
    TEXT_AUTO char *token = fixture_token(&forged, "rsa1", "acme", 60);
    assert_refused(auth, token, "alg HS256, but key rsa1 is for RS256");
    struct auth_config cfg = fx.cfg;
    AUTO(auth_close) struct auth *allowing = NULL;
    cfg.allow_hs256 = true;
    assert_ok(auth_open(&cfg, &allowing, &err));
    assert_refused(allowing, token, "alg HS256, but key rsa1 is for RS256");
}

static void the_algorithm_is_that_of_the_key(void **unused)
{
    (void)unused;
    TEXT_AUTO char *ec_as_rsa = fixture_token(&fx.ec1, "rsa1", "acme", 60);
    TEXT_AUTO char *rsa_as_ec = fixture_token(&fx.rsa1, "ec1", "acme", 60);
    TEXT_AUTO char *other_key = fixture_token(&fx.ec2, "ec1", "acme", 60);
    assert_refused(auth, ec_as_rsa, "alg ES256, but key rsa1 is for RS256");
    assert_refused(auth, rsa_as_ec, "alg RS256, but key ec1 is for ES256");
    assert_refused(auth, other_key, "signature is not that of key ec1");
}

static void keys_of_one_tenant_say_nothing_for_another(void **unused)
{
    (void)unused;
    TEXT_AUTO char *known = fixture_token(&fx.ec1, "ec1", "beta", 60);
    TEXT_AUTO char *unknown = fixture_token(&fx.ec1, "ec1", "nobody", 60);
    TEXT_AUTO char *path = fixture_token(&fx.ec1, "ec1", "../acme", 60);
    assert_refused(auth, known, "tenant beta has no key ec1");
    assert_refused(auth, unknown, "tenant nobody has no key ec1");
    assert_refused(auth, path, "not the name of a tenant");
}

static void header_members_that_would_steer_us_are_refused_or_ignored(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf claims = BUF_INIT(1000);
    refuse_header("{\"kid\":\"ec1\",\"crit\":[\"exp\"],\"exp\":1}", "crit");
    refuse_header("{\"kid\":\"ec1\",\"crit\":[]}", "crit");
    refuse_header("{\"kid\":\"../../etc/passwd\"}", "no key ../../etc/passwd");
    refuse_header("{\"kid\":\"acme/ec1\"}", "no key acme/ec1");
    refuse_header("{\"kid\":\"ec1' OR '1'='1\"}", "no key");
    refuse_header("{\"kid\":\"\"}", "no key");
    refuse_joined("{\"alg\":\"ES256\",\"kid\":\"ec1\\u0000\"}", "AAAA", "not a JSON object");
    refuse_joined("{\"alg\":\"ES256\",\"kid\":7}", "AAAA", "kid is not a text");
    refuse_joined("{\"alg\":\"ES256\",\"typ\":7}", "AAAA", "typ is not a text");
    TEXT_AUTO char *steering =
        sign("{\"kid\":\"ec1\",\"jku\":\"http://127.0.0.1:1/\",\"x5u\":\"http://127.0.0.1:1/\","
             "\"jwk\":{\"kty\":\"oct\",\"k\":\"AAAA\"},\"x5c\":[\"AAAA\"]}",
             claims_with(&claims, ""));
    assert_accepted(auth, steering);
}

/* RFC 9068, 2.1 and 4; other types (of a logout, of a proof) are signed for something else. */
static void typ_is_that_of_a_token_for_access(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf claims = BUF_INIT(1000);
    static const char *const good[] = {"JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"};
    static const char *const bad[] = {"",   "JWS",  "logout+jwt", "dpop+jwt",    "at+jwt ",
                                      "at", "JWTx", "id+jwt",     "secevent+jwt"};
    char header[100];
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        snprintf(header, sizeof(header), "{\"kid\":\"ec1\",\"typ\":\"%s\"}", good[i]);
        TEXT_AUTO char *token = sign_typ(&fx.ec1, header, claims_with(&claims, ""));
        assert_accepted(auth, token);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(header, sizeof(header), "{\"kid\":\"ec1\",\"typ\":\"%s\"}", bad[i]);
        TEXT_AUTO char *token = sign_typ(&fx.ec1, header, claims_with(&claims, ""));
        assert_refused(auth, token, "typ");
    }
}

static void a_user_has_no_blanks_at_the_ends_and_is_no_star(void **unused)
{
    (void)unused;
    static const char *const users[] = {"alice ", " alice", " ", "   ", "*", "alice\\u0020"};
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        char claims[200];
        snprintf(claims, sizeof(claims), "{\"sub\":\"%s\",\"tenant\":\"acme\",\"exp\":9999999999}",
                 users[i]);
        refuse_claims(claims, "claim sub");
    }
    static const char *const good[] = {"al ice", "*a", "a*", "\\u00e9", "\\u4e2d"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        char claims[200];
        char detail[200];
        struct identity identity;
        snprintf(claims, sizeof(claims), "{\"sub\":\"%s\",\"tenant\":\"acme\",\"exp\":9999999999}",
                 good[i]);
        TEXT_AUTO char *token = sign("{\"kid\":\"ec1\"}", claims);
        assert_int_equal(fixture_check(auth, token, &identity, detail), ERR_OK);
    }
}

static void tokens_have_three_parts_of_strict_base64url(void **unused)
{
    (void)unused;
    static const char *const shapes[] = {"", ".", "..", "...", "a", "a.b", "a.b.c.d", "a..c"};
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        assert_refused(auth, shapes[i], "");
    char dots[8001];
    memset(dots, '.', sizeof(dots) - 1);
    dots[sizeof(dots) - 1] = 0;
    assert_refused(auth, dots, "three parts");
    TEXT_AUTO char *good = fixture_token(&fx.ec1, "ec1", "acme", 60);
    char changed[2000];
    static const char *const tails[] = {"=", "==", "A", "+", " x", "\n", "%00"};
    for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
        snprintf(changed, sizeof(changed), "%s%s", good, tails[i]);
        assert_refused(auth, changed, "");
    }
    snprintf(changed, sizeof(changed), "%s", good);
    char *last = &changed[strlen(changed) - 1]; /* 86 characters: its low 4 bits carry nothing */
    *last = (char)(*last == 'Q' ? 'R' : *last + 1);
    assert_refused(auth, changed, "");
    assert_accepted(auth, good);
}

static void huge_tokens_are_refused_before_they_are_read(void **unused)
{
    (void)unused;
    size_t size = 100000;
    TEXT_AUTO char *huge = malloc(size);
    assert_non_null(huge);
    memset(huge, 'A', size - 1);
    huge[size - 1] = 0;
    assert_refused(auth, huge, "at most 8192");
    TEXT_AUTO char *header = malloc(4000);
    assert_non_null(header);
    int length = snprintf(header, 4000, "{\"alg\":\"ES256\",\"x\":\"%03000d\"}", 0);
    assert_in_range(length, 3000, 3999);
    refuse_joined(header, "AAAA", "header is not base64url of at most 2048");
    char deep[2000];
    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = 0;
    refuse_joined(deep, "AAAA", "not a JSON object");
}

static void times_are_checked_with_leeway(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf claims = BUF_INIT(1000);
    char more[200];
    TEXT_AUTO char *good = fixture_token(&fx.ec1, "ec1", "acme", 60);
    fixture_wait_s(60 + 29);
    assert_accepted(auth, good);
    fixture_wait_s(1);
    assert_refused(auth, good, "the token expired"); /* though it was remembered */
    TEXT_AUTO char *late = fixture_token(&fx.ec1, "ec1", "acme", -31);
    assert_refused(auth, late, "the token expired");
    long long now = clock_wall_s();
    snprintf(more, sizeof(more), ",\"nbf\":%lld,\"iat\":%lld", now + 30, now + 30);
    TEXT_AUTO char *soon = sign("{\"kid\":\"ec1\"}", claims_with(&claims, more));
    assert_accepted(auth, soon);
    snprintf(more, sizeof(more), ",\"nbf\":%lld", now + 31);
    refuse_claims(claims_with(&claims, more), "(nbf), which is in 31 s by");
    snprintf(more, sizeof(more), ",\"iat\":%lld", now + 31);
    refuse_claims(claims_with(&claims, more), "(iat), which is in 31 s by");
    refuse_claims(claims_with(&claims, ",\"nbf\":\"1\""), "claim nbf is not a time");
    refuse_claims(claims_with(&claims, ",\"iat\":-1"), "claim iat is not a time");
    refuse_claims(claims_with(&claims, ",\"iat\":1e300"), "claim iat is not a time");
}

static void exp_sub_and_tenant_are_required(void **unused)
{
    (void)unused;
    refuse_claims("{\"sub\":\"a\",\"tenant\":\"acme\"}", "claim exp is missing");
    refuse_claims("{\"sub\":\"a\",\"tenant\":\"acme\",\"exp\":\"9999999999\"}", "claim exp is not");
    refuse_claims("{\"sub\":\"a\",\"tenant\":\"acme\",\"exp\":9223372036854775807}",
                  "claim exp is not");
    refuse_claims("{\"tenant\":\"acme\",\"exp\":9999999999}", "claim sub is missing");
    refuse_claims("{\"sub\":\"\",\"tenant\":\"acme\",\"exp\":9999999999}", "claim sub is not");
    refuse_claims("{\"sub\":7,\"tenant\":\"acme\",\"exp\":9999999999}", "claim sub is not");
    refuse_claims("{\"sub\":\"a\\nb\",\"tenant\":\"acme\",\"exp\":9999999999}",
                  "control character");
    refuse_claims("{\"sub\":\"a\",\"exp\":9999999999}", "claim tenant is missing");
    refuse_claims("{\"sub\":\"a\",\"tenant\":[\"acme\"],\"exp\":9999999999}", "claim tenant");
    char claims[400];
    snprintf(claims, sizeof(claims), "{\"sub\":\"%0129d\",\"tenant\":\"acme\",\"exp\":9999999999}",
             0);
    refuse_claims(claims, "claim sub is not a text of 1 to 128 bytes");
}

struct origin {
    const char *more; /* claims */
    const char *part; /* of the detail; NULL: accepted */
};

static void check_origin(struct auth *choosy, const struct origin *origin)
{
    BUF_AUTO struct buf claims = BUF_INIT(1000);
    TEXT_AUTO char *token = sign("{\"kid\":\"ec1\"}", claims_with(&claims, origin->more));
    if (origin->part)
        assert_refused(choosy, token, origin->part);
    else
        assert_accepted(choosy, token);
}

static void issuer_and_audience_count_when_configured(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct auth_config cfg = fx.cfg;
    AUTO(auth_close) struct auth *choosy = NULL;
    cfg.issuer = "https://login.example";
    cfg.audience = "sluice";
    assert_ok(auth_open(&cfg, &choosy, &err));
    static const struct origin origins[] = {
        {",\"iss\":\"https://login.example\",\"aud\":\"sluice\"", NULL},
        {",\"iss\":\"https://login.example\",\"aud\":[\"x\",\"sluice\"]", NULL},
        {",\"iss\":\"https://login.example\",\"aud\":[\"x\"]", "claim aud"},
        {",\"iss\":\"https://login.example\"", "claim aud"},
        {",\"iss\":\"https://login.example/\",\"aud\":\"sluice\"", "claim iss"},
        {",\"iss\":[\"https://login.example\"],\"aud\":\"sluice\"", "claim iss"},
        {",\"aud\":\"sluice\"", "claim iss"},
    };
    for (size_t i = 0; i < ARRAY_LEN(origins); i++)
        check_origin(choosy, &origins[i]);
}

static void signatures_of_zeros_and_changed_claims_are_refused(void **unused)
{
    (void)unused;
    char zeros[87];
    memset(zeros, 'A', sizeof(zeros) - 1);
    zeros[sizeof(zeros) - 1] = 0;
    refuse_joined("{\"alg\":\"ES256\",\"kid\":\"ec1\"}", zeros, "signature is not that of key ec1");
    refuse_joined("{\"alg\":\"ES256\",\"kid\":\"ec1\"}", "AAAA", "signature is not that of");
    refuse_joined("{\"alg\":\"RS256\",\"kid\":\"rsa1\"}", zeros, "signature is not that of");
    TEXT_AUTO char *good = fixture_token(&fx.ec1, "ec1", "acme", 60);
    const char *signature = good + strlen(good) - strlen(zeros);
    refuse_joined("{\"alg\":\"ES256\",\"kid\":\"ec1\"}", signature, "signature is not that of");
}

/* Also shows that a token has one spelling: no character of it may be another. */
static void no_character_of_a_token_can_be_changed(void **unused)
{
    (void)unused;
    TEXT_AUTO char *good = fixture_token(&fx.rsa1, "rsa1", "acme", 60);
    size_t length = strlen(good);
    for (size_t i = 0; i < length; i++) {
        char kept = good[i];
        good[i] = (char)(kept == 'A' ? 'B' : 'A');
        assert_refused(auth, good, "");
        good[i] = '.';
        if (kept != '.')
            assert_refused(auth, good, "");
        good[i] = kept;
    }
    assert_accepted(auth, good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(alg_none_is_refused_in_any_spelling),
        TEST(the_public_key_is_no_shared_secret),
        TEST(the_algorithm_is_that_of_the_key),
        TEST(keys_of_one_tenant_say_nothing_for_another),
        TEST(header_members_that_would_steer_us_are_refused_or_ignored),
        TEST(typ_is_that_of_a_token_for_access),
        TEST(a_user_has_no_blanks_at_the_ends_and_is_no_star),
        TEST(tokens_have_three_parts_of_strict_base64url),
        TEST(huge_tokens_are_refused_before_they_are_read),
        TEST(times_are_checked_with_leeway),
        TEST(exp_sub_and_tenant_are_required),
        TEST(issuer_and_audience_count_when_configured),
        TEST(signatures_of_zeros_and_changed_claims_are_refused),
        TEST(no_character_of_a_token_can_be_changed),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
