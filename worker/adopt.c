/* SPDX-License-Identifier: MIT */
#include "worker/adopt.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/model/retry.h"
#include "common/service/daemon.h"
#include "worker/run.h"
#include "worker/stats.h"

#define KILL_WAIT_MS 10000
#define KILL_LOOK_MS 20

static const struct retry claim_retry = {100, 2000};

bool adopt_judge(const struct job *job, const struct runner_job *found, bool former)
{
    if (!job || !job_state_is_active(job->status) || !job->has_owner)
        return false;
    /* The fence says that nobody has claimed it since; and if somebody has, it may have been a
     * former incarnation of ours that ended before it told the runner. */
    return job->fence == found->fence || (former && job->fence > found->fence);
}

/* Ends a run that is not ours to go on with, and removes what it left. */
static void discard(struct worker *w, const struct runner_job *found)
{
    char id[UUID_TEXT_SIZE];
    char dir[RUNNER_DIR_SIZE];
    struct err err = {0};
    int64_t until_ms = clock_mono_ms() + KILL_WAIT_MS;
    log_event(LOG_WARN, "worker.run.discarded", LOG_S("job", uuid_text(&found->job, id)),
              LOG_U("fence", found->fence), LOG_B("ran", !found->exited));
    if (!found->exited)
        best_effort(
            runner_link_kill(w->runner, &found->job, found->fence, 0, KILL_NOTE_FENCED, &err));
    enum err_code rc = ERR_STATE;
    while (rc == ERR_STATE && clock_mono_ms() < until_ms) {
        err_clear(&err);
        rc = runner_link_forget(w->runner, &found->job, found->fence, &err);
        if (rc == ERR_STATE && daemon_sleep_until(clock_mono_ms() + KILL_LOOK_MS))
            break;
    }
    if (rc == ERR_OK)
        best_effort(fs_remove_tree(w->work_fd, runner_job_dir(&found->job, found->run, dir), &err));
    else
        log_err("worker.run.kept", &err);
}

static bool is_former(const struct worker_row *rows, size_t count, const struct job *job)
{
    for (size_t i = 0; i < count; i++) {
        if (job && job->has_owner && uuid_eq(&rows[i].id, &job->owner_worker))
            return true;
    }
    return false;
}

/* Former incarnations, among them those that are live by their row. */
struct formers {
    struct worker_row *rows;
    size_t count;
};

/* One try. *ret_run stays NULL when the run is not to be gone on with. */
static enum err_code claim_one(struct worker *w, const struct runner_job *found,
                               const struct formers *formers, struct run **ret_run, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    enum err_code rc = job_store_get(w->store, NULL, &found->job, &job, err);
    if (rc == ERR_NOT_FOUND)
        return ERR_OK;
    if (rc)
        return rc;
    if (!adopt_judge(job, found, is_former(formers->rows, formers->count, job)))
        return ERR_OK;
    struct run *run = malloc(sizeof(*run));
    if (!run)
        return err_set(err, ERR_NOMEM, "no memory for a run");
    run_open(run, w, NULL, &job);
    run_found(run, found);
    rc = run_claim(run, true, false, "adopted by the next worker of this name", err);
    if (rc == ERR_OK) {
        *ret_run = run;
        return ERR_OK;
    }
    run_close(run);
    free(run);
    return rc;
}

static enum err_code take_one(struct worker *w, const struct runner_job *found,
                              const struct formers *formers, struct err *err)
{
    struct run *run = NULL;
    for (uint32_t tries = 1;; tries++) {
        err_clear(err);
        enum err_code rc = claim_one(w, found, formers, &run, err);
        if (rc == ERR_OK)
            break;
        if (tries > 1)
            log_err("worker.adopt.waits", err);
        if (daemon_sleep_until(clock_mono_ms() + retry_pause_ms(&claim_retry, tries)))
            return err_set(err, ERR_STOPPING, "stopped while adopting");
    }
    err_clear(err);
    if (run)
        slots_adopt(w->slots, run, &run->job->id, run->hold.fence);
    else
        discard(w, found);
    return ERR_OK;
}

enum err_code adopt_all(struct worker *w, const struct runner_job *found, size_t count,
                        struct err *err)
{
    struct formers formers = {0};
    enum err_code rc = ERR_OK;
    if (count == 0)
        return ERR_OK;
    do {
        err_clear(err);
        rc = worker_store_former(w->store, &w->home, &formers.rows, &formers.count, err);
    } while (rc == ERR_DB_AWAY && !daemon_sleep_until(clock_mono_ms() + KILL_LOOK_MS));
    for (size_t i = 0; i < count && rc == ERR_OK; i++)
        rc = take_one(w, &found[i], &formers, err);
    free(formers.rows);
    return rc;
}

void adopt_drive(struct worker *w, struct slot *slot, void *adopted)
{
    struct run *run = adopted;
    (void)w;
    run->slot = slot;
    log_set_request(run->id_text);
    (void)run_drive(run);
    slot_release_job(slot);
    run_close(run);
    free(run);
}
