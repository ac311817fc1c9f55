/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/base/fault.h"
#include "common/store/db.h"
#include "common/store/job_writer.h"

#include <pthread.h>
#include <sched.h>

#define SLOTS 24
#define JOBS_EACH 10

static struct test_db test;
static struct job_writer *writer;
static struct uuid worker;

struct slot {
    pthread_t thread;
    pthread_barrier_t *together;
    struct uuid id;
    bool takes;          /* looks and claims in one go */
    uint64_t from_fence; /* as this slot believes */
    enum err_code claimed;
    uint64_t fence;
    enum err_code ended;
    int exit_code;
    uint64_t out_bytes;
};

static const enum job_state way[] = {JOB_PENDING,     JOB_PROCESSING_INPUTS, JOB_STAGING_INPUTS,
                                     JOB_STAGING_JOB, JOB_SUBMITTING_JOB,    JOB_RUNNING,
                                     JOB_ARCHIVING,   JOB_FINISHED};

static const struct job_move claim_moves[] = {{.to = JOB_PENDING, .kind = "claimed"},
                                              {.to = JOB_PROCESSING_INPUTS},
                                              {.to = JOB_STAGING_INPUTS},
                                              {.to = JOB_STAGING_JOB},
                                              {.to = JOB_SUBMITTING_JOB}};

static struct job_claim claim_of(const struct slot *slot)
{
    return (struct job_claim){.id = slot->id,
                              .epoch = 1,
                              .worker = worker,
                              .from_fence = slot->from_fence,
                              .tenant = "acme",
                              .from = JOB_PENDING,
                              .moves = claim_moves,
                              .move_count = ARRAY_LEN(claim_moves)};
}

static enum err_code claim(struct slot *slot, struct err *err)
{
    const struct job_claim claim = claim_of(slot);
    return job_writer_claim(writer, &claim, &slot->fence, err);
}

/* What take_it() found. */
struct found {
    const struct slot *slot;
    struct job *job;
    int times;
    bool want; /* a claim, if nobody owns it */
    struct job_claim claim;
};

static const struct job_claim *see(void *arg, struct job **take_job, const struct job_gate *gate)
{
    struct found *found = arg;
    (void)gate;
    found->times++;
    found->job = TAKE(*take_job);
    if (!found->want || !found->job || found->job->has_owner)
        return NULL;
    found->claim = claim_of(found->slot);
    return &found->claim;
}

static enum err_code end(const struct slot *slot, struct err *err)
{
    const struct job_move moves[] = {
        {.to = JOB_RUNNING}, {.to = JOB_ARCHIVING}, {.to = JOB_FINISHED}};
    const struct job_hold hold = {
        .id = slot->id, .worker = worker, .fence = slot->fence, .tenant = "acme", .epoch = 1};
    const struct job_outcome outcome = {.has_exit_code = true,
                                        .exit_code = slot->exit_code,
                                        .run_fence = slot->fence,
                                        .attempt = true,
                                        .timed = true,
                                        .since_end_us = slot->out_bytes,
                                        .run_us = slot->out_bytes * 3,
                                        .out = {slot->out_bytes, slot->out_bytes / 2},
                                        .errs = {3, 2}};
    return job_writer_move(writer, &hold, JOB_SUBMITTING_JOB, (struct job_moves){moves, 3},
                           &outcome, err);
}

static void *drive(void *arg)
{
    struct slot *slot = arg;
    struct err err = {0};
    struct found found = {.slot = slot, .want = slot->takes};
    (void)pthread_barrier_wait(slot->together);
    slot->claimed = job_writer_take(writer, &slot->id, see, &found, &slot->fence, &err);
    assert_int_equal(found.times, 1);
    assert_true(uuid_eq(&found.job->id, &slot->id));
    if (slot->claimed == ERR_OK && slot->fence == 0)
        slot->claimed = claim(slot, &err);
    job_free(found.job);
    if (slot->claimed == ERR_OK) {
        err_clear(&err);
        slot->ended = end(slot, &err);
    }
    store_thread_end();
    return NULL;
}

static void drive_all(struct slot *slots, size_t count)
{
    pthread_barrier_t together;
    assert_int_equal(pthread_barrier_init(&together, NULL, (unsigned)count), 0);
    for (size_t i = 0; i < count; i++) {
        slots[i].together = &together;
        assert_int_equal(pthread_create(&slots[i].thread, NULL, drive, &slots[i]), 0);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(slots[i].thread, NULL);
    pthread_barrier_destroy(&together);
}

static void assert_history(const struct slot *slot)
{
    struct job_event_list events = {0};
    struct err err = {0};
    assert_ok(job_store_events(test.store, NULL, &slot->id, (struct job_event_page){0, 100},
                               &events, &err));
    assert_int_equal(events.count, 2 + ARRAY_LEN(way) - 1);
    for (size_t i = 1; i < events.count; i++) {
        const struct job_event *event = &events.items[i];
        assert_true(event->seq > events.items[i - 1].seq);
        assert_int_equal(event->from, events.items[i - 1].to);
        assert_int_equal(event->to, way[i - 1]);
        assert_string_equal(event->kind, i == 1 ? "claimed" : "status");
        assert_int_equal(event->fence, slot->fence);
        assert_int_equal(event->epoch, 1);
        assert_true(uuid_eq(&event->worker, &worker));
    }
    free(events.items);
}

static void assert_ended(const struct slot *slot)
{
    AUTO(job_free) struct job *job = test_job(test.store, &slot->id);
    assert_int_equal(job->status, JOB_FINISHED);
    assert_false(job->has_owner);
    assert_int_equal(job->fence, slot->fence);
    assert_int_equal(job->run_fence, slot->fence);
    assert_int_equal(job->attempts, 1);
    assert_true(job->has_exit_code);
    assert_int_equal(job->exit_code, slot->exit_code);
    assert_int_equal(job->term_signal, 0);
    assert_int_equal(job->out.total_bytes, slot->out_bytes);
    assert_int_equal(job->out.kept_bytes, slot->out_bytes / 2);
    assert_int_equal(job->updated_us - job->ended_us, slot->out_bytes);
    assert_int_equal(job->ended_us - job->started_us, slot->out_bytes * 3);
    assert_int_equal(job->errs.total_bytes, 3);
    assert_int_equal(job->errs.kept_bytes, 2);
    assert_true(job->started_us > 0 && job->ended_us >= job->started_us);
    assert_history(slot);
}

static void fill(struct slot *slots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        slots[i] =
            (struct slot){.id = test_submit(test.store), .takes = i % 4 != 1, .out_bytes = 100 + i};
}

/* ---- the tests ------------------------------------------------------------------------------ */

static void each_of_many_has_its_own_row_and_history(void **unused)
{
    (void)unused;
    struct slot slots[SLOTS];
    for (int round = 0; round < JOBS_EACH; round++) {
        fill(slots, SLOTS);
        for (size_t i = 0; i < SLOTS; i += 5)
            slots[i].exit_code = (int)i; /* not all of them alike */
        drive_all(slots, SLOTS);
        for (size_t i = 0; i < SLOTS; i++) {
            assert_int_equal(slots[i].claimed, ERR_OK);
            assert_int_equal(slots[i].ended, ERR_OK);
            assert_int_equal(slots[i].fence, 1);
            assert_ended(&slots[i]);
        }
    }
}

static void what_is_shared_costs_fewer_transactions(void **unused)
{
    (void)unused;
    struct slot slots[SLOTS];
    struct store_counters before, after;
    fill(slots, SLOTS);
    store_counters(test.store, &before);
    drive_all(slots, SLOTS);
    store_counters(test.store, &after);
    assert_true(after.transactions - before.transactions < SLOTS); /* of three for each alone */
}

static void one_that_is_refused_harms_no_other(void **unused)
{
    (void)unused;
    struct slot slots[SLOTS];
    fill(slots, SLOTS);
    for (size_t i = 0; i < SLOTS; i += 6) /* a rival was there before */
        (void)test_claim(test.store, &slots[i].id, JOB_RUNNING);
    slots[1].from_fence = 7; /* a belief that does not matter to a job without an owner */
    drive_all(slots, SLOTS);
    for (size_t i = 0; i < SLOTS; i++) {
        assert_int_equal(slots[i].claimed, i % 6 == 0 ? ERR_CONFLICT : ERR_OK);
        if (i % 6 == 0)
            assert_int_equal(test_state(test.store, &slots[i].id), JOB_RUNNING);
        else
            assert_ended(&slots[i]);
    }
}

struct ender {
    pthread_t thread;
    struct slot slot;
};

static void *end_it(void *arg)
{
    struct ender *ender = arg;
    struct err err = {0};
    ender->slot.ended = end(&ender->slot, &err);
    store_thread_end();
    return NULL;
}

static void one_that_is_fenced_harms_no_other(void **unused)
{
    (void)unused;
    struct ender enders[SLOTS];
    for (size_t i = 0; i < SLOTS; i++) {
        struct err err = {0};
        enders[i].slot = (struct slot){.id = test_submit(test.store), .out_bytes = i};
        assert_ok(claim(&enders[i].slot, &err));
    }
    enders[4].slot.fence++; /* somebody else's */
    for (size_t i = 0; i < SLOTS; i++)
        assert_int_equal(pthread_create(&enders[i].thread, NULL, end_it, &enders[i]), 0);
    for (size_t i = 0; i < SLOTS; i++)
        pthread_join(enders[i].thread, NULL);
    for (size_t i = 0; i < SLOTS; i++) {
        assert_int_equal(enders[i].slot.ended, i == 4 ? ERR_FENCED : ERR_OK);
        if (i != 4)
            assert_ended(&enders[i].slot);
    }
    assert_int_equal(test_state(test.store, &enders[4].slot.id), JOB_SUBMITTING_JOB);
}

static void a_look_tells_of_each_job_also_twice_and_of_none(void **unused)
{
    (void)unused;
    struct slot slots[SLOTS];
    struct err err = {0};
    uint64_t fence = 7;
    struct found found = {.want = true};
    fill(slots, SLOTS);
    for (size_t i = 1; i < SLOTS; i++)
        slots[i].id = slots[i % 3].id;
    drive_all(slots, SLOTS); /* each look is asserted in there */
    const struct uuid nobody = uuid_v7();
    assert_ok(job_writer_take(writer, &nobody, see, &found, &fence, &err));
    assert_int_equal(found.times, 1);
    assert_null(found.job);
    assert_int_equal(fence, 0);
}

#ifdef SLUICE_FAULTS
static void all_are_settled_whatever_became_of_their_commit(void **unused)
{
    (void)unused;
    static const char *const losses[] = {
        "store.commit.answer_lost=fail@1", "store.commit.unsent=fail@1",
        "store.commit.answer_lost=fail@2", "store.commit.unsent=fail@2"};
    struct slot slots[SLOTS];
    for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
        fill(slots, SLOTS);
        fault_arm(losses[i]);
        drive_all(slots, SLOTS);
        fault_arm(NULL);
        for (size_t k = 0; k < SLOTS; k++) {
            assert_int_equal(slots[k].claimed, ERR_OK);
            assert_int_equal(slots[k].ended, ERR_OK);
            assert_ended(&slots[k]);
        }
    }
}
#endif

/* It is an update that does not end. */
static void wait_until_it_waits(void)
{
    while (test_db_number(&test, "SELECT COUNT(*) FROM information_schema.processlist "
                                 "WHERE db = DATABASE() AND info LIKE 'UPDATE%'") == 0)
        sched_yield();
}

static void a_row_that_somebody_holds_keeps_no_other_waiting(void **unused)
{
    (void)unused;
    struct slot slots[SLOTS];
    struct err err = {0};
    pthread_barrier_t alone;
    AUTO(db_free) struct db *holder = NULL;
    fill(slots, SLOTS);
    assert_ok(db_open(&test.cfg, &holder, &err));
    db_begin(holder);
    assert_ok(db_exec(holder, DB_JOB_CANCEL_ASK, DB_ARGS(db_text("ann"), db_uuid(&slots[0].id)),
                      NULL, &err));
    slots[0].together = &alone;
    assert_int_equal(pthread_barrier_init(&alone, NULL, 1), 0);
    assert_int_equal(pthread_create(&slots[0].thread, NULL, drive, &slots[0]), 0);
    wait_until_it_waits();
    drive_all(slots + 1, SLOTS - 1);
    for (size_t i = 1; i < SLOTS; i++)
        assert_ended(&slots[i]);
    assert_int_equal(test_state(test.store, &slots[0].id), JOB_PENDING);
    db_rollback(holder);
    pthread_join(slots[0].thread, NULL);
    pthread_barrier_destroy(&alone);
    assert_ended(&slots[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_of_many_has_its_own_row_and_history),
        TEST(what_is_shared_costs_fewer_transactions),
        TEST(one_that_is_refused_harms_no_other),
        TEST(one_that_is_fenced_harms_no_other),
        TEST(a_look_tells_of_each_job_also_twice_and_of_none),
#ifdef SLUICE_FAULTS
        TEST(all_are_settled_whatever_became_of_their_commit),
#endif
        TEST(a_row_that_somebody_holds_keeps_no_other_waiting),
    };
    struct err err = {0};
    test_db_open(&test);
    worker = uuid_v7();
    assert_ok(job_writer_open(test.store, &writer, &err));
    int failed = cmocka_run_group_tests_name("store_writer", tests, NULL, NULL);
    job_writer_free(writer);
    test_db_close(&test);
    return failed;
}
