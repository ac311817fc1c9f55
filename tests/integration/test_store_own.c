/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/store/job_store.h"
#include "common/store/outbox_store.h"

#include <pthread.h>

#define RIVALS 8

static struct test_db test;

static const struct job_move claimed = {.to = JOB_PENDING, .kind = "claimed"};

static enum err_code move_to(const struct job_hold *hold, enum job_state from, enum job_state to,
                             const struct job_outcome *outcome, struct err *err)
{
    const struct job_move move = {.to = to};
    return job_store_move(test.store, hold, from, (struct job_moves){&move, 1}, outcome, err);
}

/* ---- claims --------------------------------------------------------------------------------- */

struct rival {
    struct uuid job;
    struct uuid worker;
    enum err_code rc;
    uint64_t fence;
};

static void *claim_it(void *arg)
{
    struct rival *rival = arg;
    struct err err = {0};
    struct job_claim claim = {.id = rival->job,
                              .epoch = 1,
                              .worker = rival->worker,
                              .from = JOB_PENDING,
                              .moves = &claimed,
                              .move_count = 1};
    rival->rc = job_store_claim(test.store, &claim, &rival->fence, &err);
    store_thread_end();
    return NULL;
}

static void of_eight_rivals_exactly_one_claims(void **unused)
{
    (void)unused;
    for (int round = 0; round < 20; round++) {
        struct uuid id = test_submit(test.store);
        struct rival rivals[RIVALS];
        pthread_t threads[RIVALS];
        int winners = 0;
        for (int i = 0; i < RIVALS; i++) {
            rivals[i] = (struct rival){.job = id, .worker = uuid_v7()};
            assert_int_equal(pthread_create(&threads[i], NULL, claim_it, &rivals[i]), 0);
        }
        for (int i = 0; i < RIVALS; i++)
            pthread_join(threads[i], NULL);
        AUTO(job_free) struct job *job = test_job(test.store, &id);
        for (int i = 0; i < RIVALS; i++) {
            assert_true(rivals[i].rc == ERR_OK || rivals[i].rc == ERR_CONFLICT);
            if (rivals[i].rc != ERR_OK)
                continue;
            winners++;
            assert_int_equal(rivals[i].fence, 1);
            assert_true(uuid_eq(&job->owner_worker, &rivals[i].worker));
        }
        assert_int_equal(winners, 1);
        assert_int_equal(job->fence, 1);
    }
}

static void a_stale_epoch_and_another_state_cannot_be_claimed(void **unused)
{
    (void)unused;
    struct err err = {0};
    uint64_t fence = 0;
    struct job_claim claim = {.id = test_submit(test.store),
                              .epoch = 2,
                              .worker = uuid_v7(),
                              .from = JOB_PENDING,
                              .moves = &claimed,
                              .move_count = 1};
    assert_code(job_store_claim(test.store, &claim, &fence, &err), ERR_CONFLICT);
    const struct job_move other = {.to = JOB_RUNNING, .kind = "claimed"};
    claim.epoch = 1;
    claim.from = JOB_RUNNING;
    claim.moves = &other;
    err_clear(&err);
    assert_code(job_store_claim(test.store, &claim, &fence, &err), ERR_CONFLICT);
}

static void a_claim_with_moves_writes_an_event_for_each_in_order(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_RUNNING);
    static const enum job_state way[] = {JOB_PENDING,        JOB_PENDING,     JOB_PROCESSING_INPUTS,
                                         JOB_STAGING_INPUTS, JOB_STAGING_JOB, JOB_SUBMITTING_JOB,
                                         JOB_RUNNING};
    struct job_event_list events = {0};
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->status, JOB_RUNNING);
    assert_true(job->started_us > 0);
    assert_ok(
        job_store_events(test.store, NULL, &id, (struct job_event_page){0, 100}, &events, &err));
    assert_int_equal(events.count, ARRAY_LEN(way));
    for (size_t i = 0; i < events.count; i++) {
        assert_int_equal(events.items[i].to, way[i]);
        if (i > 0) {
            assert_true(events.items[i].seq > events.items[i - 1].seq);
            assert_int_equal(events.items[i].from, way[i - 1]);
            assert_int_equal(events.items[i].fence, hold.fence);
            assert_true(uuid_eq(&events.items[i].worker, &hold.worker));
            assert_int_equal(events.items[i].epoch, 1);
        }
    }
    free(events.items);
}

static void a_takeover_needs_the_owner_and_fence_that_were_read(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold old = test_claim(test.store, &id, JOB_RUNNING);
    const struct job_move again = {.to = JOB_RUNNING, .kind = "lost"};
    uint64_t fence = 0;
    struct job_claim claim = {.id = id,
                              .epoch = 1,
                              .worker = uuid_v7(),
                              .from_worker = &old.worker,
                              .from_fence = old.fence + 1,
                              .charge_loss = true,
                              .from = JOB_RUNNING,
                              .moves = &again,
                              .move_count = 1};
    assert_code(job_store_claim(test.store, &claim, &fence, &err), ERR_CONFLICT);
    err_clear(&err);
    claim.from_fence = old.fence;
    assert_ok(job_store_claim(test.store, &claim, &fence, &err));
    assert_int_equal(fence, old.fence + 1);
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->losses, 1);
    assert_int_equal(job->attempts, 0);
    assert_true(uuid_eq(&job->owner_worker, &claim.worker));
    struct store_counters before;
    struct store_counters after;
    store_counters(test.store, &before);
    assert_code(move_to(&old, JOB_RUNNING, JOB_ARCHIVING, NULL, &err), ERR_FENCED);
    store_counters(test.store, &after);
    assert_int_equal(after.fenced_writes, before.fenced_writes + 1);
}

/* ---- moves ---------------------------------------------------------------------------------- */

static void the_end_of_a_run_is_written_whole(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_SUBMITTING_JOB);
    const struct job_move moves[] = {
        {.to = JOB_RUNNING}, {.to = JOB_ARCHIVING}, {.to = JOB_FAILED, .detail = "exit code 7"}};
    const struct job_outcome outcome = {.condition = JOB_COND_COMMAND_FAILED,
                                        .has_exit_code = true,
                                        .exit_code = 7,
                                        .reason = "The command ended with 7.",
                                        .run_fence = hold.fence,
                                        .attempt = true,
                                        .timed = true,
                                        .since_end_us = INT64_C(3600) * 1000000,
                                        .run_us = 3000001,
                                        .out = {1000, 900},
                                        .errs = {5, 5}};
    assert_ok(job_store_move(test.store, &hold, JOB_SUBMITTING_JOB, (struct job_moves){moves, 3},
                             &outcome, &err));
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->status, JOB_FAILED);
    assert_int_equal(job->condition, JOB_COND_COMMAND_FAILED);
    assert_true(job->has_exit_code);
    assert_int_equal(job->exit_code, 7);
    assert_int_equal(job->term_signal, 0);
    assert_string_equal(job->reason, "The command ended with 7.");
    assert_int_equal(job->run_fence, hold.fence);
    assert_int_equal(job->attempts, 1);
    assert_int_equal(job->out.total_bytes, 1000);
    assert_int_equal(job->out.kept_bytes, 900);
    assert_int_equal(job->errs.kept_bytes, 5);
    assert_int_equal(job->ended_us - job->started_us, 3000001);
    assert_int_equal(job->updated_us - job->ended_us, INT64_C(3600) * 1000000);
    assert_false(job->has_owner);
}

static void what_was_started_some_time_ago_did_not_start_now(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_SUBMITTING_JOB);
    const struct job_move running = {.to = JOB_RUNNING, .ago_us = 60000};
    assert_ok(job_store_move(test.store, &hold, JOB_SUBMITTING_JOB, (struct job_moves){&running, 1},
                             NULL, &err));
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->updated_us - job->started_us, 60000);
    assert_int_equal(job->ended_us, 0);
}

static void the_end_tells_the_times_of_its_own_run_only(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_RUNNING);
    const struct job_outcome outcome = {
        .run_fence = hold.fence, .timed = true, .since_end_us = 7, .run_us = 5};
    const struct job_outcome untimed = {.condition = JOB_COND_START_FAILED};
    assert_ok(move_to(&hold, JOB_RUNNING, JOB_ARCHIVING, NULL, &err));
    assert_ok(move_to(&hold, JOB_ARCHIVING, JOB_FINISHED, &outcome, &err));
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->ended_us - job->started_us, 5);
    id = test_submit(test.store);
    hold = test_claim(test.store, &id, JOB_SUBMITTING_JOB);
    assert_ok(move_to(&hold, JOB_SUBMITTING_JOB, JOB_FAILED, &untimed, &err));
    AUTO(job_free) struct job *none = test_job(test.store, &id);
    assert_int_equal(none->started_us, 0);
    assert_int_equal(none->ended_us, none->updated_us);
}

static void repeating_a_move_is_no_fault_and_writes_nothing(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_RUNNING);
    struct job_event_list events = {0};
    assert_ok(move_to(&hold, JOB_RUNNING, JOB_ARCHIVING, NULL, &err));
    assert_ok(move_to(&hold, JOB_RUNNING, JOB_ARCHIVING, NULL, &err));
    assert_ok(move_to(&hold, JOB_ARCHIVING, JOB_FINISHED, NULL, &err));
    assert_ok(move_to(&hold, JOB_ARCHIVING, JOB_FINISHED, NULL, &err));
    assert_code(move_to(&hold, JOB_ARCHIVING, JOB_FAILED, NULL, &err), ERR_FENCED);
    err_clear(&err);
    assert_ok(
        job_store_events(test.store, NULL, &id, (struct job_event_page){0, 100}, &events, &err));
    assert_int_equal(events.count,
                     9); /* submitted, claimed, five to RUNNING, ARCHIVING, FINISHED */
    free(events.items);
}

static void a_blocked_job_has_no_owner_and_keeps_its_exact_condition(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_STAGING_INPUTS);
    const struct job_outcome blocked = {.condition = JOB_COND_CONNECTION_FAILED};
    assert_ok(move_to(&hold, JOB_STAGING_INPUTS, JOB_BLOCKED, &blocked, &err));
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->status, JOB_BLOCKED);
    assert_int_equal(job->condition, JOB_COND_CONNECTION_FAILED);
    assert_false(job->has_owner);
    assert_int_equal(job->ended_us, 0);
    assert_int_equal(job->started_us, 0);
}

static void a_vaguer_condition_does_not_replace_an_exact_one(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_RUNNING);
    const struct job_outcome exact = {.condition = JOB_COND_MEMORY_LIMIT};
    const struct job_outcome vague = {.condition = JOB_COND_COMMAND_SIGNALLED, .term_signal = 9};
    assert_ok(move_to(&hold, JOB_RUNNING, JOB_ARCHIVING, &exact, &err));
    assert_ok(move_to(&hold, JOB_ARCHIVING, JOB_FAILED, &vague, &err));
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->condition, JOB_COND_MEMORY_LIMIT);
    assert_int_equal(job->term_signal, 9);
    assert_false(job->has_exit_code);
}

static void a_strange_byte_in_a_reason_does_not_keep_a_job_from_ending(void **unused)
{
    (void)unused;
    struct err err = {0};
    char reason[2000];
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_RUNNING);
    memset(reason, 0xC3, sizeof(reason));
    memcpy(reason, "bad: ", 5);
    reason[sizeof(reason) - 1] = 0;
    const struct job_outcome outcome = {.condition = JOB_COND_START_FAILED, .reason = reason};
    assert_ok(move_to(&hold, JOB_RUNNING, JOB_FAILED, &outcome, &err));
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_memory_equal(job->reason, "bad: ?", 6);
    assert_int_equal(strlen(job->reason), JOB_REASON_SIZE - 1);
}

static void a_job_that_is_handed_back_is_on_its_queue_again(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_STAGING_JOB);
    struct outbox_list rows = {0};
    struct job_handed_back done = {0};
    assert_ok(job_store_hand_back(test.store, &hold, JOB_STAGING_JOB, "drain", &done, &err));
    assert_int_equal(done.epoch, 2);
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->epoch, 2);
    assert_int_equal(job->status, JOB_STAGING_JOB);
    assert_false(job->has_owner);
    assert_ok(outbox_store_read(test.store, done.outbox_id - 1, 0, 1, &rows, &err));
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.items[0].epoch, 2);
    assert_true(uuid_eq(&rows.items[0].job, &id));
    free(rows.items);
    assert_code(job_store_hand_back(test.store, &hold, JOB_STAGING_JOB, "drain", &done, &err),
                ERR_FENCED);
}

static void the_jobs_of_a_worker_are_found_by_their_owner(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_RUNNING);
    struct job_hold_row *rows = NULL;
    struct job_cancelled done;
    size_t count = 0;
    assert_ok(job_store_owned(test.store, &hold.worker, &rows, &count, &err));
    assert_int_equal(count, 1);
    assert_true(uuid_eq(&rows[0].id, &id));
    assert_int_equal(rows[0].fence, hold.fence);
    assert_int_equal(rows[0].status, JOB_RUNNING);
    free(rows);
    assert_ok(job_store_cancel_requests(test.store, &hold.worker, &rows, &count, &err));
    assert_int_equal(count, 0);
    free(rows);
    assert_ok(job_store_cancel(test.store, "acme", &id, "bob", &done, &err));
    assert_ok(job_store_cancel_requests(test.store, &hold.worker, &rows, &count, &err));
    assert_int_equal(count, 1);
    free(rows);
}

/* ---- cancel and hide ------------------------------------------------------------------------ */

static void a_job_without_an_owner_is_cancelled_at_once(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_cancelled done;
    assert_ok(job_store_cancel(test.store, "acme", &id, "bob", &done, &err));
    assert_true(done.done);
    assert_false(done.has_owner);
    assert_int_equal(done.state, JOB_CANCELLED);
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_int_equal(job->status, JOB_CANCELLED);
    assert_int_equal(job->condition, JOB_COND_CANCELLED_BY_USER);
    assert_string_equal(job->cancel_by, "bob");
    assert_true(job->ended_us > 0);
    assert_code(job_store_cancel(test.store, "acme", &id, "bob", &done, &err), ERR_STATE);
    assert_non_null(strstr(err.text, "CANCELLED"));
}

static void in_every_state_of_an_owned_job_cancel_asks_the_owner_once(void **unused)
{
    (void)unused;
    static const enum job_state states[] = {
        JOB_PENDING,        JOB_PROCESSING_INPUTS, JOB_STAGING_INPUTS, JOB_STAGING_JOB,
        JOB_SUBMITTING_JOB, JOB_RUNNING,           JOB_ARCHIVING};
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct err err = {0};
        struct uuid id = test_submit(test.store);
        struct job_hold hold = test_claim(test.store, &id, states[i]);
        struct job_cancelled done;
        assert_ok(job_store_cancel(test.store, "acme", &id, "bob", &done, &err));
        assert_false(done.done);
        assert_true(done.has_owner);
        assert_true(uuid_eq(&done.owner_worker, &hold.worker));
        assert_int_equal(done.state, states[i]);
        assert_ok(job_store_cancel(test.store, "acme", &id, "eve", &done, &err));
        AUTO(job_free) struct job *job = test_job(test.store, &id);
        assert_true(job->cancel_requested);
        assert_string_equal(job->cancel_by, "bob");
        assert_int_equal(job->status, states[i]);
        const struct job_outcome outcome = {.condition = JOB_COND_CANCELLED_BY_USER};
        assert_ok(move_to(&hold, states[i], JOB_CANCELLED, &outcome, &err));
        assert_code(job_store_cancel(test.store, "acme", &id, "bob", &done, &err), ERR_STATE);
    }
}

static void blocked_and_foreign_jobs_are_cancelled_and_not_found(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_hold hold = test_claim(test.store, &id, JOB_STAGING_INPUTS);
    struct job_cancelled done;
    const struct job_outcome blocked = {.condition = JOB_COND_CONNECTION_FAILED};
    assert_ok(move_to(&hold, JOB_STAGING_INPUTS, JOB_BLOCKED, &blocked, &err));
    assert_code(job_store_cancel(test.store, "other", &id, "bob", &done, &err), ERR_NOT_FOUND);
    err_clear(&err);
    assert_ok(job_store_cancel(test.store, "acme", &id, "bob", &done, &err));
    assert_true(done.done);
}

static void *cancel_it(void *arg)
{
    struct rival *rival = arg;
    struct err err = {0};
    struct job_cancelled done = {0};
    rival->rc = job_store_cancel(test.store, "acme", &rival->job, "bob", &done, &err);
    rival->fence = done.done;
    store_thread_end();
    return NULL;
}

static void a_cancel_and_a_claim_at_once_leave_one_truth(void **unused)
{
    (void)unused;
    for (int round = 0; round < 30; round++) {
        struct uuid id = test_submit(test.store);
        struct rival claimer = {.job = id, .worker = uuid_v7()};
        struct rival canceller = {.job = id};
        pthread_t threads[2];
        assert_int_equal(pthread_create(&threads[0], NULL, claim_it, &claimer), 0);
        assert_int_equal(pthread_create(&threads[1], NULL, cancel_it, &canceller), 0);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        AUTO(job_free) struct job *job = test_job(test.store, &id);
        assert_int_equal(canceller.rc, ERR_OK);
        bool cancelled = canceller.fence != 0;
        assert_int_equal(cancelled, claimer.rc == ERR_CONFLICT);
        assert_int_equal(cancelled, job->status == JOB_CANCELLED);
        assert_true(job->cancel_requested);
    }
}

static void only_a_job_that_has_ended_can_be_hidden(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = test_submit(test.store);
    struct job_cancelled done;
    assert_code(job_store_set_visible(test.store, "acme", &id, false, &err), ERR_STATE);
    err_clear(&err);
    assert_ok(job_store_cancel(test.store, "acme", &id, "bob", &done, &err));
    assert_ok(job_store_set_visible(test.store, "acme", &id, false, &err));
    assert_ok(job_store_set_visible(test.store, "acme", &id, false, &err));
    AUTO(job_free) struct job *job = test_job(test.store, &id);
    assert_false(job->visible);
    assert_ok(job_store_set_visible(test.store, "acme", &id, true, &err));
    assert_code(job_store_set_visible(test.store, "other", &id, true, &err), ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_eight_rivals_exactly_one_claims),
        TEST(a_stale_epoch_and_another_state_cannot_be_claimed),
        TEST(a_claim_with_moves_writes_an_event_for_each_in_order),
        TEST(a_takeover_needs_the_owner_and_fence_that_were_read),
        TEST(the_end_of_a_run_is_written_whole),
        TEST(what_was_started_some_time_ago_did_not_start_now),
        TEST(the_end_tells_the_times_of_its_own_run_only),
        TEST(repeating_a_move_is_no_fault_and_writes_nothing),
        TEST(a_blocked_job_has_no_owner_and_keeps_its_exact_condition),
        TEST(a_vaguer_condition_does_not_replace_an_exact_one),
        TEST(a_strange_byte_in_a_reason_does_not_keep_a_job_from_ending),
        TEST(a_job_that_is_handed_back_is_on_its_queue_again),
        TEST(the_jobs_of_a_worker_are_found_by_their_owner),
        TEST(a_job_without_an_owner_is_cancelled_at_once),
        TEST(in_every_state_of_an_owned_job_cancel_asks_the_owner_once),
        TEST(blocked_and_foreign_jobs_are_cancelled_and_not_found),
        TEST(a_cancel_and_a_claim_at_once_leave_one_truth),
        TEST(only_a_job_that_has_ended_can_be_hidden),
    };
    test_db_open(&test);
    int failed = cmocka_run_group_tests_name("store_own", tests, NULL, NULL);
    test_db_close(&test);
    return failed;
}
