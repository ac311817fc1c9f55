/* SPDX-License-Identifier: MIT */
#include "worker/adopt.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/model/retry.h"
#include "common/service/daemon.h"
#include "worker/run.h"
#include "worker/stats.h"

#define KILL_WAIT_MS 10000
#define LOOK_MS 20

static const struct retry claim_retry = {100, 2000};

bool adopt_judge(const struct job *job, const struct runner_job *found, bool former)
{
    if (!job || !job_state_is_active(job->status) || !job->has_owner)
        return false;
    /* The fence says that nobody has claimed it since; and if somebody has, it may have been a
     * former incarnation of ours that ended before it told the runner. */
    return job->fence == found->fence || (former && job->fence > found->fence);
}

static bool is_former(const struct worker_row *rows, size_t count, const struct job *job)
{
    for (size_t i = 0; i < count; i++) {
        if (job && job->has_owner && uuid_eq(&rows[i].id, &job->owner_worker))
            return true;
    }
    return false;
}

/* Former incarnations that are live by their row. */
struct formers {
    struct worker_row *rows;
    size_t count;
};

/* Reads as often as the database is away. */
static enum err_code read_formers(struct worker *w, struct formers *ret, struct err *err)
{
    enum err_code rc = ERR_OK;
    do {
        err_clear(err);
        rc = worker_store_former(w->store, &w->home, &ret->rows, &ret->count, err);
    } while (rc == ERR_DB_AWAY && !daemon_sleep_until(clock_mono_ms() + LOOK_MS));
    return rc;
}

enum err_code adopt_formers(struct worker *w, struct uuid **ret_ids, size_t *ret_count,
                            struct err *err)
{
    struct formers formers = {0};
    enum err_code rc = w->found_count ? read_formers(w, &formers, err) : ERR_OK;
    struct uuid *ids = rc ? NULL : calloc(formers.count + 1, sizeof(*ids));
    size_t count = 0;
    if (rc == ERR_OK && !ids)
        rc = err_set(err, ERR_NOMEM, "no memory for %zu former incarnations", formers.count);
    for (size_t i = 0; rc == ERR_OK && i < formers.count; i++) {
        if (!uuid_eq(&formers.rows[i].id, &w->id))
            ids[count++] = formers.rows[i].id;
    }
    free(formers.rows);
    if (rc)
        return rc;
    *ret_ids = ids;
    *ret_count = count;
    return ERR_OK;
}

static enum err_code read_job(struct worker *w, const struct runner_job *found,
                              struct job **ret_job, struct err *err)
{
    for (uint32_t tries = 1;; tries++) {
        err_clear(err);
        enum err_code rc = job_store_get(w->store, NULL, &found->job, ret_job, err);
        if (rc == ERR_OK || rc == ERR_NOT_FOUND)
            return ERR_OK;
        if (tries > 1)
            log_err("worker.adopt.waits", err);
        if (daemon_sleep_until(clock_mono_ms() + retry_pause_ms(&claim_retry, tries)))
            return err_set(err, ERR_STOPPING, "stopped while adopting");
    }
}

enum err_code adopt_end_strangers(struct worker *w, struct err *err)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < w->found_count && rc == ERR_OK; i++) {
        const struct runner_job *found = &w->found[i];
        AUTO(job_free) struct job *job = NULL;
        struct err ignored = {0};
        if (found->exited)
            continue;
        rc = read_job(w, found, &job, err);
        if (rc == ERR_OK && !(job && job->has_owner && heart_keeps(w->heart, &job->owner_worker)))
            best_effort(runner_link_kill(w->runner, &found->job, found->fence, 0, KILL_NOTE_FENCED,
                                         &ignored));
    }
    return rc;
}

/* ---- adoption ------------------------------------------------------------------------------- */

enum adoption {
    ADOPT_LATER, /* the database or the row is not to be had now */
    ADOPT_DONE,
    ADOPT_NOT,      /* not to be gone on with: the job is another's, or has ended */
    ADOPT_NOT_OURS, /* likewise, and the job is free for all as soon as we say that it is not ours
                     */
};

/* One try. */
static enum adoption claim_one(struct worker *w, const struct runner_job *found,
                               const struct formers *formers, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    enum err_code rc = job_store_get(w->store, NULL, &found->job, &job, err);
    if (rc == ERR_NOT_FOUND)
        return ADOPT_NOT;
    if (rc)
        return ADOPT_LATER;
    bool former = is_former(formers->rows, formers->count, job);
    if (!adopt_judge(job, found, former))
        return former && job_state_is_active(job->status) ? ADOPT_NOT_OURS : ADOPT_NOT;
    struct run *run = malloc(sizeof(*run));
    if (!run) {
        (void)err_set(err, ERR_NOMEM, "no memory for a run");
        return ADOPT_LATER;
    }
    run_open(run, w, NULL, &job);
    run_found(run, found);
    rc = run_claim(run, true, false, "adopted by the next worker of this name", err);
    if (rc == ERR_OK) {
        slots_adopt(w->slots, run, &run->job->id, run->hold.fence);
        return ADOPT_DONE;
    }
    run_close(run);
    free(run);
    return ADOPT_LATER;
}

static void discard_run(struct worker *w, const struct runner_job *found)
{
    char id[UUID_TEXT_SIZE];
    log_event(LOG_WARN, "worker.run.discarded", LOG_S("job", uuid_text(&found->job, id)),
              LOG_U("fence", found->fence), LOG_B("ran", !found->exited));
    discard_add(w->discard, found);
}

/* One try for each that is left; a row that somebody holds does not stop the others. */
static size_t adopt_round(struct worker *w, const struct formers *formers, bool *done,
                          bool *io_opens, bool tell)
{
    size_t left = 0;
    for (size_t i = 0; i < w->found_count; i++) {
        struct err err = {0};
        if (done[i])
            continue;
        enum adoption adoption = claim_one(w, &w->found[i], formers, &err);
        if (adoption == ADOPT_LATER && tell)
            log_err("worker.adopt.waits", &err);
        if (adoption == ADOPT_LATER) {
            left++;
            continue;
        }
        done[i] = true;
        *io_opens = *io_opens || adoption == ADOPT_NOT_OURS;
        if (adoption != ADOPT_DONE)
            discard_run(w, &w->found[i]);
    }
    return left;
}

/* Until the runner has answered a ping, it may let the runs live for as long as a former
 * incarnation had said, which may be longer than our row lets others wait. */
static enum err_code await_grant(struct worker *w, struct err *err)
{
    while (!runner_link_granted(w->runner) && !atomic_load(&w->fenced)) {
        if (daemon_sleep_until(clock_mono_ms() + LOOK_MS))
            return err_set(err, ERR_STOPPING, "stopped while the runner did not answer");
    }
    return ERR_OK;
}

static enum err_code adopt_each(struct worker *w, bool *done, struct err *err)
{
    struct formers formers = {0};
    bool opens = false;
    enum err_code rc = read_formers(w, &formers, err);
    for (uint32_t tries = 1; rc == ERR_OK; tries++) {
        if (adopt_round(w, &formers, done, &opens, tries > 1) == 0 || atomic_load(&w->fenced))
            break;
        if (daemon_sleep_until(clock_mono_ms() + retry_pause_ms(&claim_retry, tries)))
            rc = err_set(err, ERR_STOPPING, "stopped while adopting");
    }
    free(formers.rows);
    /* Others may begin these jobs once our former incarnation is replaced. */
    if (rc == ERR_OK && opens && !discard_wait(w->discard, clock_mono_ms() + KILL_WAIT_MS))
        log_event(LOG_ERROR, "worker.run.lives_on", LOG_S("worker", w->id_text));
    return rc;
}

enum err_code adopt_all(struct worker *w, struct err *err)
{
    if (w->found_count == 0)
        return ERR_OK;
    enum err_code rc = discard_start(w->runner, w->work_fd, w->found_count, &w->discard, err);
    if (rc == ERR_OK)
        rc = await_grant(w, err);
    if (rc)
        return rc;
    bool *done = calloc(w->found_count, sizeof(*done));
    if (!done)
        return err_set(err, ERR_NOMEM, "no memory to adopt %zu runs", w->found_count);
    rc = adopt_each(w, done, err);
    free(done);
    return rc;
}

enum err_code adopt_replace(struct worker *w, struct err *err)
{
    struct worker_row *rows = NULL;
    size_t count = 0;
    enum err_code rc = worker_store_former(w->store, &w->home, &rows, &count, err);
    for (size_t i = 0; i < count && rc == ERR_OK; i++) {
        if (uuid_eq(&rows[i].id, &w->id))
            continue;
        rc = worker_store_end(w->store, &rows[i].id, WORKER_REPLACED, err);
        if (rc == ERR_CONFLICT || rc == ERR_NOT_FOUND || rc == ERR_FENCED) { /* not live any more */
            err_clear(err);
            rc = ERR_OK;
        }
    }
    free(rows);
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
