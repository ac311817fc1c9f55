/* SPDX-License-Identifier: MIT */
#include "tests/unit/auth_fixture.h"

#include "common/auth/base64url.h"
#include "common/auth/token_cache.h"
#include "common/base/buf.h"

#include <pthread.h>

static struct auth *open_auth(void)
{
    struct auth *auth = NULL;
    struct err err = {0};
    assert_ok(auth_open(&fx.cfg, &auth, &err));
    return auth;
}

static void good_tokens_name_user_tenant_and_roles(void **unused)
{
    (void)unused;
    AUTO(auth_close) struct auth *auth = open_auth();
    struct identity identity;
    char detail[200];
    TEXT_AUTO char *rsa = fixture_token(&fx.rsa1, "rsa1", "acme", 60);
    TEXT_AUTO char *ec = fixture_token(&fx.ec1, "ec1", "acme", 60);
    assert_accepted(auth, rsa);
    assert_accepted(auth, rsa); /* remembered */
    assert_int_equal(fixture_check(auth, ec, &identity, detail), ERR_OK);
    assert_string_equal(identity.tenant, "acme");
    assert_int_equal(identity.expires_s, clock_wall_s() + 60);
    assert_true(auth_has_role(&identity, ROLE_VIEWER));
    assert_true(auth_has_role(&identity, ROLE_USER));
    assert_false(auth_has_role(&identity, ROLE_OPERATOR));
    assert_false(auth_has_role(&identity, ROLE_ADMIN));
}

static unsigned roles_of(struct auth *auth, const char *roles_json)
{
    struct err err = {0};
    struct identity identity = {.roles = 0};
    char detail[200];
    BUF_AUTO struct buf claims = BUF_INIT(1000);
    TEXT_AUTO char *token = NULL;
    buf_addf(&claims, "{\"sub\":\"u\",\"tenant\":\"acme\",\"exp\":%lld%s}",
             (long long)clock_wall_s() + 60, roles_json);
    assert_ok(auth_sign_json(&fx.ec1, "ec1", buf_text(&claims), &token, &err));
    assert_int_equal(fixture_check(auth, token, &identity, detail), ERR_OK);
    return identity.roles;
}

static void roles_are_a_text_or_a_list_and_unknown_ones_are_nothing(void **unused)
{
    (void)unused;
    AUTO(auth_close) struct auth *auth = open_auth();
    assert_int_equal(roles_of(auth, ""), 0);
    assert_int_equal(roles_of(auth, ",\"roles\":\"viewer\""), 1);
    assert_int_equal(roles_of(auth, ",\"roles\":\"x operator\""), 7);
    assert_int_equal(roles_of(auth, ",\"roles\":[\"root\",\"admin\"]"), 15);
    assert_int_equal(roles_of(auth, ",\"roles\":[\"Admin\",7,null]"), 0);
    assert_int_equal(roles_of(auth, ",\"roles\":{\"admin\":true}"), 0);
}

/* A portal that has a role "billing admin" has not made an administrator of Sluice. */
static void an_element_of_a_list_is_one_role(void **unused)
{
    (void)unused;
    AUTO(auth_close) struct auth *auth = open_auth();
    static const char *const none[] = {
        "[\"billing admin\"]", "[\"not admin\"]",        "[\"no operator rights\"]",
        "[\"admin user\"]",    "[\" admin\"]",           "[\"admin \"]",
        "[\"admin\\tuser\"]",  "[\"admin,user\"]",       "[[\"admin\"]]",
        "[{\"admin\":true}]",  "[\"user\\u00a0admin\"]", "[\"\",\"  \"]",
        "\"admin,user\"",      "\"admin\\nuser\"",       "\"Admin\"",
        "[\"admin\\nuser\"]",  "\"user\\u00a0admin\"",   "7",
    };
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        char claim[100];
        snprintf(claim, sizeof(claim), ",\"roles\":%s", none[i]);
        if (roles_of(auth, claim) != 0)
            fail_msg("%s is the role of somebody", none[i]);
    }
    assert_int_equal(roles_of(auth, ",\"roles\":[\"billing admin\",\"user\"]"), 3);
    assert_int_equal(roles_of(auth, ",\"roles\":[\"billing\",\"admin\"]"), 15);
    assert_int_equal(roles_of(auth, ",\"roles\":\"billing admin\""), 15); /* a scope */
    assert_int_equal(roles_of(auth, ",\"roles\":\" user  x \""), 3);
}

static void without_a_kid_the_only_key_of_the_tenant_counts(void **unused)
{
    (void)unused;
    AUTO(auth_close) struct auth *auth = open_auth();
    TEXT_AUTO char *one = fixture_token(&fx.ec2, NULL, "beta", 60);
    TEXT_AUTO char *two = fixture_token(&fx.ec1, NULL, "acme", 60);
    assert_accepted(auth, one);
    assert_refused(auth, two, "no key");
}

static void no_header_is_told_as_such(void **unused)
{
    (void)unused;
    AUTO(auth_close) struct auth *auth = open_auth();
    struct identity identity;
    struct err err = {0};
    char detail[200];
    assert_code(auth_check(auth, SV(""), &identity, detail, sizeof(detail), &err),
                ERR_UNAUTHENTICATED);
    assert_non_null(strstr(err.text, "Authorization: Bearer TOKEN"));
    err_clear(&err);
    assert_code(auth_check(auth, SV("Basic eA=="), &identity, detail, sizeof(detail), &err),
                ERR_UNAUTHENTICATED);
    assert_string_equal(detail, "the header does not begin with Bearer");
}

static void the_cache_is_bounded_and_keeps_what_lives_longest(void **unused)
{
    (void)unused;
    struct token_cache *cache = NULL;
    struct err err = {0};
    struct identity identity = {.tenant = "acme"};
    uint64_t stamp = 0;
    unsigned char digest[TOKEN_DIGEST_SIZE] = {0};
    assert_ok(token_cache_new(64, &cache, &err));
    for (unsigned i = 0; i < 10000; i++) {
        memcpy(digest + 8, &i, sizeof(i));
        digest[0] = (unsigned char)i;
        identity.expires_s = i;
        token_cache_put(cache, digest, &identity, 7);
        token_cache_put(cache, digest, &identity, 8); /* the same place */
    }
    assert_int_equal(token_cache_count(cache), 64);
    assert_true(token_cache_get(cache, digest, &identity, &stamp));
    assert_int_equal(stamp, 8);
    assert_int_equal(identity.expires_s, 9999);
    digest[31] = 1;
    assert_false(token_cache_get(cache, digest, &identity, &stamp));
    token_cache_free(cache);
}

static void a_cache_of_nothing_forgets_everything(void **unused)
{
    (void)unused;
    struct token_cache *cache = NULL;
    struct err err = {0};
    struct identity identity = {.tenant = "acme"};
    uint64_t stamp = 0;
    const unsigned char digest[TOKEN_DIGEST_SIZE] = {0};
    assert_ok(token_cache_new(0, &cache, &err));
    token_cache_put(cache, digest, &identity, 1);
    assert_false(token_cache_get(cache, digest, &identity, &stamp));
    token_cache_free(cache);
}

struct checker {
    struct auth *auth;
    const char *token;
    unsigned accepted;
};

static void *check_often(void *arg)
{
    struct checker *self = arg;
    for (int i = 0; i < 300; i++) {
        struct identity identity;
        struct err err = {0};
        char detail[200];
        if (auth_check(self->auth, sv_of(self->token), &identity, detail, sizeof(detail), &err) ==
            ERR_OK)
            self->accepted++;
    }
    return NULL;
}

static void threads_check_while_keys_change(void **unused)
{
    (void)unused;
    AUTO(auth_close) struct auth *auth = open_auth();
    TEXT_AUTO char *token = fixture_token(&fx.ec1, "ec1", "acme", 6000);
    char header[2000];
    snprintf(header, sizeof(header), "Bearer %s", token);
    struct checker checkers[2] = {{auth, header, 0}, {auth, header, 0}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_often, &checkers[i]), 0);
    for (int i = 0; i < 50; i++) {
        fixture_write("acme", "noise.pem", i % 2 ? SV("a") : SV("bb"), 0644);
        fixture_wait_s(4);
        auth_rescan(auth);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(checkers[i].accepted, 300);
    }
    fixture_remove("acme/noise.pem");
}

static void base64url_has_one_spelling(void **unused)
{
    (void)unused;
    static const char *const bad[] = {"A", "AB", "AAB", "AA==", "A+AA", "A/AA", "AA A", "AA\nA"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        BUF_AUTO struct buf out = BUF_INIT(100);
        if (base64url_decode(sv_of(bad[i]), &out))
            fail_msg("%s was taken", bad[i]);
    }
    for (size_t length = 0; length < 40; length++) {
        BUF_AUTO struct buf text = BUF_INIT(100);
        BUF_AUTO struct buf back = BUF_INIT(100);
        struct sv bytes = {"\xff\xfe\xfd\x00\x01 some bytes of any kind, 0123456789 \x80", length};
        assert_true(base64url_encode(bytes, &text));
        assert_true(base64url_decode(buf_sv(&text), &back));
        assert_true(sv_eq(buf_sv(&back), bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_tokens_name_user_tenant_and_roles),
        TEST(roles_are_a_text_or_a_list_and_unknown_ones_are_nothing),
        TEST(an_element_of_a_list_is_one_role),
        TEST(without_a_kid_the_only_key_of_the_tenant_counts),
        TEST(no_header_is_told_as_such),
        TEST(the_cache_is_bounded_and_keeps_what_lives_longest),
        TEST(a_cache_of_nothing_forgets_everything),
        TEST(threads_check_while_keys_change),
        TEST(base64url_has_one_spelling),
    };
    return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
