/* SPDX-License-Identifier: MIT */
#include "common/store/retention.h"
#include "tests/support/test.h"

/* How old is old enough, and what is never old enough. */

#define HOUR_US INT64_C(3600000000)
#define DAY_US (24 * HOUR_US)
#define NOW_US (1000 * DAY_US)

static const struct retention_row now = {.now_us = NOW_US};
static const struct retention_policy policy = {
    .days = {[RETENTION_OF_FINISHED] = 30, [RETENTION_OF_FAILED] = 90, [RETENTION_OF_AUDIT] = 365},
    .key_hours = 24,
};

static void a_kind_goes_after_its_own_days(void **unused)
{
    (void)unused;
    assert_true(retention_limit(&policy, RETENTION_OF_FINISHED, &now, 0) == NOW_US - 30 * DAY_US);
    assert_true(retention_limit(&policy, RETENTION_OF_FAILED, &now, 0) == NOW_US - 90 * DAY_US);
    assert_true(retention_limit(&policy, RETENTION_OF_AUDIT, &now, 0) == NOW_US - 365 * DAY_US);
}

static void zero_days_are_for_ever(void **unused)
{
    (void)unused;
    assert_true(retention_limit(&policy, RETENTION_OF_CANCELLED, &now, 0) == 0);
    assert_true(retention_limit(&policy, RETENTION_OF_OPEN, &now, 0) == 0);
}

static void a_job_stays_as_long_as_its_key_may_be_used_again(void **unused)
{
    (void)unused;
    struct retention_policy long_keys = policy;
    long_keys.key_hours = 40 * 24;
    assert_true(retention_limit(&long_keys, RETENTION_OF_FINISHED, &now, 0) ==
                NOW_US - 40 * DAY_US - HOUR_US);
    assert_true(retention_limit(&long_keys, RETENTION_OF_AUDIT, &now, 0) == NOW_US - 365 * DAY_US);
    assert_true(retention_limit(&policy, RETENTION_OF_FINISHED, &now, NOW_US) ==
                NOW_US - 25 * HOUR_US);
}

static void a_job_that_may_have_an_unsent_message_stays(void **unused)
{
    (void)unused;
    const struct retention_row row = {.now_us = NOW_US, .outbox_us = NOW_US - 50 * DAY_US};
    assert_true(retention_limit(&policy, RETENTION_OF_FINISHED, &row, 0) == row.outbox_us);
    assert_true(retention_limit(&policy, RETENTION_OF_FAILED, &row, 0) == NOW_US - 90 * DAY_US);
}

static void a_job_whose_key_is_not_forgotten_yet_stays(void **unused)
{
    (void)unused;
    const struct retention_row row = {.now_us = NOW_US, .key_us = NOW_US - 50 * DAY_US};
    assert_true(retention_limit(&policy, RETENTION_OF_FINISHED, &row, 0) == row.key_us);
    assert_true(retention_limit(&policy, RETENTION_OF_FINISHED, &row, NOW_US) == row.key_us);
    assert_true(retention_limit(&policy, RETENTION_OF_AUDIT, &row, 0) == NOW_US - 365 * DAY_US);
}

static void a_job_that_nobody_was_told_of_stays_for_a_while(void **unused)
{
    (void)unused;
    struct retention_row row = {.now_us = NOW_US, .hook_us = NOW_US - 31 * DAY_US};
    struct retention_policy patient = policy;
    patient.untold_s = 5 * 86400;
    assert_true(retention_limit(&patient, RETENTION_OF_FINISHED, &row, 0) == row.hook_us - HOUR_US);
    assert_true(retention_limit(&patient, RETENTION_OF_FAILED, &row, 0) == NOW_US - 90 * DAY_US);
    assert_true(retention_limit(&patient, RETENTION_OF_AUDIT, &row, 0) == NOW_US - 365 * DAY_US);
    row.hook_us = NOW_US - 70 * DAY_US;
    assert_true(retention_limit(&patient, RETENTION_OF_FINISHED, &row, 0) == NOW_US - 35 * DAY_US);
    assert_true(retention_untold_limit(&patient, RETENTION_OF_FINISHED, &row, 0) ==
                NOW_US - 35 * DAY_US);
}

static void a_time_that_somebody_names_is_for_jobs_only(void **unused)
{
    (void)unused;
    const int64_t before_us = NOW_US - 3 * DAY_US;
    assert_true(retention_limit(&policy, RETENTION_OF_CANCELLED, &now, before_us) == before_us);
    assert_true(retention_limit(&policy, RETENTION_OF_AUDIT, &now, before_us) == 0);
}

static void output_without_a_job_stays_as_long_as_any_job(void **unused)
{
    (void)unused;
    static const struct retention_policy for_ever = {.key_hours = 24};
    struct retention_policy all = policy;
    all.days[RETENTION_OF_CANCELLED] = 10;
    assert_true(retention_orphan_limit(&all, &now) == NOW_US - 90 * DAY_US);
    assert_true(retention_orphan_limit(&for_ever, &now) == 0);
    assert_true(retention_orphan_limit(&policy, &now) == 0); /* CANCELLED ones are for ever */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_kind_goes_after_its_own_days),
        TEST(zero_days_are_for_ever),
        TEST(a_job_stays_as_long_as_its_key_may_be_used_again),
        TEST(a_job_that_may_have_an_unsent_message_stays),
        TEST(a_job_whose_key_is_not_forgotten_yet_stays),
        TEST(a_job_that_nobody_was_told_of_stays_for_a_while),
        TEST(a_time_that_somebody_names_is_for_jobs_only),
        TEST(output_without_a_job_stays_as_long_as_any_job),
    };
    return cmocka_run_group_tests_name("retention", tests, NULL, NULL);
}
