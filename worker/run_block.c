/* SPDX-License-Identifier: MIT */
#include "worker/run_block.h"

#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/model/retry.h"
#include "common/service/cause.h"
#include "worker/stats.h"

#include <jansson.h>

static const struct retry block_retry = {100, 5000};

struct why { /* the texts that a block points to */
    const struct run *run;
    char params[BLOCK_PARAMS_SIZE];
    char detail[JOB_REASON_SIZE];
};

/* Sorted and without blanks: equal causes are equal texts. Takes the reference. */
static void set_params(struct why *why, json_t *take_params)
{
    size_t length = json_dumpb(take_params, why->params, sizeof(why->params) - 1,
                               JSON_COMPACT | JSON_SORT_KEYS);
    why->params[length < sizeof(why->params) ? length : 0] = 0;
    json_decref(take_params);
}

/* What became of a try to block the job; DONE: try again. */
static enum phase_result after_try(struct run *run, enum err_code rc, uint32_t tries,
                                   const struct err *err)
{
    if (rc == ERR_FENCED)
        return PHASE_FENCED;
    if (rc == ERR_STATE)
        return run_cancelled(run);
    if (tries == 1)
        log_err("worker.block.waits", err);
    return run_pause(run, retry_pause_ms(&block_retry, tries));
}

static enum phase_result given_up(struct run *run, const char *condition, const char *detail,
                                  const struct uuid *recovery)
{
    metric_count(&stat_blocks, 0, 1);
    log_event(LOG_INFO, "worker.job.blocked", LOG_S("job", run->id_text),
              LOG_S("condition", condition), LOG_S("detail", detail),
              LOG_U("fence", run->hold.fence));
    cause_wake(run->w->publisher, run->job->tenant, recovery);
    return PHASE_BLOCKED;
}

static enum phase_result block_for(struct run *run, enum job_condition condition,
                                   const struct why *why)
{
    struct job_block block = cause_block(run->w->cfg, condition, why->params, why->detail);
    run->note_count = 0; /* what is not on record was not reached */
    for (uint32_t tries = 1;; tries++) {
        struct err err = {0};
        struct uuid recovery;
        enum err_code rc =
            job_store_block(run->w->store, &run->hold, run->job->status, &block, &recovery, &err);
        if (rc == ERR_OK)
            return given_up(run, job_condition_text(condition), why->detail, &recovery);
        enum phase_result result = after_try(run, rc, tries, &err);
        if (result != PHASE_DONE)
            return result;
    }
}

/* ---- application and system ------------------------------------------------------------------ */

enum err_code run_look(struct run *run, struct err *err)
{
    return job_store_gate(run->w->store, &run->job->id, &run->gate, err);
}

bool run_is_gated(const struct run *run)
{
    return run->gate.app_off || run->gate.system_off || job_gate_has_limits(&run->gate);
}

static enum phase_result check_enabled(struct run *run)
{
    const struct job *job = run->job;
    struct why why = {.run = run};
    if (run->gate.app_off) {
        (void)cause_app_params(job->app_id, job->app_version, why.params);
        (void)snprintf(why.detail, sizeof(why.detail),
                       "application %s version %s is disabled, or is no longer there", job->app_id,
                       job->app_version);
        return block_for(run, JOB_COND_APPLICATION_UNAVAILABLE, &why);
    }
    if (run->gate.system_off) {
        (void)cause_system_params(job->system_id, why.params);
        (void)snprintf(why.detail, sizeof(why.detail),
                       "system %s is disabled, or is no longer there", job->system_id);
        return block_for(run, JOB_COND_SYSTEM_UNAVAILABLE, &why);
    }
    return PHASE_DONE;
}

enum phase_result run_gate_again(struct run *run)
{
    for (uint32_t tries = 1;; tries++) {
        struct err err = {0};
        if (run_look(run, &err) == ERR_OK)
            return check_enabled(run);
        if (tries == 1)
            log_err("worker.gate.waits", &err);
        enum phase_result result = run_pause(run, retry_pause_ms(&block_retry, tries));
        if (result != PHASE_DONE)
            return result;
    }
}

/* ---- quotas ---------------------------------------------------------------------------------- */

static void quota_detail(const struct job *job, const struct quota_over *over, struct why *why)
{
    const char *format[] = {
        [QUOTA_TENANT] = "the tenant",
        [QUOTA_OWNER] = "this user",
        [QUOTA_SYSTEM] = "this system",
        [QUOTA_SYSTEM_OWNER] = "this user on this system",
    };
    bool on = over->scope == QUOTA_SYSTEM || over->scope == QUOTA_SYSTEM_OWNER;
    (void)snprintf(why->detail, sizeof(why->detail), "%s%s%s: %u jobs are active, %u may be",
                   format[over->scope], on ? ", " : "", on ? job->system_id : "", over->active,
                   over->limit);
}

static struct quota_key key_of(const struct job *job, enum quota_scope scope)
{
    return (struct quota_key){
        .tenant = job->tenant, .scope = scope, .owner = job->owner, .system_id = job->system_id};
}

static void block_by_quota(void *arg, const struct quota_over *over, struct job_block *ret_block)
{
    struct why *why = arg;
    const struct quota_key key = key_of(why->run->job, over->scope);
    (void)cause_quota_params(&key, why->params);
    quota_detail(why->run->job, over, why);
    *ret_block = cause_block(why->run->w->cfg, JOB_COND_QUOTA_EXCEEDED, why->params, why->detail);
}

static enum phase_result ask_for_room(struct run *run)
{
    const struct job *job = run->job;
    struct why why = {.run = run};
    const struct job_admission admission = {
        .hold = &run->hold,
        .from = job->status,
        .whose = key_of(job, QUOTA_TENANT),
        .block = block_by_quota,
        .arg = &why,
    };
    for (uint32_t tries = 1;; tries++) {
        struct err err = {0};
        struct uuid recovery;
        bool admitted = false;
        enum err_code rc = job_store_admit(run->w->store, &admission, &admitted, &recovery, &err);
        if (rc == ERR_OK && admitted)
            return PHASE_DONE;
        if (rc == ERR_OK)
            return given_up(run, job_condition_text(JOB_COND_QUOTA_EXCEEDED), why.detail,
                            &recovery);
        enum phase_result result = after_try(run, rc, tries, &err);
        if (result != PHASE_DONE)
            return result;
    }
}

enum phase_result run_gate(struct run *run)
{
    enum phase_result result = check_enabled(run);
    if (result == PHASE_DONE && job_gate_has_limits(&run->gate))
        result = ask_for_room(run);
    return result;
}

void run_tell_room(struct run *run)
{
    const struct quota_key whose = key_of(run->job, QUOTA_TENANT);
    struct err err = {0};
    if (run->adopted) /* it was let in by another worker */
        best_effort(run_look(run, &err));
    if (job_gate_has_limits(&run->gate))
        cause_tell_room(run->w->store, run->w->publisher, &whose);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

enum phase_result run_block_input(struct run *run, const struct fetch_cause *cause,
                                  const struct err *reason)
{
    struct why why = {.run = run};
    if (cause->condition == JOB_COND_CONNECTION_FAILED)
        set_params(&why, json_pack("{s:s,s:i}", "host", cause->host, "port", (int)cause->port));
    else
        set_params(&why, json_pack("{s:s}", "url", cause->url));
    (void)snprintf(why.detail, sizeof(why.detail), "%s", reason->text);
    return block_for(run, cause->condition, &why);
}

/* ---- afterwards ------------------------------------------------------------------------------ */

void run_blocked(struct run *run)
{
    run_remove_dir(run);
    slot_settle(run->slot, BUS_ACK);
    FAULT("worker.acknowledged");
}
