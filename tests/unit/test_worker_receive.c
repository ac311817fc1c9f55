/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "worker/receive.h"

/* A job with epoch 3, nobody's, and a message for it. */
static struct job a_job(enum job_state status)
{
    return (struct job){.status = status, .epoch = 3, .fence = 5};
}

static const struct uuid us = {{1}};
static const struct uuid them = {{2}};

static enum receive_verdict judge(const struct job *job, uint32_t epoch, bool slot_known,
                                  enum worker_state owner_state)
{
    struct receive_facts facts = {.job = job,
                                  .epoch = epoch,
                                  .me = &us,
                                  .slot_known = slot_known,
                                  .owner_state = owner_state};
    return receive_judge(&facts);
}

static void an_unknown_job_is_rejected(void **unused)
{
    (void)unused;
    assert_int_equal(judge(NULL, 3, false, WORKER_LIVE), RECEIVE_UNKNOWN);
}

static void another_epoch_is_stale_in_every_state(void **unused)
{
    (void)unused;
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        struct job job = a_job((enum job_state)state);
        assert_int_equal(judge(&job, 2, false, WORKER_LIVE), RECEIVE_STALE);
        assert_int_equal(judge(&job, 4, true, WORKER_DEAD), RECEIVE_STALE);
    }
}

static void an_ended_job_is_finished_with_whoever_owned_it(void **unused)
{
    (void)unused;
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        struct job job = a_job((enum job_state)state);
        if (job_state_ends(job.status))
            assert_int_equal(judge(&job, 3, false, WORKER_LIVE), RECEIVE_ENDED);
    }
}

static void a_held_job_wakes_recovery(void **unused)
{
    (void)unused;
    struct job blocked = a_job(JOB_BLOCKED);
    struct job paused = a_job(JOB_PAUSED);
    assert_int_equal(judge(&blocked, 3, false, WORKER_LIVE), RECEIVE_HELD);
    assert_int_equal(judge(&paused, 3, false, WORKER_LIVE), RECEIVE_HELD);
}

static void a_job_without_owner_is_claimed_in_every_active_state(void **unused)
{
    (void)unused;
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        struct job job = a_job((enum job_state)state);
        if (job_state_is_active(job.status))
            assert_int_equal(judge(&job, 3, false, WORKER_DEAD), RECEIVE_CLAIM);
    }
}

static void our_own_job_is_adopted_by_its_slot(void **unused)
{
    (void)unused;
    struct job job = a_job(JOB_RUNNING);
    job.has_owner = true;
    job.owner_worker = us;
    assert_int_equal(judge(&job, 3, true, WORKER_DEAD), RECEIVE_ADOPT);
}

static void our_own_job_that_no_slot_knows_is_taken_over(void **unused)
{
    (void)unused;
    struct job job = a_job(JOB_RUNNING);
    job.has_owner = true;
    job.owner_worker = us;
    assert_int_equal(judge(&job, 3, false, WORKER_LIVE), RECEIVE_TAKE_OVER);
}

static void only_a_live_owner_is_waited_for(void **unused)
{
    (void)unused;
    struct job job = a_job(JOB_RUNNING);
    job.has_owner = true;
    job.owner_worker = them;
    assert_int_equal(judge(&job, 3, false, WORKER_LIVE), RECEIVE_DEFER);
    assert_int_equal(judge(&job, 3, false, WORKER_STOPPED), RECEIVE_TAKE_OVER);
    assert_int_equal(judge(&job, 3, false, WORKER_REPLACED), RECEIVE_TAKE_OVER);
    assert_int_equal(judge(&job, 3, false, WORKER_DEAD), RECEIVE_TAKE_OVER);
}

static void the_owner_is_looked_up_only_where_it_decides(void **unused)
{
    (void)unused;
    struct job job = a_job(JOB_RUNNING);
    struct receive_facts facts = {.job = &job, .epoch = 3, .me = &us};
    assert_false(receive_needs_owner_state(&facts));
    job.has_owner = true;
    job.owner_worker = them;
    assert_true(receive_needs_owner_state(&facts));
    facts.epoch = 2;
    assert_false(receive_needs_owner_state(&facts));
    facts.epoch = 3;
    job.owner_worker = us;
    assert_false(receive_needs_owner_state(&facts));
    job.owner_worker = them;
    job.status = JOB_FINISHED;
    assert_false(receive_needs_owner_state(&facts));
    facts.job = NULL;
    assert_false(receive_needs_owner_state(&facts));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_unknown_job_is_rejected),
        TEST(another_epoch_is_stale_in_every_state),
        TEST(an_ended_job_is_finished_with_whoever_owned_it),
        TEST(a_held_job_wakes_recovery),
        TEST(a_job_without_owner_is_claimed_in_every_active_state),
        TEST(our_own_job_is_adopted_by_its_slot),
        TEST(our_own_job_that_no_slot_knows_is_taken_over),
        TEST(only_a_live_owner_is_waited_for),
        TEST(the_owner_is_looked_up_only_where_it_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
