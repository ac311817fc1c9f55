/* SPDX-License-Identifier: MIT */
#include "webapp/why_text_internal.h"

#include "common/model/policy.h"

/* ---- the cause ------------------------------------------------------------------------------ */

/* "application lic version 1", "system west" */
static void add_thing(const struct job *job, struct buf *text)
{
    if (job->condition == JOB_COND_APPLICATION_UNAVAILABLE)
        buf_addf(text, "application %s version %s", job->app_id, job->app_version);
    else
        buf_addf(text, "system %s", job->system_id);
}

static void add_thing_cause(const struct why_facts *facts, struct buf *text)
{
    const struct why_held *held = facts->held;
    add_thing(facts->job, text);
    if (held->enabled) {
        buf_add_text(text,
                     " was disabled or missing when that was checked last, and is enabled now");
        return;
    }
    buf_add_text(text, held->exists ? " is disabled" : " was deleted");
    if (held->act.actor[0]) {
        buf_addf(text, ", by %s ", held->act.actor);
        why_add_span(text, held->act.age_us);
        buf_add_text(text, " ago");
    }
}

static void add_quota_cause(const struct why_facts *facts, struct buf *text)
{
    const struct why_held *held = facts->held;
    const struct job *job = facts->job;
    switch (held->scope) {
    case QUOTA_TENANT:
        buf_addf(text, "tenant %s", job->tenant);
        break;
    case QUOTA_OWNER:
        buf_addf(text, "user %s", job->owner);
        break;
    case QUOTA_SYSTEM:
        buf_addf(text, "system %s", job->system_id);
        break;
    default:
        buf_addf(text, "user %s, on system %s,", job->owner, job->system_id);
    }
    buf_addf(text, " has %u active job%s, and at most %u may be", held->use.active,
             why_plural(held->use.active), held->use.limit);
    if (facts->why->blocked.before > 0)
        buf_addf(text, "; %s%u job%s that wait%s for it before this one",
                 facts->why->blocked.before == 1 ? "there is " : "there are ",
                 facts->why->blocked.before, why_plural(facts->why->blocked.before),
                 facts->why->blocked.before == 1 ? "s" : "");
}

static void add_host_cause(const struct why_facts *facts, struct buf *text)
{
    why_add_meaning(facts, text);
    why_add_reason(facts, text);
    if (strstr(facts->job->reason, "Could not resolve host"))
        buf_add_text(text, ". That name has no address: most likely it is misspelt, else its name "
                           "service is away");
}

static void add_cause(const struct why_facts *facts, struct buf *text)
{
    if (facts->held && facts->held->has_thing)
        add_thing_cause(facts, text);
    else if (facts->held && facts->held->has_use)
        add_quota_cause(facts, text);
    else
        add_host_cause(facts, text);
}

/* ---- when it goes on ------------------------------------------------------------------------ */

static void add_release(const struct why_blocked *blocked, struct buf *text)
{
    buf_add_text(text, "; this has cleared, and the jobs that waited for it go on by and by");
    buf_addf(text, ": %u of them before this one, the next batch of at most %u in ",
             blocked->before, blocked->ramp);
    why_add_span(text, blocked->next_in_us);
}

static void add_check(const struct why_blocked *blocked, struct buf *text)
{
    if (blocked->next_in_us > 0) {
        buf_add_text(text, "; it is checked again in ");
        why_add_span(text, blocked->next_in_us);
    } else if (blocked->next_in_us > -5 * SECOND_US) {
        buf_add_text(text, "; it is being checked now");
    } else {
        buf_add_text(text, "; the check is overdue by ");
        why_add_span(text, -blocked->next_in_us);
        buf_add_text(text, ", so sluice-recovery may not be running");
    }
    if (blocked->tries > 0)
        buf_addf(text, " (%u failed check%s so far)", blocked->tries, why_plural(blocked->tries));
}

/* A job ends when it has waited for as long as the policy says, or after so many checks. */
static void add_patience(const struct why_facts *facts, struct buf *text)
{
    const struct why_blocked *blocked = &facts->why->blocked;
    struct policy policy;
    struct err err = {0};
    if (policy_parse(blocked->policy, &policy, &err) != ERR_OK)
        return;
    if (policy.max_elapsed_ms > 0) {
        buf_add_text(text, ". Unless that changes it is given up at ");
        why_add_clock(text, blocked->blocked_us + policy.max_elapsed_ms * 1000, facts->why->now_us);
        buf_add_text(text, ", after ");
        why_add_span(text, policy.max_elapsed_ms * 1000);
    } else if (policy.max_tries > 0) {
        buf_addf(text, ". Unless that changes it is given up after %u checks", policy.max_tries);
    }
}

static void add_last_release(const struct why_facts *facts, struct buf *text)
{
    const struct why_blocked *blocked = &facts->why->blocked;
    if (!blocked->released_by[0] || blocked->released_us > blocked->blocked_us)
        return;
    buf_addf(text, ". %s released it ", blocked->released_by);
    why_add_span(text, facts->why->now_us - blocked->released_us);
    buf_add_text(text, " ago, and it was held again ");
    why_add_span(text, blocked->blocked_us - blocked->released_us);
    buf_add_text(text, " later: the cause is the same");
}

/* ---- what can be done ----------------------------------------------------------------------- */

static void add_cancel_step(const struct why_facts *facts, struct buf *text, const char *what)
{
    char id[UUID_TEXT_SIZE];
    (void)uuid_text(&facts->job->id, id);
    next_step_add(text, facts->asker, next_step_role(facts->asker, facts->job->owner), what,
                  "sluice cancel %s", id);
}

static void step_for_app(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    if (facts->held && facts->held->enabled)
        return;
    if (facts->held && facts->held->exists)
        next_step_add(text, facts->asker, ROLE_ADMIN, "enable it", "sluice app enable %s %s",
                      job->app_id, job->app_version);
    else
        next_step_add(text, facts->asker, ROLE_ADMIN, "define it again",
                      "sluice app put %s %s FILE", job->app_id, job->app_version);
    if (facts->held && !facts->held->exists)
        add_cancel_step(facts, text, "cancel the job if it does not come back");
}

static void step_for_system(const struct why_facts *facts, struct buf *text)
{
    if (facts->held && facts->held->enabled)
        return;
    bool exists = facts->held && facts->held->exists;
    next_step_add(text, facts->asker, ROLE_ADMIN, exists ? "enable it" : "make it again",
                  exists ? "sluice system enable %s" : "sluice system put %s",
                  facts->job->system_id);
    if (!exists)
        add_cancel_step(facts, text, "cancel the job if it does not come back");
}

static void step_for_quota(const struct why_facts *facts, struct buf *text)
{
    const struct why_held *held = facts->held;
    const struct job *job = facts->job;
    buf_add_text(text, ". It goes on by itself when one of these ends");
    if (!held || !held->has_use)
        return;
    if (held->scope == QUOTA_TENANT || held->scope == QUOTA_OWNER)
        next_step_add(text, facts->asker, ROLE_ADMIN, "allow more", "sluice quota put '%s' %u",
                      held->scope == QUOTA_OWNER ? job->owner : QUOTA_TENANT_OWNER,
                      held->use.limit + 1);
    else
        next_step_add(text, facts->asker, ROLE_ADMIN, "allow more", "sluice system put %s --%s %u",
                      job->system_id,
                      held->scope == QUOTA_SYSTEM ? "max-active" : "max-active-per-owner",
                      held->use.limit + 1);
}

static void step_for_host(const struct why_facts *facts, struct buf *text)
{
    add_cancel_step(facts, text, "cancel it and submit it again if the address is wrong");
}

static void step_for_credentials(const struct why_facts *facts, struct buf *text)
{
    buf_add_text(text, ". The checks ask without credentials");
    add_cancel_step(facts, text,
                    "cancel it and submit it again if address or credentials are wrong");
}

static why_tell_fn *const steps[JOB_CONDITION_COUNT] = {
    [JOB_COND_APPLICATION_UNAVAILABLE] = step_for_app,
    [JOB_COND_SYSTEM_UNAVAILABLE] = step_for_system,
    [JOB_COND_QUOTA_EXCEEDED] = step_for_quota,
    [JOB_COND_CONNECTION_FAILED] = step_for_host,
    [JOB_COND_AUTHENTICATION_FAILED] = step_for_credentials,
};

void why_tell_blocked(const struct why_facts *facts, struct buf *text)
{
    const struct why_blocked *blocked = &facts->why->blocked;
    buf_add_text(text, "It is held");
    why_add_since(facts, text);
    buf_add_text(text, ": ");
    add_cause(facts, text);
    if (!facts->why->has_blocked) {
        buf_add_text(text, "; sluice-recovery puts right what it waits for");
        return;
    }
    if (blocked->ramp > 0) {
        add_release(blocked, text);
        return;
    }
    add_check(blocked, text);
    if (blocked->next_in_us <= -5 * SECOND_US)
        next_step_add(text, facts->asker, ROLE_ADMIN, "start it", "sluice-recovery");
    add_last_release(facts, text);
    add_patience(facts, text);
    if (steps[facts->job->condition])
        steps[facts->job->condition](facts, text);
}

void why_tell_paused(const struct why_facts *facts, struct buf *text)
{
    buf_add_text(text, "Somebody paused it, and it stays so until it is let go on");
    why_add_reason(facts, text);
}
