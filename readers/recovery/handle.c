/* SPDX-License-Identifier: MIT */
#include "readers/recovery/handle.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/model/policy.h"
#include "readers/recovery/stats.h"

#define GIVE_UP_AT_ONCE 256
#define DETAIL_SIZE 700 /* the store cuts what is longer than people read */
#define DURATION_SIZE 40

struct work {
    const struct handle_site *site;
    const struct recovery_lead *lead;
    const struct handle_gate *gate;
    struct recovery cause;
    struct policy policy;
    bool has_policy;  /* else: a fixed pause, for ever */
    int64_t began_ms; /* by the monotonic clock */
    int64_t due_ms;   /* result */
};

#define PAUSE_WITHOUT_POLICY_MS 60000

/* ---- words ---------------------------------------------------------------------------------- */

static const char *duration_text(int64_t ms, char *ret_text)
{
    int64_t minutes = ms / 60000;
    if (ms < 120000)
        (void)snprintf(ret_text, DURATION_SIZE, "%lld s", (long long)(ms / 1000));
    else if (minutes < 120)
        (void)snprintf(ret_text, DURATION_SIZE, "%lld min", (long long)minutes);
    else if (minutes < 48 * 60)
        (void)snprintf(ret_text, DURATION_SIZE, "%lld h %lld min", (long long)(minutes / 60),
                       (long long)(minutes % 60));
    else
        (void)snprintf(ret_text, DURATION_SIZE, "%lld d %lld h", (long long)(minutes / 1440),
                       (long long)(minutes % 1440 / 60));
    return ret_text;
}

/* Since when the cause was not found clear, by the database's clock. */
static int64_t lasted_ms(const struct recovery *cause)
{
    return (cause->next_us - cause->next_in_us - cause->first_us) / 1000;
}

static void log_cause(const char *event, const struct work *work, const char *result,
                      const char *detail, uint32_t jobs)
{
    char id[UUID_TEXT_SIZE];
    const struct recovery *cause = &work->cause;
    log_event(LOG_INFO, event, LOG_S("tenant", cause->tenant),
              LOG_S("recovery", uuid_text(&cause->id, id)),
              LOG_S("condition", job_condition_text(cause->condition)),
              LOG_S("tester", cause->tester), LOG_S("params", cause->params),
              LOG_S("result", result), LOG_S("detail", detail), LOG_U("jobs", jobs),
              LOG_U("tests", cause->tests), LOG_U("blocked", cause->blocked));
}

/* ---- letting go ----------------------------------------------------------------------------- */

static void send_messages(const struct work *work, struct recovery_done *done)
{
    for (size_t i = 0; i < done->messages.count; i++) {
        const struct outbox_row *row = &done->messages.items[i];
        const struct outbox_message message = {.outbox_id = row->id,
                                               .job = row->job,
                                               .epoch = row->epoch,
                                               .tenant = row->tenant,
                                               .queue = row->queue,
                                               .queue_type = row->queue_type};
        outbox_send(work->site->outbox, &message);
    }
    free(done->messages.items);
    done->messages = (struct outbox_list){0};
}

/* The pause counts from where the batch began: what the batch itself takes is not added to it. */
static int64_t rest_of_pause_ms(const struct work *work)
{
    int64_t rest_ms = work->began_ms + work->site->cfg->recovery_ramp_pause_ms - clock_mono_ms();
    return rest_ms > 1 ? rest_ms : 1;
}

/* A batch of the ramp: at most `most` jobs. */
static enum err_code let_go(struct work *work, uint32_t most,
                            const struct recovery_verdict *verdict, struct recovery_batch *batch,
                            struct err *err)
{
    const struct config *cfg = work->site->cfg;
    const struct recovery *cause = &work->cause;
    struct recovery_done done = {0};
    uint32_t size = cause->ramp ? cause->ramp : 1;
    batch->id = cause->id;
    batch->limit = size < most ? size : most;
    batch->ramp = size * 2 < cfg->recovery_ramp_max ? size * 2 : cfg->recovery_ramp_max;
    enum err_code rc =
        recovery_store_release(work->site->test.store, work->lead, batch, verdict, &done, err);
    if (rc)
        return rc;
    FAULT("recovery.release_committed");
    send_messages(work, &done);
    FAULT("recovery.published");
    metric_count(&stat_released, 0, done.jobs);
    log_cause("recovery.released", work, verdict->result, batch->detail, done.jobs);
    work->due_ms = done.gone ? HANDLE_GONE : rest_of_pause_ms(work);
    return ERR_OK;
}

static enum err_code on_clear(struct work *work, const struct test_answer *answer, struct err *err)
{
    char detail[DETAIL_SIZE];
    char lasted[DURATION_SIZE];
    const struct recovery_verdict verdict = {.tests = 1,
                                             .result = test_result_text(TEST_CLEAR),
                                             .detail = answer->detail,
                                             .next_ms = rest_of_pause_ms(work)};
    struct recovery_batch batch = {.detail = detail};
    (void)snprintf(detail, sizeof(detail), "clear after %u tests in %s", work->cause.tests + 1,
                   duration_text(lasted_ms(&work->cause), lasted));
    return let_go(work, answer->jobs, &verdict, &batch, err);
}

/* ---- giving up ------------------------------------------------------------------------------ */

static enum err_code give_up(struct work *work, const struct recovery_verdict *verdict,
                             struct recovery_batch *batch, struct err *err)
{
    struct recovery_done done = {.more = true};
    uint32_t jobs = 0;
    enum err_code rc = ERR_OK;
    batch->id = work->cause.id;
    batch->limit = GIVE_UP_AT_ONCE;
    while (rc == ERR_OK && done.more) {
        rc = recovery_store_give_up(work->site->test.store, work->lead, batch, verdict, &done, err);
        if (rc == ERR_OK)
            jobs += done.jobs;
    }
    if (rc)
        return rc;
    metric_count(&stat_given_up, 0, jobs);
    if (jobs > 0)
        log_cause("recovery.given_up", work, verdict->result, batch->detail, jobs);
    work->due_ms = done.gone ? HANDLE_GONE : verdict->next_ms;
    return ERR_OK;
}

/* The test was in vain once more, or for ever: all jobs end. */
static enum err_code end_all(struct work *work, const struct test_answer *answer, struct err *err)
{
    char detail[DETAIL_SIZE];
    char lasted[DURATION_SIZE];
    const struct recovery_verdict verdict = {.tests = 1,
                                             .result = test_result_text(answer->result),
                                             .detail = answer->detail,
                                             .next_ms = work->site->cfg->recovery_first_test_ms};
    struct recovery_batch batch = {.detail = detail};
    (void)snprintf(detail, sizeof(detail), "gave up after %u tests in %s: %s",
                   work->cause.tests + 1, duration_text(lasted_ms(&work->cause), lasted),
                   answer->detail);
    return give_up(work, &verdict, &batch, err);
}

/* Those that have waited as long as the policy allows end; the others go on waiting. */
static enum err_code end_patience(struct work *work, const struct test_answer *answer,
                                  struct err *err)
{
    char detail[DETAIL_SIZE];
    char waited[DURATION_SIZE];
    const struct recovery_verdict verdict = {.result = test_result_text(answer->result),
                                             .detail = answer->detail,
                                             .next_ms = work->due_ms};
    struct recovery_batch batch = {.detail = detail, .waited_ms = work->policy.max_elapsed_ms};
    (void)snprintf(detail, sizeof(detail), "gave up after waiting %s: %s",
                   duration_text(work->policy.max_elapsed_ms, waited), answer->detail);
    return give_up(work, &verdict, &batch, err);
}

/* ---- not yet -------------------------------------------------------------------------------- */

static int64_t next_pause_ms(const struct work *work)
{
    if (!work->has_policy)
        return PAUSE_WITHOUT_POLICY_MS;
    return policy_pause_ms(&work->policy, work->cause.tries + 1,
                           (uint32_t)random_below(UINT32_MAX));
}

static enum err_code on_not_yet(struct work *work, const struct test_answer *answer,
                                struct err *err)
{
    bool counts = answer->result == TEST_NOT_YET;
    bool gone = false;
    const struct recovery_verdict verdict = {.tests = 1,
                                             .tries = counts,
                                             .result = test_result_text(answer->result),
                                             .detail = answer->detail,
                                             .next_ms = next_pause_ms(work),
                                             .due_us = work->cause.next_us};
    if (counts && work->has_policy && policy_is_out_of_tries(&work->policy, work->cause.tries + 1))
        return end_all(work, answer, err);
    enum err_code rc = recovery_store_tested(work->site->test.store, work->lead, &work->cause.id,
                                             &verdict, &gone, err);
    if (rc)
        return rc;
    log_cause("recovery.tested", work, verdict.result, verdict.detail, 0);
    work->due_ms = gone ? HANDLE_GONE : verdict.next_ms;
    if (gone || !counts || !work->has_policy || work->policy.max_elapsed_ms == 0)
        return ERR_OK;
    return end_patience(work, answer, err);
}

/* ---- one cause ------------------------------------------------------------------------------ */

static enum err_code may_test(const struct work *work, bool *ret_may, struct err *err)
{
    char user[USER_SIZE] = "";
    enum err_code rc = ERR_OK;
    *ret_may = true;
    if (!test_goes_out(work->cause.tester))
        return ERR_OK;
    rc = recovery_store_user(work->site->test.store, &work->cause.id, user, err);
    if (rc == ERR_OK)
        *ret_may = work->gate->enter(work->gate->arg, user);
    return rc;
}

static enum err_code test(struct work *work, struct err *err)
{
    const struct recovery *cause = &work->cause;
    bool may = false;
    enum err_code rc = may_test(work, &may, err);
    if (rc || !may) {
        work->due_ms = HANDLE_LATER;
        return rc;
    }
    work->began_ms = clock_mono_ms();
    FAULT("recovery.blocked_seen");
    struct test_answer answer =
        test_run(&work->site->test, cause->tenant, cause->tester, cause->params);
    metric_count(&stat_tests, answer.result, 1);
    FAULT("recovery.tested");
    if (answer.result == TEST_CLEAR)
        return on_clear(work, &answer, err);
    if (answer.result == TEST_NEVER)
        return end_all(work, &answer, err);
    return on_not_yet(work, &answer, err);
}

/* What an operator wants, without a test. */
static enum err_code obey(struct work *work, struct err *err)
{
    char detail[DETAIL_SIZE];
    char lasted[DURATION_SIZE];
    const struct recovery *cause = &work->cause;
    bool release = strcmp(cause->asked, "release") == 0;
    const struct recovery_verdict verdict = {
        .result = "operator", .detail = cause->last_detail, .next_ms = rest_of_pause_ms(work)};
    struct recovery_batch batch = {
        .asked = true, .asked_us = cause->asked_us, .actor = cause->asked_by, .detail = detail};
    (void)snprintf(detail, sizeof(detail), "%s by %s after %s%s%s",
                   release ? "released" : "given up", cause->asked_by,
                   duration_text(lasted_ms(cause), lasted),
                   cause->last_detail[0] ? "; the last test said: " : "", cause->last_detail);
    if (release)
        return let_go(work, UINT32_MAX, &verdict, &batch, err);
    return give_up(work, &verdict, &batch, err);
}

/* Its jobs were cancelled: nobody waits, so nobody asks. */
static enum err_code drop(struct work *work, struct err *err)
{
    bool gone = false;
    const struct recovery_verdict verdict = {.result = "empty",
                                             .next_ms = work->site->cfg->recovery_first_test_ms,
                                             .due_us = work->cause.next_us};
    enum err_code rc = recovery_store_tested(work->site->test.store, work->lead, &work->cause.id,
                                             &verdict, &gone, err);
    work->due_ms = gone ? HANDLE_GONE : verdict.next_ms;
    return rc;
}

static void read_policy(struct work *work)
{
    struct err err = {0};
    work->has_policy = policy_parse(work->cause.policy, &work->policy, &err) == ERR_OK;
    if (!work->has_policy)
        log_err("recovery.policy.invalid", &err);
}

enum err_code handle_cause(const struct handle_site *site, const struct recovery_lead *lead,
                           const struct uuid *id, const struct handle_gate *gate,
                           int64_t *ret_due_ms, struct err *err)
{
    struct work work = {.site = site, .lead = lead, .gate = gate, .began_ms = clock_mono_ms()};
    enum err_code rc = recovery_store_get(site->test.store, lead->tenant, id, &work.cause, err);
    if (rc == ERR_NOT_FOUND) {
        err_clear(err);
        *ret_due_ms = HANDLE_GONE;
        return ERR_OK;
    }
    if (rc)
        return rc;
    if (work.cause.next_in_us > 0) {
        *ret_due_ms = work.cause.next_in_us / 1000 + 1;
        return ERR_OK;
    }
    read_policy(&work);
    if (work.cause.blocked == 0)
        rc = drop(&work, err);
    else
        rc = work.cause.asked[0] ? obey(&work, err) : test(&work, err);
    if (rc == ERR_OK)
        *ret_due_ms = work.due_ms;
    return rc;
}
