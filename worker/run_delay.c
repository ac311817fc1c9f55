/* SPDX-License-Identifier: MIT */
#include "worker/run.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/model/retry.h"
#include "worker/disk_room.h"

#include <errno.h>

/* A host that is short of something ends no job at once: the phase is tried again. */

#define SHORTAGE_MS 60000 /* a phase is tried again for so long */
static const struct retry shortage_retry = {100, 2000};
static const struct retry disk_retry = {500, 15000}; /* inputs are fetched again each time */

#define DELAY_TOLD_AT 3 /* tries: what passes sooner is told to nobody */

static bool is_shortage(const struct err *err)
{
    return err->code == ERR_NOMEM || err->sys_errno == ENOMEM || err->sys_errno == EMFILE ||
           err->sys_errno == ENFILE || err->sys_errno == EAGAIN;
}

enum phase_result run_fail(struct run *run, enum job_condition condition, const struct err *why)
{
    if (run->patient && is_shortage(why)) {
        log_err("worker.shortage", why);
        (void)snprintf(run->delay, sizeof(run->delay),
                       "host %.100s is short of something: %.120s; it is tried again for %d s",
                       run->w->host, why->text, SHORTAGE_MS / 1000);
        return PHASE_SHORT;
    }
    run->end = (struct outcome){.state = JOB_FAILED, .condition = condition};
    (void)snprintf(run->end.reason, sizeof(run->end.reason), "%s", why->text);
    return PHASE_ENDED;
}

enum phase_result run_disk_full(struct run *run)
{
    char room[DISK_ROOM_SIZE];
    (void)snprintf(run->delay, sizeof(run->delay), "%s: it is tried again here until there is room",
                   disk_room_text(run->w->work_fd, "worker.work_root", run->w->host, room));
    run->disk = true;
    return PHASE_SHORT;
}

/* An event of its own, for people who ask why nothing goes on. If it cannot be written, the next
 * try tells it. DONE: go on. */
static enum phase_result tell_delay(struct run *run)
{
    struct err err = {0};
    enum phase_result result = run_commit_now(run);
    if (result != PHASE_DONE)
        return result;
    const struct job_move move = {.to = run->job->status, .kind = "delayed", .detail = run->delay};
    enum err_code rc = job_writer_move(run->w->writer, &run->hold, run->job->status,
                                       (struct job_moves){&move, 1}, NULL, &err);
    if (rc)
        log_err("worker.delay.untold", &err);
    log_event(LOG_WARN, "worker.job.delayed", LOG_S("job", run->id_text),
              LOG_S("detail", run->delay));
    return rc == ERR_FENCED ? PHASE_FENCED : PHASE_DONE;
}

/* The pause after so many tries that the host was short of something for. */
static enum phase_result delay(struct run *run, uint32_t tries)
{
    enum phase_result result = PHASE_DONE;
    if (tries == DELAY_TOLD_AT)
        result = tell_delay(run);
    if (result == PHASE_DONE)
        result = run_pause(run, retry_pause_ms(run->disk ? &disk_retry : &shortage_retry, tries));
    run->disk = false;
    return result == PHASE_DONE ? run_interrupted(run) : result;
}

enum phase_result run_step(struct run *run, enum phase_result (*go)(struct run *run))
{
    int64_t until_ms = clock_mono_ms() + SHORTAGE_MS;
    for (uint32_t tries = 1;; tries++) {
        run->patient = clock_mono_ms() < until_ms;
        enum phase_result result = go(run);
        if (result != PHASE_SHORT)
            return result;
        result = delay(run, tries);
        if (result != PHASE_DONE)
            return result;
    }
}
