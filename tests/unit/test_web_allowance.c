/* SPDX-License-Identifier: MIT */
#include "webapp/allowance.h"

#include "tests/support/test.h"

static struct allowances *open_all(unsigned per_user, unsigned per_tenant, unsigned threads)
{
    const struct config cfg = {.web_searches_per_user = per_user,
                               .web_searches_per_tenant = per_tenant,
                               .web_threads = threads};
    struct allowances *all = NULL;
    struct err err = {0};
    assert_ok(allowances_open(&cfg, &all, &err));
    return all;
}

static enum err_code take(struct allowances *all, const char *tenant, const char *user,
                          struct allowance_hold *hold, struct err *err)
{
    struct identity who = {0};
    (void)snprintf(who.tenant, sizeof(who.tenant), "%s", tenant);
    (void)snprintf(who.user, sizeof(who.user), "%s", user);
    err_clear(err);
    return allowance_take(all, ALLOWANCE_SEARCHES, &who, 1, hold, err);
}

static void a_user_leaves_room_for_others_of_its_tenant(void **unused)
{
    (void)unused;
    struct allowances *all = open_all(2, 3, 100);
    struct allowance_hold holds[4] = {0};
    struct err err = {0};
    assert_ok(take(all, "acme", "ann", &holds[0], &err));
    assert_ok(take(all, "acme", "ann", &holds[1], &err));
    assert_code(take(all, "acme", "ann", &holds[2], &err), ERR_RATE);
    assert_non_null(strstr(err.text, "this user would hold 3 costly searches"));
    assert_non_null(strstr(err.text, "the limit is 2 (web.searches_per_user)"));
    assert_ok(take(all, "acme", "bob", &holds[2], &err));
    assert_code(take(all, "acme", "bob", &holds[3], &err), ERR_RATE);
    assert_non_null(strstr(err.text, "the limit is 3 (web.searches_per_tenant)"));
    assert_ok(take(all, "globex", "ann", &holds[3], &err));
    for (size_t i = 0; i < ARRAY_LEN(holds); i++)
        allowance_return(&holds[i]);
    allowance_return(&holds[0]); /* it is empty: nothing happens */
    allowances_close(all);
}

static void take_and_return(struct allowances *all)
{
    struct allowance_hold hold = {0};
    struct allowance_hold none = {0};
    struct err err = {0};
    assert_ok(take(all, "acme", "ann", &hold, &err));
    assert_code(take(all, "acme", "bob", &none, &err), ERR_RATE);
    assert_null(none.all);
    allowance_return(&hold);
}

static void what_is_returned_may_be_taken_again(void **unused)
{
    (void)unused;
    struct allowances *all = open_all(1, 1, 100);
    for (int i = 0; i < 3; i++)
        take_and_return(all);
    allowances_close(all);
}

static void all_together_take_no_more_than_the_process_has(void **unused)
{
    (void)unused;
    struct allowances *all = open_all(2, 2, 5); /* 3 searches at once */
    struct allowance_hold holds[4] = {0};
    struct err err = {0};
    assert_ok(take(all, "a", "ann", &holds[0], &err));
    assert_ok(take(all, "b", "ann", &holds[1], &err));
    assert_ok(take(all, "c", "ann", &holds[2], &err));
    assert_code(take(all, "d", "ann", &holds[3], &err), ERR_OVERLOADED);
    for (size_t i = 0; i < ARRAY_LEN(holds); i++)
        allowance_return(&holds[i]);
    allowances_close(all);
}

static void what_cannot_be_refused_counts_all_the_same(void **unused)
{
    (void)unused;
    struct allowances *all = open_all(1, 8, 100);
    const struct identity ann = {.tenant = "acme", .user = "ann"};
    const struct identity bob = {.tenant = "acme", .user = "bob"};
    struct allowance_hold hold = {0};
    struct err err = {0};
    allowance_add(all, ALLOWANCE_SEARCHES, &ann, 5, &hold);
    assert_code(allowance_check(all, ALLOWANCE_SEARCHES, &ann, 1, &err), ERR_RATE);
    assert_ok(allowance_check(all, ALLOWANCE_SEARCHES, &bob, 1, &err));
    allowance_return(&hold);
    assert_ok(allowance_check(all, ALLOWANCE_SEARCHES, &ann, 1, &err));
    allowances_close(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_user_leaves_room_for_others_of_its_tenant),
        TEST(what_is_returned_may_be_taken_again),
        TEST(all_together_take_no_more_than_the_process_has),
        TEST(what_cannot_be_refused_counts_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
