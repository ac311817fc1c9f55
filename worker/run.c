/* SPDX-License-Identifier: MIT */
#include "worker/run.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/model/retry.h"
#include "worker/run_block.h"
#include "worker/stats.h"

static const struct phase phases[] = {
#define PHASE(state, function) {JOB_##state, phase_##function},
#include "worker/phase.def"
#undef PHASE
};

static const struct retry commit_retry = {100, 5000};

static void set_run(struct run *run, uint64_t number)
{
    run->run = number;
    (void)runner_job_dir(&run->job->id, number, run->dir);
    (void)snprintf(run->home, sizeof(run->home), "%.900s/%s", run->w->work_dir, run->dir);
}

static enum phase_result read_request(struct run *run)
{
    struct err err = {0};
    if (run->request)
        return PHASE_DONE;
    enum err_code rc = job_request_parse(sv_of(run->job->request), &run->request, &err);
    if (rc == ERR_OK && run->request->command.count == 0)
        rc = err_set(&err, ERR_INVALID, "the stored request has no command");
    if (rc == ERR_OK)
        return PHASE_DONE;
    job_request_free(TAKE(run->request));
    return run_fail(run, JOB_COND_REQUEST_INVALID, &err);
}

void run_open(struct run *ret_run, struct worker *w, struct slot *slot, struct job **take_job)
{
    struct run *run = ret_run;
    *run = (struct run){.w = w, .slot = slot, .job = TAKE(*take_job)};
    run->hold = (struct job_hold){.id = run->job->id,
                                  .worker = w->id,
                                  .fence = run->job->fence,
                                  .tenant = run->job->tenant,
                                  .epoch = run->job->epoch};
    (void)uuid_text(&run->job->id, run->id_text);
    set_run(run, run->job->fence);
    /* What cannot be read is read again, and judged, by the walk. */
    (void)read_request(run);
    run->end = (struct outcome){0};
}

void run_looked(struct run *run, const struct job_gate *gate)
{
    run->gate = *gate;
    run->looked = true;
}

void run_found(struct run *run, const struct runner_job *found)
{
    run->adopted = true;
    run->started = true;
    run->runner_fence = found->fence;
    run->exited = found->exited;
    run->started_us = found->started_boot_us;
    run->record = found->record;
    set_run(run, found->run);
}

void run_close(struct run *run)
{
    environment_free(&run->environment);
    job_request_free(run->request);
    job_free(run->job);
    *run = (struct run){0};
}

bool run_has_remote_inputs(const struct run *run)
{
    for (size_t i = 0; i < run->request->input_count; i++) {
        if (run->request->inputs[i].source_url)
            return true;
    }
    return false;
}

/* The state that is recorded or noted last. */
static enum job_state reached(const struct run *run)
{
    return run->note_count ? run->notes[run->note_count - 1].to : run->job->status;
}

void run_note(struct run *run, enum job_state state)
{
    /* A job that is run again keeps the state that it had reached: history does not go back. */
    if (state > reached(run) && run->note_count < JOB_MOVES_MAX)
        run->notes[run->note_count++] = (struct job_move){.to = state};
}

/* The last state that the claim itself may record: those before it cost no time. */
static enum job_state claimed_up_to(const struct run *run)
{
    if (!run->request || run->adopted)
        return run->job->status;
    if (run_is_gated(run))
        return JOB_PROCESSING_INPUTS;
    return run_has_remote_inputs(run) ? JOB_STAGING_INPUTS : JOB_SUBMITTING_JOB;
}

static void plan_claim(struct run *run, const struct job_move *first, struct job_claim *ret_claim)
{
    const struct job *job = run->job;
    run->looked = false; /* another claim looks again */
    run->note_count = 0;
    run->notes[run->note_count++] = *first;
    enum job_state last = claimed_up_to(run);
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        if (phases[i].state <= last)
            run_note(run, phases[i].state);
    }
    *ret_claim = (struct job_claim){
        .id = job->id,
        .epoch = job->epoch,
        .worker = run->w->id,
        .from_fence = job->fence,
        .tenant = job->tenant,
        .from = job->status,
        .moves = run->notes,
        .move_count = run->note_count,
    };
}

void run_plan_claim(struct run *run, struct job_claim *ret_claim)
{
    const struct job_move first = {.to = run->job->status, .kind = "claimed"};
    plan_claim(run, &first, ret_claim);
}

void run_claimed(struct run *run, const struct job_claim *claim, uint64_t fence)
{
    struct job *job = run->job;
    job->status = reached(run);
    job->has_owner = true;
    job->owner_worker = run->w->id;
    job->losses += claim->charge_loss;
    job->fence = fence;
    run->hold.fence = fence;
    if (run->slot)
        slot_set_fence(run->slot, fence);
    if (!run->adopted)
        set_run(run, fence);
    log_event(LOG_INFO, "worker.job.claimed", LOG_S("job", run->id_text),
              LOG_S("how", claim->moves[0].kind), LOG_U("fence", fence),
              LOG_S("state", job_state_text(job->status)));
    run->note_count = 0;
}

enum err_code run_claim(struct run *run, bool from_owner, bool charge_loss, const char *detail,
                        struct err *err)
{
    const struct job_move first = {.to = run->job->status,
                                   .kind = charge_loss  ? "lost"
                                           : from_owner ? "taken_over"
                                                        : "claimed",
                                   .detail = detail};
    struct job_claim claim;
    enum err_code rc = run->adopted || run->looked ? ERR_OK : run_look(run, err);
    if (rc)
        return rc;
    plan_claim(run, &first, &claim);
    claim.from_worker = from_owner ? &run->job->owner_worker : NULL;
    claim.charge_loss = charge_loss;
    uint64_t fence = 0;
    int64_t start_us = clock_mono_us();
    rc = job_writer_claim(run->w->writer, &claim, &fence, err);
    if (rc == ERR_OK) {
        metric_observe_us(&stat_claim, clock_mono_us() - start_us);
        run_claimed(run, &claim, fence);
    }
    run->note_count = 0;
    return rc;
}

static uint64_t us_since(int64_t boot_us)
{
    int64_t now_us = clock_boot_us();
    return now_us > boot_us ? (uint64_t)(now_us - boot_us) : 0;
}

enum err_code run_commit(struct run *run, struct err *err)
{
    if (run->note_count == 0)
        return ERR_OK;
    for (size_t i = 0; i < run->note_count && run->started_us; i++)
        run->notes[i].ago_us = us_since(run->started_us);
    enum err_code rc = job_writer_move(run->w->writer, &run->hold, run->job->status,
                                       (struct job_moves){run->notes, run->note_count}, NULL, err);
    if (rc == ERR_OK) {
        run->job->status = reached(run);
        run->note_count = 0;
    }
    return rc;
}

enum phase_result run_commit_now(struct run *run)
{
    for (uint32_t tries = 1;; tries++) {
        struct err err = {0};
        enum err_code rc = run_commit(run, &err);
        if (rc == ERR_OK)
            return PHASE_DONE;
        if (rc == ERR_FENCED)
            return PHASE_FENCED;
        if (tries == 1)
            log_err("worker.job.commit", &err);
        enum phase_result result = run_pause(run, retry_pause_ms(&commit_retry, tries));
        if (result != PHASE_DONE)
            return result;
    }
}

static enum phase_result result_of(unsigned mail)
{
    if (mail & MAIL_FENCED)
        return PHASE_FENCED;
    return mail & MAIL_LEAVE ? PHASE_LEFT : PHASE_DONE;
}

enum phase_result run_pause(struct run *run, int64_t pause_ms)
{
    return result_of(slot_wait(run->slot, MAIL_FENCED | MAIL_LEAVE, clock_mono_ms() + pause_ms));
}

enum phase_result run_interrupted(struct run *run)
{
    unsigned mail = slot_mail(run->slot);
    enum phase_result result = result_of(mail);
    if (result == PHASE_DONE && mail & MAIL_CANCEL)
        return run_cancelled(run);
    return result;
}

enum phase_result run_cancelled(struct run *run)
{
    AUTO(job_free) struct job *now = NULL;
    struct err err = {0};
    const char *who = "";
    if (job_store_get(run->w->store, NULL, &run->job->id, &now, &err) == ERR_OK)
        who = now->cancel_by;
    run->end = (struct outcome){.state = JOB_CANCELLED, .condition = JOB_COND_CANCELLED_BY_USER};
    (void)snprintf(run->end.reason, sizeof(run->end.reason), "cancelled%s%s", who[0] ? " by " : "",
                   who);
    return PHASE_ENDED;
}

/* The run is ours by the database; now the runner is told its new fence. */
static enum phase_result adopt_run(struct run *run)
{
    for (uint32_t tries = 1;; tries++) {
        struct err err = {0};
        struct runner_job held = {0};
        enum err_code rc = runner_link_adopt(run->w->runner, &run->job->id, run->runner_fence,
                                             run->hold.fence, &held, &err);
        if (rc == ERR_OK) {
            run->runner_fence = run->hold.fence;
            run->exited = held.exited;
            run->record = held.record;
            metric_count(&stat_adopted_runs, 0, 1);
            return PHASE_DONE;
        }
        if (rc == ERR_NOT_FOUND || rc == ERR_FENCED) {
            (void)snprintf(run->end.reason, sizeof(run->end.reason), "%s", err.text);
            return PHASE_LOST;
        }
        enum phase_result result = run_pause(run, retry_pause_ms(&commit_retry, tries));
        if (result != PHASE_DONE)
            return result;
    }
}

static enum phase_result walk(struct run *run)
{
    enum phase_result result = run_interrupted(run);
    if (run->adopted && result == PHASE_ENDED)
        result = PHASE_DONE; /* it has a process: the phase that waits for it ends it */
    if (!run->adopted && result == PHASE_DONE)
        result = run_step(run, read_request);
    if (run->adopted && result == PHASE_DONE && run->runner_fence != run->hold.fence)
        result = adopt_run(run);
    if (!run->adopted && result == PHASE_DONE)
        result = run_gate(run);
    for (size_t i = 0; i < ARRAY_LEN(phases) && result == PHASE_DONE; i++) {
        if (run->adopted && phases[i].state < JOB_RUNNING)
            continue;
        run_note(run, phases[i].state);
        result = run_step(run, phases[i].step);
    }
    return result;
}

static bool poisoned(struct run *run)
{
    if (run->job->losses < run->w->cfg->worker_max_losses)
        return false;
    run->end = (struct outcome){.state = JOB_FAILED, .condition = JOB_COND_POISON};
    (void)snprintf(run->end.reason, sizeof(run->end.reason),
                   "lost %u times with the worker that ran it; the limit is %u", run->job->losses,
                   run->w->cfg->worker_max_losses);
    return true;
}

bool run_drive(struct run *run)
{
    enum phase_result result = PHASE_DONE;
    if (run->job->cancel_requested) /* of its former owner: nothing is to be started any more */
        (void)slots_post(run->w->slots, &run->job->id, MAIL_CANCEL);
    for (;;) {
        result = poisoned(run) ? PHASE_ENDED : walk(run);
        if (result == PHASE_LOST) {
            result = run_lose(run);
            if (result == PHASE_DONE)
                continue;
        }
        if (result == PHASE_DONE || result == PHASE_ENDED)
            result = run_finish(run);
        break;
    }
    if (result == PHASE_FENCED)
        run_drop(run);
    else if (result == PHASE_LEFT)
        run_leave(run);
    else if (result == PHASE_BLOCKED)
        run_blocked(run);
    return result != PHASE_FENCED;
}
