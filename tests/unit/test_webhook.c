/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/auth/hook_sign.h"
#include "common/base/address.h"
#include "common/model/hook.h"
#include "readers/webhook/body.h"
#include "readers/webhook/lanes.h"
#include "readers/webhook/post.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>

/* ---- addresses ------------------------------------------------------------------------------- */

static struct address_nets nets_of(const char *text)
{
    struct err err = {0};
    struct address_nets nets;
    assert_ok(address_nets_parse(text, &nets, &err));
    return nets;
}

static bool may(const char *allowed, const char *address)
{
    struct address_nets nets = nets_of(allowed);
    struct sockaddr_storage storage = {0};
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, address, &in.sin_addr) == 1)
        memcpy(&storage, &in, sizeof(in));
    else if (inet_pton(AF_INET6, address, &in6.sin6_addr) == 1)
        memcpy(&storage, &in6, sizeof(in6));
    else
        fail_msg("%s is no address", address);
    return address_may(&nets, (const struct sockaddr *)&storage);
}

static void only_public_addresses_may_be_sent_to(void **unused)
{
    (void)unused;
    static const char *const private[] = {
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.0.1",
        "161.26.0.6",
        "166.9.10.11",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.1",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:168.63.129.16",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "4000::1",
    };
    static const char *const public[] = {
        "1.1.1.1",        "8.8.8.8",          "100.63.255.255",  "100.128.0.1",
        "172.15.0.1",     "172.32.0.1",       "192.167.255.255", "223.255.255.255",
        "::ffff:8.8.8.8", "64:ff9b::808:808", "2600::1",         "2a00:1450::200e",
    };
    for (size_t i = 0; i < ARRAY_LEN(private); i++) {
        if (may("", private[i]))
            fail_msg("%s is not public", private[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(public); i++) {
        if (!may("", public[i]))
            fail_msg("%s is public", public[i]);
    }
}

static void a_network_that_is_allowed_is_allowed_to_its_last_bit(void **unused)
{
    (void)unused;
    assert_true(may("127.0.0.1", "127.0.0.1"));
    assert_false(may("127.0.0.1", "127.0.0.2"));
    assert_true(may("10.1.0.0/15, fd00::/8", "10.1.255.255"));
    assert_false(may("10.1.0.0/15, fd00::/8", "10.2.0.0"));
    assert_true(may("10.1.0.0/15, fd00::/8", "fdff::1"));
    assert_false(may("10.1.0.0/15, fd00::/8", "fe00::1"));
    assert_true(may("10.0.0.0/8", "::ffff:10.2.3.4")); /* the same address in another dress */
    assert_true(may("0.0.0.0/0", "127.0.0.1"));
    assert_false(may("0.0.0.0/0", "::1"));
}

static void a_network_that_is_none_is_refused(void **unused)
{
    (void)unused;
    static const char *const wrong[] = {"10.0.0.0/33", "10.0.0",      "::1/129",    "localhost",
                                        "10.0.0.0/",   "10.0.0.0/-1", "1.2.3.4/8/9"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err err = {0};
        struct address_nets nets;
        if (address_nets_parse(wrong[i], &nets, &err) != ERR_CONFIG)
            fail_msg("%s was taken", wrong[i]);
    }
}

static void a_host_that_is_an_address_is_judged_as_one(void **unused)
{
    (void)unused;
    struct address_nets none = nets_of("");
    bool literal = false;
    assert_true(address_host_may(&none, SV("example.org"), &literal) && !literal);
    assert_false(address_host_may(&none, SV("[::1]"), &literal));
    assert_false(address_host_may(&none, SV("127.0.0.1"), &literal));
    assert_true(address_host_may(&none, SV("8.8.8.8"), &literal) && literal);
}

/* ---- URLs and states --------------------------------------------------------------------------
 */

static void a_url_is_read_strictly(void **unused)
{
    (void)unused;
    static const char *const wrong[] = {
        "",
        "ftp://h/",
        "file:///etc/passwd",
        "http://",
        "http:///x",
        "//h/",
        "http://u@h/",
        "http://u:p@h/",
        "http://h/#part",
        "http://h:0/",
        "http://h:/",
        "http://h:99999/",
        "http://h:1x/",
        "http://a b/",
        "http://h/\r\nX: y",
        "http://h\\@i/",
        "http://[::1",
        "http://[::1]x/",
        "http://[]/",
        "http://h\x7f/",
        "http://\xc3\xa4.de/",
        "gopher://h/",
        "http://a%2eb/",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err err = {0};
        struct hook_url url;
        if (hook_url_read(wrong[i], &url, &err) != ERR_INVALID)
            fail_msg("'%s' was taken", wrong[i]);
    }
    struct err err = {0};
    struct hook_url url;
    assert_ok(hook_url_read("https://example.org", &url, &err));
    assert_true(url.is_https && url.port == 443 && sv_is(url.host, "example.org"));
    assert_ok(hook_url_read("HTTP://[2600::1]:8080/a?b=@c", &url, &err));
    assert_true(!url.is_https && url.port == 8080 && sv_is(url.host, "[2600::1]"));
}

static void states_are_the_same_after_a_trip_through_text(void **unused)
{
    (void)unused;
    char text[HOOK_STATES_SIZE];
    unsigned all = (1u << JOB_STATE_COUNT) - 1;
    assert_int_equal(hook_states_parse(hook_states_text(all, text)), all);
    assert_int_equal(hook_states_parse(hook_states_text(HOOK_STATES_DEFAULT, text)),
                     HOOK_STATES_DEFAULT);
    assert_int_equal(hook_states_parse(""), 0);
}

/* ---- what is sent -----------------------------------------------------------------------------
 */

/* The values were made with Python's hmac. */
static void a_signature_is_what_others_compute(void **unused)
{
    (void)unused;
    char seed[HOOK_SEED_SIZE];
    char secret[HOOK_SECRET_SIZE];
    char signature[HOOK_SIGNATURE_SIZE];
    for (size_t i = 0; i < sizeof(seed); i++)
        seed[i] = (char)i;
    assert_string_equal(hook_secret("key", (struct sv){seed, sizeof(seed)}, secret),
                        "whsec_YAEW6IGva5HYAUnID0zIS1D5uA8WCzfpw420BManH4Y");
    assert_string_equal(hook_signature(secret, 1700000000, SV("{\"a\":1}"), signature),
                        "3758b94c3074591e0eb678d1f55a349f680ed34abe4c22c29402a8fe1a2bd9e9");
}

static json_t *body_of(const struct hook_event *event)
{
    BUF_AUTO struct buf body = BUF_INIT(16384);
    const struct uuid id = uuid_v7();
    body_write(event, &id, &body);
    assert_false(body.failed);
    json_t *root = json_loadb(body.ptr, body.len, 0, NULL);
    assert_non_null(root);
    return root;
}

static void a_body_is_json_whatever_the_names_are(void **unused)
{
    (void)unused;
    struct hook_event event = {.seq = 7,
                               .to = "FAILED",
                               .from = "RUNNING",
                               .name = "a\"b\\c\n\x01",
                               .has_exit_code = true,
                               .exit_code = 3};
    json_t *root = body_of(&event);
    const json_t *job = json_object_get(root, "job");
    assert_string_equal(json_string_value(json_object_get(job, "name")), event.name);
    assert_int_equal(json_integer_value(json_object_get(job, "exitCode")), 3);
    assert_true(json_is_null(json_object_get(root, "subscription")));
    json_decref(root);
}

static void the_outcome_is_told_with_the_end_only(void **unused)
{
    (void)unused;
    struct hook_event event = {.to = "PENDING", .has_exit_code = true, .exit_code = 3};
    json_t *root = body_of(&event);
    assert_null(json_object_get(json_object_get(root, "job"), "exitCode"));
    json_decref(root);
}

/* ---- the schedule -----------------------------------------------------------------------------
 */

static const struct config schedule = {
    .webhook_retry_first_ms = 1000, .webhook_retry_most_ms = 60000, .webhook_give_up_s = 3600};

static struct hook_result judged(uint32_t attempts, int64_t age_s, uint32_t status, int64_t after_s)
{
    const struct hook_delivery delivery = {.attempts = attempts, .age_us = age_s * 1000000};
    struct hook_result result = {.http_status = status};
    post_judge(&schedule, &delivery, after_s, &result);
    return result;
}

static void an_attempt_is_judged_by_its_status(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t status;
        enum hook_outcome outcome;
    } rows[] = {{200, HOOK_DELIVERED}, {204, HOOK_DELIVERED}, {299, HOOK_DELIVERED},
                {0, HOOK_AGAIN},       {301, HOOK_AGAIN},     {302, HOOK_AGAIN},
                {400, HOOK_AGAIN},     {404, HOOK_AGAIN},     {410, HOOK_DEAD},
                {500, HOOK_AGAIN},     {503, HOOK_AGAIN}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(judged(0, 0, rows[i].status, 0).outcome, rows[i].outcome);
}

static void pauses_grow_to_their_limit_and_end_with_patience(void **unused)
{
    (void)unused;
    assert_in_range(judged(0, 0, 500, 0).again_ms, 500, 1000);
    assert_in_range(judged(3, 0, 500, 0).again_ms, 4000, 8000);
    assert_in_range(judged(1000000, 0, 500, 0).again_ms, 30000, 60000);
    assert_int_equal(judged(9, 3500, 500, 0).outcome, HOOK_AGAIN);
    assert_int_equal(judged(9, 3590, 500, 0).outcome, HOOK_DEAD);
    assert_int_equal(judged(9, 3590, 200, 0).outcome, HOOK_DELIVERED);
}

static void a_receiver_may_ask_for_a_longer_pause_within_the_limit(void **unused)
{
    (void)unused;
    assert_int_equal(judged(0, 0, 503, 20).again_ms, 20000);
    assert_int_equal(judged(0, 0, 503, INT64_MAX).again_ms, 60000);
}

/* ---- lanes ------------------------------------------------------------------------------------
 */

static const struct uuid one = {{1}};
static const struct uuid other = {{2}};

static struct lanes *three_at_once(void)
{
    const struct lanes_config cfg = {.most = 3, .first_hold_ms = 100, .most_hold_ms = 1000};
    struct lanes *lanes = NULL;
    struct err err = {0};
    assert_ok(lanes_open(&cfg, &lanes, &err));
    return lanes;
}

static void begin(struct lanes *lanes, const struct uuid *lane)
{
    struct err err = {0};
    assert_ok(lanes_begin(lanes, lane, 0, &err));
}

static void a_lane_has_room_for_so_many(void **unused)
{
    (void)unused;
    struct lanes *lanes = three_at_once();
    begin(lanes, &one);
    begin(lanes, &one);
    assert_int_equal(lanes_room(lanes, &one, 0), 1);
    begin(lanes, &one);
    assert_int_equal(lanes_room(lanes, &one, 0), 0);
    assert_int_equal(lanes_under_way(lanes, &one), 3);
    assert_int_equal(lanes_room(lanes, &other, 0), 3);
    lanes_end(lanes, &one, true, 0);
    assert_int_equal(lanes_room(lanes, &one, 0), 1);
    lanes_free(lanes);
}

static void a_receiver_that_does_not_answer_is_tried_by_one_at_a_time(void **unused)
{
    (void)unused;
    struct lanes *lanes = three_at_once();
    int64_t now = 1000;
    int64_t hold = 100;
    for (int i = 0; i < 8; i++) {
        begin(lanes, &one);
        lanes_end(lanes, &one, false, now);
        assert_int_equal(lanes_room(lanes, &one, now + hold - 1), 0);
        assert_int_equal(lanes_room(lanes, &one, now + hold), 1);
        now += hold;
        hold = hold * 2 < 1000 ? hold * 2 : 1000;
    }
    assert_int_equal(lanes_room(lanes, &other, now), 3);
    begin(lanes, &one);
    lanes_end(lanes, &one, true, now);
    assert_int_equal(lanes_room(lanes, &one, now), 3);
    lanes_free(lanes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_public_addresses_may_be_sent_to),
        TEST(a_network_that_is_allowed_is_allowed_to_its_last_bit),
        TEST(a_network_that_is_none_is_refused),
        TEST(a_host_that_is_an_address_is_judged_as_one),
        TEST(a_url_is_read_strictly),
        TEST(states_are_the_same_after_a_trip_through_text),
        TEST(a_signature_is_what_others_compute),
        TEST(a_body_is_json_whatever_the_names_are),
        TEST(the_outcome_is_told_with_the_end_only),
        TEST(an_attempt_is_judged_by_its_status),
        TEST(pauses_grow_to_their_limit_and_end_with_patience),
        TEST(a_receiver_may_ask_for_a_longer_pause_within_the_limit),
        TEST(a_lane_has_room_for_so_many),
        TEST(a_receiver_that_does_not_answer_is_tried_by_one_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
