/* SPDX-License-Identifier: MIT */
#include "webapp/next_step.h"
#include "webapp/why_text.h"

#include "tests/support/test.h"

static struct job job;
static struct why why;
static struct buf text;
static struct identity asker;
static const char *last_line;

static void begin(enum job_state status)
{
    last_line = NULL;
    asker = (struct identity){.tenant = "acme", .user = "ann", .roles = 1u << ROLE_USER};
    job = (struct job){
        .tenant = "acme", .queue = "long", .status = status, .max_seconds = 600, .attempts = 1};
    why = (struct why){.now_us = INT64_C(2000000000000000), .since_us = INT64_C(1999999999000000)};
    why.lease_ms = 20000;
    why.queue =
        (struct why_queue){.exists = true, .enabled = true, .workers = 2, .slots = 8, .busy = 8};
}

static const char *told(enum bus_state broker)
{
    const struct why_facts facts = {.job = &job,
                                    .why = &why,
                                    .broker = broker,
                                    .asker = &asker,
                                    .last_line = last_line,
                                    .max_losses = 3};
    buf_clear(&text);
    why_tell(&facts, &text);
    assert_false(text.failed);
    return buf_text(&text);
}

static void has(const char *sentence, const char *part)
{
    if (!strstr(sentence, part))
        fail_msg("'%s' is not in '%s'", part, sentence);
}

static void owned_by(enum worker_state state)
{
    job.has_owner = true;
    why.has_worker = true;
    why.worker =
        (struct worker_row){.name = "w1", .host = "node7", .state = state, .beat_age_us = 1200000};
}

static void every_state_and_condition_has_one_sentence(void **unused)
{
    (void)unused;
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        for (int condition = 0; condition < 2 * JOB_CONDITION_COUNT; condition++) {
            begin((enum job_state)state);
            job.condition = (enum job_condition)(condition / 2);
            (void)snprintf(job.reason, sizeof(job.reason), "the reason.");
            if (condition % 2)
                owned_by(WORKER_LIVE);
            const char *sentence = told(BUS_UP);
            size_t length = strlen(sentence);
            assert_true(length > 20 && sentence[length - 1] == '.');
            assert_null(strstr(sentence, ".."));
            assert_true(sentence[0] >= 'A' && sentence[0] <= 'Z');
        }
    }
}

static void a_waiting_job_knows_its_place(void **unused)
{
    (void)unused;
    begin(JOB_PENDING);
    why.queue.beat_age_us = 4 * INT64_C(1000000);
    has(told(BUS_UP),
        "It has waited for 1.0 s for a free slot on queue 'long', it is the next; 8 of "
        "8 slots of its 2 workers are busy (as of 4.0 s ago). There is nothing to do");
    why.queue.ahead = 1;
    has(told(BUS_UP), "1 job is before it");
    why.queue.ahead = WHY_AHEAD_MAX;
    why.queue.ahead_more = true;
    has(told(BUS_UP), "more than 1000 jobs are before it");
    why.queue.ahead = 12;
    has(told(BUS_UP), "at least 12 jobs are before it");
    why.queue.ahead_more = false;
    why.queue.owners[0] = (struct why_owner){"ann", 8};
    why.queue.owners[1] = (struct why_owner){"bob", 3};
    why.queue.owner_count = 2;
    has(told(BUS_UP), "12 jobs are before it (8 of ann, 3 of bob, 1 of others)");
    has(told(BUS_DOWN), "the broker cannot be reached");
    has(told(BUS_BLOCKED), "short of memory or disk");
    why.queue.enabled = false;
    has(told(BUS_UP), "The queue was disabled: no new jobs come to it, those on it still run.");
    why.queue = (struct why_queue){.exists = false};
    has(told(BUS_UP), "was deleted");
    assert_null(strstr(told(BUS_UP), "disabled"));
}

static void the_workers_of_a_waiting_job_are_told_as_they_are(void **unused)
{
    (void)unused;
    begin(JOB_PENDING);
    why.queue.has_worker = true;
    why.queue.worker =
        (struct worker_row){.name = "w1", .host = "node7", .beat_age_us = INT64_C(25000000)};
    why.queue.workers = why.queue.silent = 1;
    has(told(BUS_UP), "its worker 'w1' of host node7 has been silent for 25 s, longer than the "
                      "lease of 20 s. Ask an administrator");
    why.queue.workers = why.queue.silent = 2;
    has(told(BUS_UP), "its 2 workers have been silent, the last for 25 s");
    why.queue.silent = 1;
    why.queue.drained = 1;
    has(told(BUS_UP), "1 of them is drained, 1 of them is silent for longer than the lease");
    why.queue.silent = 0;
    why.queue.beat_age_us = INT64_C(12000000);
    has(told(BUS_UP), "one of them has not been heard of for 12 s and is given up after 20 s");
    why.queue.workers = why.queue.drained = 3;
    has(told(BUS_UP), "its 3 workers are drained and take no jobs");
    why.queue.workers = why.queue.drained = 1;
    assert_null(strstr(told(BUS_UP), " by "));
    (void)snprintf(why.queue.drain.actor, sizeof(why.queue.drain.actor), "olga");
    has(told(BUS_UP), "its only worker 'w1' of host node7 was drained by olga 0.0 s ago and takes");
}

static void the_start_is_estimated_when_enough_is_known(void **unused)
{
    (void)unused;
    begin(JOB_PENDING);
    why.queue = (struct why_queue){.exists = true,
                                   .enabled = true,
                                   .workers = 1,
                                   .slots = 2,
                                   .busy = 2,
                                   .usable = 2,
                                   .ahead = 4,
                                   .runs = 3,
                                   .run_us = INT64_C(20000000)};
    const struct why_facts facts = {
        .job = &job, .why = &why, .broker = BUS_UP, .asker = &asker, .max_losses = 3};
    assert_int_equal(why_estimate_us(&facts), why.now_us + INT64_C(45000000));
    has(told(BUS_UP), "A job took 20 s here (median of 3 that ended in the last hour): it should "
                      "start in about 45 s, at 03:34:05 UTC");
    why.queue.runs = 2; /* too few */
    assert_int_equal(why_estimate_us(&facts), 0);
    assert_null(strstr(told(BUS_UP), "should start"));
    why.queue.runs = 3;
    why.queue.usable = 0;
    assert_int_equal(why_estimate_us(&facts), 0);
    why.queue.usable = 2;
    why.queue.ahead_more = true;
    assert_int_equal(why_estimate_us(&facts), 0);
    why.queue.ahead_more = false;
    job.status = JOB_RUNNING;
    assert_int_equal(why_estimate_us(&facts), 0);
}

static void a_user_is_told_whom_to_ask_and_an_administrator_the_command(void **unused)
{
    (void)unused;
    begin(JOB_PENDING);
    why.queue = (struct why_queue){.exists = true, .enabled = true};
    has(told(BUS_UP),
        "no worker serves this queue. Ask an administrator of this site to start one.");
    assert_null(strstr(told(BUS_UP), "sluice-worker"));
    asker.roles |= 1u << ROLE_ADMIN;
    has(told(BUS_UP), ". Start one: 'sluice-worker --tenant acme --queue long'.");
    assert_null(strstr(told(BUS_UP), "Ask"));
    assert_int_equal(next_step_role(&asker, "ann"), ROLE_USER);
    assert_int_equal(next_step_role(&asker, "bob"), ROLE_OPERATOR);
}

static void a_job_that_no_free_slot_gets_is_said_to_be_sent_again(void **unused)
{
    (void)unused;
    begin(JOB_PENDING);
    why.queue.busy = 0;
    why.queue.free = 8;
    job.updated_us = why.now_us - INT64_C(6000000);
    has(told(BUS_UP),
        "It has waited for 1.0 s on queue 'long', it is the next and a slot is free, so "
        "the broker seems to have lost its message. sluice-recovery sends it again "
        "within two leases (40 s): there is nothing to do.");
    job.updated_us = why.now_us - INT64_C(4000000); /* it may be on its way */
    assert_null(strstr(told(BUS_UP), "lost"));
    job.updated_us = why.now_us - INT64_C(6000000);
    assert_null(strstr(told(BUS_DOWN), "lost"));
    why.queue.free = 0; /* busy or drained */
    assert_null(strstr(told(BUS_UP), "lost"));
    why.queue.free = 8;
    why.queue.ahead = 1;
    assert_null(strstr(told(BUS_UP), "lost"));
}

static void an_owned_job_names_its_worker(void **unused)
{
    (void)unused;
    begin(JOB_RUNNING);
    owned_by(WORKER_LIVE);
    assert_string_equal(told(BUS_UP),
                        "Its command runs for 1.0 s, with 9 min of its 600 s left, on "
                        "worker 'w1' of host node7, which was heard of 1.2 s ago.");
    job.max_seconds = 1;
    has(told(BUS_UP), "over its limit of 1 s");
    job.cancel_requested = true;
    (void)snprintf(job.cancel_by, sizeof(job.cancel_by), "ann");
    has(told(BUS_UP), "ann asked to cancel it: it was sent SIGTERM");
    owned_by(WORKER_DEAD);
    has(told(BUS_UP),
        "Its worker 'w1' of host node7 is dead and was heard of 1.2 s ago. ann asked to "
        "cancel it, and it becomes CANCELLED when its worker is declared dead, which "
        "sluice-recovery and other workers do. There is nothing to do.");
    job.cancel_requested = false;
    has(told(BUS_UP), "takes the job over: there is nothing to do.");
    why.queue.workers = 0;
    has(told(BUS_UP), "Another worker of queue 'long' would take the job over, and there is none. "
                      "Ask an administrator of this site to start one.");
    why.has_worker = false;
    has(told(BUS_UP), "Its worker is not known any more.");
}

static void a_silent_worker_is_told_by_its_lease(void **unused)
{
    (void)unused;
    begin(JOB_RUNNING);
    owned_by(WORKER_LIVE);
    why.worker.beat_age_us = INT64_C(12000000);
    has(told(BUS_UP), "which has not been heard of for 12 s and is declared dead after 20 s.");
    why.worker.beat_age_us = INT64_C(26000000);
    has(told(BUS_UP),
        "Its worker 'w1' of host node7 has been silent for 26 s, longer than the lease "
        "of 20 s: its host hangs or is cut off, and it is being declared dead.");
    assert_null(strstr(told(BUS_UP), "Its command runs"));
}

static void a_second_run_has_its_own_time(void **unused)
{
    (void)unused;
    begin(JOB_RUNNING);
    owned_by(WORKER_LIVE);
    why.since_us = why.now_us - INT64_C(49000000);
    job.losses = 1;
    why.run.loss_count = 1;
    why.run.losses[0] = (struct why_loss){.at_us = why.now_us - INT64_C(4000000),
                                          .worker = "w0",
                                          .host = "node6",
                                          .detail = "from worker 01, fence 1"};
    has(told(BUS_UP),
        "Its second run runs for 4.0 s, with 9 min of its 600 s left, on worker 'w1'");
    has(told(BUS_UP),
        ". The first run was lost with worker 'w0' of host node6 at 03:33:16 UTC (1 of "
        "3 losses, then it fails).");
    (void)snprintf(why.run.losses[0].detail, sizeof(why.run.losses[0].detail),
                   "run 1: the run was ended by runner_lost");
    has(told(BUS_UP), "was lost when its runner died on worker 'w0'");
    job.losses = 11;
    has(told(BUS_UP), "Its run 12 runs");
    why.run.named = 4;
    why.run.named_us = INT64_C(1100000);
    has(told(BUS_UP),
        "That is longer than usual: the last 4 jobs named '' of  took 1.1 s (median)");
    begin(JOB_FAILED);
    job.condition = JOB_COND_POISON;
    job.losses = 1;
    why.run.loss_count = 1;
    why.run.losses[0] = (struct why_loss){.worker = "w0", .host = "node6"};
    has(told(BUS_UP), "It was lost with worker 'w0' of host node6 at 1970-01-01 00:00 UTC. See");
}

static void a_held_job_names_its_cause_and_the_next_check(void **unused)
{
    (void)unused;
    begin(JOB_BLOCKED);
    job.condition = JOB_COND_APPLICATION_UNAVAILABLE;
    has(told(BUS_UP), "its application is disabled or missing; sluice-recovery");
    why.has_blocked = true;
    why.blocked = (struct why_blocked){.tries = 3, .next_in_us = 30000000};
    has(told(BUS_UP), "checked again in 30 s (3 failed checks so far). Ask an administrator");
    why.blocked.next_in_us = -60000000;
    has(told(BUS_UP), "overdue by 60 s, so sluice-recovery may not be running (3");
    why.blocked.ramp = 4;
    has(told(BUS_UP), "has cleared");
}

static void an_ended_job_says_how(void **unused)
{
    (void)unused;
    begin(JOB_FAILED);
    job.condition = JOB_COND_COMMAND_FAILED;
    job.has_exit_code = true;
    job.exit_code = 3;
    (void)snprintf(job.reason, sizeof(job.reason), "ended with exit code 3");
    job.errs = (struct job_stream){30, 30};
    job.started_us = 1000000;
    job.ended_us = 1100000;
    last_line = "no licence";
    assert_string_equal(told(BUS_UP),
                        "It failed: its command ended with exit code 3 after 0.1 s. The last line "
                        "of its stderr, in its own words: \"no licence\". All that it wrote there: "
                        "'sluice output 00000000-0000-0000-0000-000000000000 --stderr'.");
    job.exit_code = 137;
    has(told(BUS_UP), "a shell's word for a command that a signal ended: SIGKILL");
    job.reason[0] = 0;
    assert_string_equal(told(BUS_UP),
                        "It failed: the command ended with an exit code other than 0.");
    begin(JOB_CANCELLED);
    (void)snprintf(job.cancel_by, sizeof(job.cancel_by), "ann");
    has(told(BUS_UP), "ann cancelled it before it had begun.");
}

static int open_text(void **unused)
{
    (void)unused;
    text = BUF_INIT(8192);
    return 0;
}

static int close_text(void **unused)
{
    (void)unused;
    buf_done(&text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_state_and_condition_has_one_sentence),
        TEST(a_waiting_job_knows_its_place),
        TEST(the_workers_of_a_waiting_job_are_told_as_they_are),
        TEST(the_start_is_estimated_when_enough_is_known),
        TEST(a_user_is_told_whom_to_ask_and_an_administrator_the_command),
        TEST(a_job_that_no_free_slot_gets_is_said_to_be_sent_again),
        TEST(an_owned_job_names_its_worker),
        TEST(a_silent_worker_is_told_by_its_lease),
        TEST(a_second_run_has_its_own_time),
        TEST(a_held_job_names_its_cause_and_the_next_check),
        TEST(an_ended_job_says_how),
    };
    return cmocka_run_group_tests(tests, open_text, close_text);
}
