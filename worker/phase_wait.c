/* SPDX-License-Identifier: MIT */
#include "worker/run.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "worker/stats.h"

#define SHORT_RUN_MS 50      /* a run that ends within this has no commit of its own for RUNNING */
#define COMMIT_PAUSE_MS 1000 /* between tries to record RUNNING while the database is away */
#define KILL_PAUSE_MS 200

static void take_record(struct run *run)
{
    if (!run->exited) {
        slot_take_exit(run->slot, &run->record);
        run->exited = true;
    }
    FAULT("worker.child_ended");
    metric_observe_us(&stat_run, (int64_t)run->record.wall_ms * 1000);
}

static enum phase_result judge(struct run *run)
{
    run_judge(run);
    if (run->end.lost)
        return PHASE_LOST;
    return run->end.state == JOB_CANCELLED ? run_cancelled(run) : PHASE_DONE;
}

/* Asks the runner to end it; what it did is told by the exit record. A runner that has no such run
 * will tell nothing: its process died with the runner that had it. */
static enum phase_result kill_run(struct run *run, unsigned *io_mask)
{
    struct err err = {0};
    enum err_code rc = runner_link_kill(run->w->runner, &run->job->id, run->runner_fence,
                                        (int)run->w->cfg->worker_grace_ms, KILL_NOTE_CANCEL, &err);
    if (rc == ERR_OK) {
        *io_mask &= ~(unsigned)MAIL_CANCEL;
        log_event(LOG_INFO, "worker.job.cancelling", LOG_S("job", run->id_text));
        return PHASE_DONE;
    }
    log_err("worker.kill", &err);
    if (rc == ERR_NOT_FOUND)
        return run_cancelled(run);
    if (rc != ERR_FENCED)
        return run_pause(run, KILL_PAUSE_MS);
    (void)snprintf(run->end.reason, sizeof(run->end.reason), "%s", err.text);
    return PHASE_LOST;
}

/* What the row says of our claim: a database that lost its last commits knows nothing of it. One
 * that is away says nothing. */
static enum phase_result check_claim(const struct run *run)
{
    AUTO(job_free) struct job *now = NULL;
    struct err err = {0};
    enum err_code rc = job_store_get(run->w->store, NULL, &run->job->id, &now, &err);
    if (rc == ERR_OK && now->has_owner && uuid_eq(&now->owner_worker, &run->hold.worker) &&
        now->fence == run->hold.fence)
        return PHASE_DONE;
    return rc == ERR_OK || rc == ERR_NOT_FOUND ? PHASE_FENCED : PHASE_DONE;
}

static bool is_listed(const struct run *run, const struct runner_job *jobs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (uuid_eq(&jobs[i].job, &run->job->id) && jobs[i].fence == run->runner_fence)
            return true;
    }
    return false;
}

/* Another runner may be there, which does not know the run (its journal was unreadable, or is
 * gone): it would never tell its end. The process died with the runner that had it. */
static bool is_unknown(struct run *run)
{
    unsigned opened = runner_link_opened(run->w->runner);
    struct runner_job *jobs = NULL;
    size_t count = 0;
    struct err err = {0};
    if (opened == run->runner_opened || runner_link_list(run->w->runner, &jobs, &count, &err))
        return false;
    bool listed = is_listed(run, jobs, count);
    free(jobs);
    if (listed)
        run->runner_opened = opened;
    /* An end that was told meanwhile is on record. */
    if (listed || slot_mail(run->slot) & MAIL_EXITED)
        return false;
    log_event(LOG_WARN, "worker.run.unknown", LOG_S("job", run->id_text),
              LOG_U("fence", run->runner_fence));
    run->record = (struct runner_record){.job = run->job->id,
                                         .fence = run->runner_fence,
                                         .run = run->run,
                                         .exit_code = -1,
                                         .reason = RUNNER_RUNNER_LOST};
    run->exited = true;
    return true;
}

/* Records RUNNING once, while the run goes on; an away database is tried again later. From then on
 * the claim is looked at once per lease. */
static enum phase_result keep_record(struct run *run, int64_t *next_ms)
{
    struct err err = {0};
    bool recorded = run->note_count == 0;
    if (recorded) {
        *next_ms = clock_mono_ms() + run->w->cfg->fleet_lease_ms;
        return check_claim(run);
    }
    enum err_code rc = run_commit(run, &err);
    *next_ms = clock_mono_ms() + (rc ? COMMIT_PAUSE_MS : (int64_t)run->w->cfg->fleet_lease_ms);
    return rc == ERR_FENCED ? PHASE_FENCED : PHASE_DONE;
}

enum phase_result phase_wait(struct run *run)
{
    int64_t next_ms = clock_mono_ms() + SHORT_RUN_MS;
    unsigned mask = MAIL_EXITED | MAIL_CANCEL | MAIL_FENCED | MAIL_LEAVE;
    while (!run->exited) {
        unsigned mail = slot_wait(run->slot, mask, next_ms);
        if (mail & MAIL_EXITED)
            break;
        if (mail & MAIL_FENCED)
            return PHASE_FENCED;
        if (mail & MAIL_LEAVE)
            return PHASE_LEFT;
        if (mail & MAIL_CANCEL) {
            enum phase_result result = kill_run(run, &mask);
            if (result != PHASE_DONE)
                return result;
        }
        if (!mail && is_unknown(run))
            break;
        if (!mail && keep_record(run, &next_ms) == PHASE_FENCED)
            return PHASE_FENCED;
    }
    take_record(run);
    return judge(run);
}
