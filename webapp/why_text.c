/* SPDX-License-Identifier: MIT */
#include "webapp/why_text_internal.h"

#include <inttypes.h>
#include <time.h>

/* "3.2 s", "5 min", "2 h 10 min", "4 d 3 h" */
void why_add_span(struct buf *text, int64_t us)
{
    int64_t s = us > 0 ? us / SECOND_US : 0;
    if (s < 10)
        buf_addf(text, "%.1f s", us > 0 ? (double)us / 1e6 : 0.0);
    else if (s < 120)
        buf_addf(text, "%" PRId64 " s", s);
    else if (s < 7200)
        buf_addf(text, "%" PRId64 " min", s / 60);
    else if (s < 2 * 86400)
        buf_addf(text, "%" PRId64 " h %" PRId64 " min", s / 3600, s % 3600 / 60);
    else if (s % 86400 < 3600)
        buf_addf(text, "%" PRId64 " d", s / 86400);
    else
        buf_addf(text, "%" PRId64 " d %" PRId64 " h", s / 86400, s % 86400 / 3600);
}

void why_add_clock(struct buf *text, int64_t at_us, int64_t now_us)
{
    const int64_t day_us = 86400 * SECOND_US;
    const time_t at_s = (time_t)(at_us / SECOND_US);
    char clock[24];
    struct tm at;
    bool today = at_us / day_us == now_us / day_us;
    if (gmtime_r(&at_s, &at) &&
        strftime(clock, sizeof(clock), today ? "%H:%M:%S" : "%Y-%m-%d %H:%M", &at) > 0)
        buf_addf(text, "%s UTC", clock);
}

void why_add_since(const struct why_facts *facts, struct buf *text)
{
    if (facts->why->since_us == 0)
        return;
    buf_add_text(text, " for ");
    why_add_span(text, facts->why->now_us - facts->why->since_us);
}

/* A sentence of the table of conditions becomes a part of ours: without its full stop and capital.
 */
void why_add_condition(enum job_condition condition, struct buf *text)
{
    const char *meaning = job_condition_meaning(condition);
    size_t length = strlen(meaning);
    if (length == 0)
        return;
    char first =
        (char)(meaning[0] >= 'A' && meaning[0] <= 'Z' ? meaning[0] + ('a' - 'A') : meaning[0]);
    (void)buf_add(text, &first, 1);
    (void)buf_add(text, meaning + 1, length - 1 - (meaning[length - 1] == '.'));
}

void why_add_meaning(const struct why_facts *facts, struct buf *text)
{
    why_add_condition(facts->job->condition, text);
}

void why_add_plain_reason(const struct why_facts *facts, struct buf *text)
{
    const char *reason = facts->job->reason;
    size_t length = strlen(reason);
    if (length > 0)
        (void)buf_add(text, reason, length - (reason[length - 1] == '.'));
}

void why_add_reason(const struct why_facts *facts, struct buf *text)
{
    if (!facts->job->reason[0])
        return;
    buf_add_text(text, " (");
    why_add_plain_reason(facts, text);
    buf_add_text(text, ")");
}

const char *why_plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

void why_add_job_step(const struct why_facts *facts, struct buf *text, const char *what,
                      const char *verb)
{
    char id[UUID_TEXT_SIZE];
    next_step_add(text, facts->asker, next_step_role(facts->asker, facts->job->owner), what,
                  "sluice %s %s", verb, uuid_text(&facts->job->id, id));
}

static why_tell_fn *const tellers[JOB_STATE_COUNT] = {
    [JOB_PENDING] = why_tell_active,        [JOB_PROCESSING_INPUTS] = why_tell_active,
    [JOB_STAGING_INPUTS] = why_tell_active, [JOB_STAGING_JOB] = why_tell_active,
    [JOB_SUBMITTING_JOB] = why_tell_active, [JOB_QUEUED] = why_tell_active,
    [JOB_RUNNING] = why_tell_active,        [JOB_ARCHIVING] = why_tell_active,
    [JOB_BLOCKED] = why_tell_blocked,       [JOB_PAUSED] = why_tell_paused,
    [JOB_FINISHED] = why_tell_finished,     [JOB_CANCELLED] = why_tell_cancelled,
    [JOB_FAILED] = why_tell_failed,
};

void why_tell(const struct why_facts *facts, struct buf *text)
{
    tellers[facts->job->status](facts, text);
    if (facts->job->status == JOB_FAILED && facts->job->condition == JOB_COND_POISON)
        why_add_poison(facts, text);
    buf_add_text(text, ".");
}
