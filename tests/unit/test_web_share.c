/* SPDX-License-Identifier: MIT */
#include "webapp/share.h"

#include "common/base/clock.h"

#include "tests/support/test.h"

static int64_t now_us = 1000000;

static int64_t fake_now(void)
{
    return now_us;
}

static struct shares *open_shares(void)
{
    const struct share_limits limits = {.whose = "user", .per_s = 5, .at_once = 3, .bytes = 100};
    struct shares *shares = NULL;
    struct err err = {0};
    assert_ok(shares_open(&limits, &shares, &err));
    return shares;
}

static bool enters(struct shares *shares, struct share *share, uint64_t bytes)
{
    struct err err = {0};
    enum err_code rc = share_enter(shares, share, bytes, &err);
    assert_true(rc == ERR_OK || rc == ERR_RATE);
    return rc == ERR_OK;
}

static void so_many_requests_come_in_a_second_and_no_more(void **unused)
{
    (void)unused;
    struct shares *shares = open_shares();
    struct share *ann = share_get(shares, SV("acme/ann"));
    for (int i = 0; i < 5; i++) {
        assert_true(enters(shares, ann, 0));
        share_leave(shares, ann, 0);
    }
    assert_false(enters(shares, ann, 0));
    now_us += 200000;
    assert_true(enters(shares, ann, 0));
    share_leave(shares, ann, 0);
    assert_false(enters(shares, ann, 0));
    now_us += 60000000; /* a long pause makes no greater room */
    for (int i = 0; i < 5; i++) {
        assert_true(enters(shares, ann, 0));
        share_leave(shares, ann, 0);
    }
    assert_false(enters(shares, ann, 0));
    share_put(shares, ann);
    shares_close(shares);
}

static void one_that_takes_too_much_leaves_the_others_theirs(void **unused)
{
    (void)unused;
    struct shares *shares = open_shares();
    struct share *ann = share_get(shares, SV("acme/ann"));
    struct share *bob = share_get(shares, SV("acme/bob"));
    for (int i = 0; i < 3; i++)
        assert_true(enters(shares, ann, 10));
    assert_false(enters(shares, ann, 10)); /* at once */
    assert_true(enters(shares, bob, 10));
    share_leave(shares, ann, 10);
    assert_false(enters(shares, ann, 81));
    now_us += 1000000;
    assert_true(enters(shares, ann, 80));
    struct err err = {0};
    assert_code(share_hold(shares, ann, 1, &err), ERR_RATE);
    share_leave(shares, ann, 80);
    err_clear(&err);
    assert_ok(share_hold(shares, ann, 1, &err));
    share_put(shares, ann);
    share_put(shares, bob);
    shares_close(shares);
}

static void the_same_key_is_the_same_share_while_it_is_held(void **unused)
{
    (void)unused;
    struct shares *shares = open_shares();
    struct share *first = share_get(shares, SV("a"));
    struct share *again = share_get(shares, SV("a"));
    assert_ptr_equal(first, again);
    assert_int_equal(share_holders(shares, first), 2);
    share_put(shares, again);
    share_put(shares, first);
    shares_close(shares);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(so_many_requests_come_in_a_second_and_no_more),
        TEST(one_that_takes_too_much_leaves_the_others_theirs),
        TEST(the_same_key_is_the_same_share_while_it_is_held),
    };
    clock_replace(fake_now, NULL);
    return cmocka_run_group_tests_name("web_share", tests, NULL, NULL);
}
