/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "worker/adopt.h"
#include "worker/outcome.h"

#include <signal.h>

static struct outcome judge(const struct runner_record *record)
{
    struct outcome outcome;
    struct outcome_facts facts = {
        .record = record, .program = "prog", .max_seconds = 60, .memory_mb = 100};
    outcome_judge(&facts, &outcome);
    return outcome;
}

static void exit_code_0_is_finished_without_a_reason(void **unused)
{
    (void)unused;
    struct runner_record record = {0};
    struct outcome outcome = judge(&record);
    assert_int_equal(outcome.state, JOB_FINISHED);
    assert_int_equal(outcome.condition, JOB_COND_NONE);
    assert_true(outcome.attempt);
    assert_false(outcome.lost);
    assert_string_equal(outcome.reason, "");
}

static void another_exit_code_is_a_failed_command(void **unused)
{
    (void)unused;
    struct runner_record record = {.exit_code = 127};
    struct outcome outcome = judge(&record);
    assert_int_equal(outcome.state, JOB_FAILED);
    assert_int_equal(outcome.condition, JOB_COND_COMMAND_FAILED);
    assert_true(outcome.attempt);
    assert_non_null(strstr(outcome.reason, "127"));
}

static void a_signal_is_told_by_number_and_name(void **unused)
{
    (void)unused;
    struct runner_record record = {.exit_code = -1, .signal = SIGSEGV};
    struct outcome outcome = judge(&record);
    assert_int_equal(outcome.condition, JOB_COND_COMMAND_SIGNALLED);
    assert_non_null(strstr(outcome.reason, "11"));
    assert_non_null(strstr(outcome.reason, "SIGSEGV"));
}

static void a_missing_program_is_not_an_exit_code(void **unused)
{
    (void)unused;
    struct runner_record record = {.exit_code = -1, .start_error = "ENOENT", .start_step = "exec"};
    struct outcome outcome = judge(&record);
    assert_int_equal(outcome.condition, JOB_COND_START_FAILED);
    assert_non_null(strstr(outcome.reason, "prog"));
    assert_non_null(strstr(outcome.reason, "ENOENT"));
}

static void each_limit_has_its_condition(void **unused)
{
    (void)unused;
    static const struct {
        enum runner_reason reason;
        enum job_condition condition;
    } rows[] = {{RUNNER_WALL_LIMIT, JOB_COND_TIME_LIMIT},
                {RUNNER_CPU_LIMIT, JOB_COND_CPU_LIMIT},
                {RUNNER_FILE_LIMIT, JOB_COND_FILE_LIMIT}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct runner_record record = {
            .exit_code = -1, .signal = SIGKILL, .reason = rows[i].reason};
        struct outcome outcome = judge(&record);
        assert_int_equal(outcome.state, JOB_FAILED);
        assert_int_equal(outcome.condition, rows[i].condition);
        assert_true(outcome.attempt);
    }
}

static void what_the_infrastructure_ended_is_lost_and_charges_no_attempt(void **unused)
{
    (void)unused;
    for (int reason = 0; reason < RUNNER_REASON_COUNT; reason++) {
        struct runner_record record = {
            .exit_code = -1, .signal = SIGKILL, .reason = (enum runner_reason)reason};
        if (!runner_reason_is_infrastructure(record.reason))
            continue;
        struct outcome outcome = judge(&record);
        assert_true(outcome.lost);
        assert_false(outcome.attempt);
    }
}

static void a_kill_for_a_user_cancels_and_any_other_kill_is_a_loss(void **unused)
{
    (void)unused;
    struct runner_record record = {
        .exit_code = -1, .signal = SIGTERM, .reason = RUNNER_KILLED, .note = KILL_NOTE_CANCEL};
    struct outcome outcome = judge(&record);
    assert_int_equal(outcome.state, JOB_CANCELLED);
    assert_int_equal(outcome.condition, JOB_COND_CANCELLED_BY_USER);
    assert_false(outcome.lost);
    assert_false(outcome.attempt);
    (void)snprintf(record.note, sizeof(record.note), "%s", KILL_NOTE_FENCED);
    assert_true(judge(&record).lost);
}

static void a_full_disk_fails_a_job_that_else_went_well(void **unused)
{
    (void)unused;
    struct runner_record record = {.out = {.truncated = true, .error = "ENOSPC"}};
    struct outcome outcome = judge(&record);
    assert_int_equal(outcome.condition, JOB_COND_OUTPUT_DISK_FULL);
    assert_non_null(strstr(outcome.reason, "output-disk-full"));
    record.exit_code = 3;
    assert_int_equal(judge(&record).condition, JOB_COND_COMMAND_FAILED);
}

static void the_peak_of_memory_is_told_near_the_limit(void **unused)
{
    (void)unused;
    struct runner_record record = {.exit_code = 1, .max_rss_bytes = (uint64_t)95 << 20};
    assert_non_null(strstr(judge(&record).reason, "95 of 100 MiB"));
    record.max_rss_bytes = (uint64_t)50 << 20;
    assert_null(strstr(judge(&record).reason, "MiB"));
}

static void a_found_run_is_adopted_when_nobody_else_may_have_claimed_it(void **unused)
{
    (void)unused;
    struct job job = {.status = JOB_RUNNING, .fence = 5, .has_owner = true};
    struct runner_job found = {.fence = 5};
    assert_true(adopt_judge(&job, &found, true));
    assert_true(adopt_judge(&job, &found, false));
    job.fence = 6;
    assert_true(adopt_judge(&job, &found, true)); /* we claimed it and died before telling */
    assert_false(adopt_judge(&job, &found, false));
    job.fence = 5;
    job.has_owner = false;
    assert_false(adopt_judge(&job, &found, true));
    job.has_owner = true;
    job.status = JOB_CANCELLED;
    assert_false(adopt_judge(&job, &found, true));
    assert_false(adopt_judge(NULL, &found, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(exit_code_0_is_finished_without_a_reason),
        TEST(another_exit_code_is_a_failed_command),
        TEST(a_signal_is_told_by_number_and_name),
        TEST(a_missing_program_is_not_an_exit_code),
        TEST(each_limit_has_its_condition),
        TEST(what_the_infrastructure_ended_is_lost_and_charges_no_attempt),
        TEST(a_kill_for_a_user_cancels_and_any_other_kill_is_a_loss),
        TEST(a_full_disk_fails_a_job_that_else_went_well),
        TEST(the_peak_of_memory_is_told_near_the_limit),
        TEST(a_found_run_is_adopted_when_nobody_else_may_have_claimed_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
