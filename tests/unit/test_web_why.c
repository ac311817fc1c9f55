/* SPDX-License-Identifier: MIT */
#include "webapp/next_step.h"
#include "webapp/why_text.h"

#include "tests/support/test.h"

static struct job job;
static struct why why;
static struct buf text;
static struct identity asker;

static void begin(enum job_state status)
{
    asker = (struct identity){.tenant = "acme", .user = "ann", .roles = 1u << ROLE_USER};
    job = (struct job){
        .tenant = "acme", .queue = "long", .status = status, .max_seconds = 600, .attempts = 1};
    why = (struct why){.now_us = INT64_C(2000000000000000), .since_us = INT64_C(1999999999000000)};
    why.queue = (struct why_queue){.exists = true, .workers = 2, .slots = 8, .busy = 8};
}

static const char *told(enum bus_state broker)
{
    const struct why_facts facts = {&job, &why, broker, &asker};
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
    has(told(BUS_UP), "it is the next; 8 of 8 slots of its 2 workers are busy");
    why.queue.ahead = 1;
    has(told(BUS_UP), "1 job is before it");
    why.queue.ahead = WHY_AHEAD_MAX;
    why.queue.ahead_more = true;
    has(told(BUS_UP), "more than 1000 jobs are before it");
    why.queue.ahead = 12;
    has(told(BUS_UP), "at least 12 jobs are before it");
    has(told(BUS_DOWN), "the broker cannot be reached");
    has(told(BUS_BLOCKED), "short of memory or disk");
    why.queue.silent = 2;
    has(told(BUS_UP), "its 2 workers have not been heard of");
    why.queue = (struct why_queue){.exists = false};
    has(told(BUS_UP), "was deleted");
}

static void a_user_is_told_whom_to_ask_and_an_administrator_the_command(void **unused)
{
    (void)unused;
    begin(JOB_PENDING);
    why.queue = (struct why_queue){.exists = true};
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
    why.lease_ms = 20000;
    why.queue.busy = 0;
    why.queue.free = 8;
    job.updated_us = why.now_us - INT64_C(6000000);
    has(told(BUS_UP), "the broker may have lost its message: sluice-recovery sends it again within "
                      "two leases (40 s)");
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
    has(told(BUS_UP), "ann asked to cancel it");
    owned_by(WORKER_DEAD);
    has(told(BUS_UP), "which is dead: another worker of queue 'long' takes the job over");
}

static void a_held_job_names_its_cause_and_the_next_check(void **unused)
{
    (void)unused;
    begin(JOB_BLOCKED);
    job.condition = JOB_COND_APPLICATION_UNAVAILABLE;
    has(told(BUS_UP), "its application is disabled or missing; sluice-recovery");
    why.has_blocked = true;
    why.blocked = (struct why_blocked){.tries = 3, .next_in_us = 30000000};
    has(told(BUS_UP), "checked again in 30 s (3 checks in vain so far).");
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
    assert_string_equal(told(BUS_UP), "It failed: its command ended with exit code 3.");
    job.reason[0] = 0;
    assert_string_equal(told(BUS_UP),
                        "It failed: the command ended with an exit code other than 0.");
    begin(JOB_CANCELLED);
    (void)snprintf(job.cancel_by, sizeof(job.cancel_by), "ann");
    assert_string_equal(told(BUS_UP), "ann cancelled it before it had begun.");
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
        TEST(a_user_is_told_whom_to_ask_and_an_administrator_the_command),
        TEST(a_job_that_no_free_slot_gets_is_said_to_be_sent_again),
        TEST(an_owned_job_names_its_worker),
        TEST(a_held_job_names_its_cause_and_the_next_check),
        TEST(an_ended_job_says_how),
    };
    return cmocka_run_group_tests(tests, open_text, close_text);
}
