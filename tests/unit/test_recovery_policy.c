/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/model/policy.h"

static struct policy policy_of(const char *text)
{
    struct err err = {0};
    struct policy policy = {0};
    assert_ok(policy_parse(text, &policy, &err));
    return policy;
}

static void a_constant_policy_always_pauses_alike(void **unused)
{
    (void)unused;
    struct policy policy = policy_of("constant every=15s");
    for (uint32_t tries = 0; tries < 50; tries++)
        assert_int_equal(policy_pause_ms(&policy, tries, 12345), 15000);
}

static void a_stepwise_policy_goes_down_its_list_and_stays_at_the_last(void **unused)
{
    (void)unused;
    struct policy policy = policy_of("stepwise steps=500ms,5s,1m,2h");
    static const int64_t wanted[] = {500, 500, 5000, 60000, 7200000, 7200000, 7200000};
    for (uint32_t tries = 0; tries < ARRAY_LEN(wanted); tries++)
        assert_int_equal(policy_pause_ms(&policy, tries, 0), wanted[tries]);
}

static void an_exponential_policy_doubles_up_to_its_ceiling(void **unused)
{
    (void)unused;
    struct policy policy = policy_of("exponential first=2s most=5m");
    assert_int_equal(policy_pause_ms(&policy, 1, 0), 2000);
    assert_int_equal(policy_pause_ms(&policy, 2, 0), 4000);
    assert_int_equal(policy_pause_ms(&policy, 8, 0), 256000);
    assert_int_equal(policy_pause_ms(&policy, 9, 0), 300000);
    assert_int_equal(policy_pause_ms(&policy, UINT32_MAX, 0), 300000);
}

static void jitter_spreads_both_ways_and_no_further(void **unused)
{
    (void)unused;
    struct policy policy = policy_of("constant every=10s jitter=20");
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (uint32_t dice = 0; dice < 100000; dice += 7) {
        int64_t pause = policy_pause_ms(&policy, 1, dice);
        least = pause < least ? pause : least;
        most = pause > most ? pause : most;
    }
    assert_in_range(least, 8000, 8100);
    assert_in_range(most, 11900, 12000);
}

static void patience_ends_after_the_tries_and_only_if_there_is_a_limit(void **unused)
{
    (void)unused;
    struct policy policy = policy_of("constant every=1s tries=3 elapsed=2d");
    assert_false(policy_is_out_of_tries(&policy, 2));
    assert_true(policy_is_out_of_tries(&policy, 3));
    assert_int_equal(policy.max_elapsed_ms, 2 * 86400000);
    policy = policy_of("constant every=1s");
    assert_false(policy_is_out_of_tries(&policy, UINT32_MAX));
    assert_int_equal(policy.max_elapsed_ms, 0);
}

static void a_wrong_policy_is_refused_with_its_fault(void **unused)
{
    (void)unused;
    static const char *const wrong[] = {
        "",
        "linear every=1s",
        "constant",
        "constant every=0s",
        "constant every=10",
        "constant every=99999999d",
        "constant every=1s steps=1s",
        "stepwise",
        "stepwise steps=",
        "stepwise steps=1s,2",
        "stepwise steps=1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s",
        "exponential first=2s",
        "exponential first=2s most=1s",
        "constant every=1s jitter=91",
        "constant every=1s tries=many",
        "constant every=1s elapsed=-1d",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err err = {0};
        struct policy policy;
        if (policy_parse(wrong[i], &policy, &err) != ERR_INVALID)
            fail_msg("'%s' was taken", wrong[i]);
        assert_non_null(strstr(err.text, "policy '"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_constant_policy_always_pauses_alike),
        TEST(a_stepwise_policy_goes_down_its_list_and_stays_at_the_last),
        TEST(an_exponential_policy_doubles_up_to_its_ceiling),
        TEST(jitter_spreads_both_ways_and_no_further),
        TEST(patience_ends_after_the_tries_and_only_if_there_is_a_limit),
        TEST(a_wrong_policy_is_refused_with_its_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
