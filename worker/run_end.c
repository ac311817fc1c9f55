/* SPDX-License-Identifier: MIT */
#include "worker/run.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/model/message.h"
#include "common/model/retry.h"
#include "common/service/daemon.h"
#include "common/store/gate_store.h"
#include "common/store/outbox_store.h"
#include "worker/run_block.h"
#include "worker/stats.h"

#include <fcntl.h>
#include <unistd.h>

#define DROP_WAIT_MS 10000
#define PUBLISH_WAIT_MS 2000

static const struct retry end_retry = {100, 5000};

/* Since the process ended, as of now. A runner that was started anew does not know when that was by
 * the clock of this boot; the wall clock may be wrong, but the duration of the run is not. */
static uint64_t us_since_end(const struct runner_record *record)
{
    int64_t ago_us = record->ended_boot_us ? clock_boot_us() - record->ended_boot_us
                                           : clock_wall_us() - record->ended_us;
    return ago_us > 0 ? (uint64_t)ago_us : 0;
}

static void set_times(const struct runner_record *record, struct job_outcome *row)
{
    row->timed = record->ended_us && !record->start_error[0];
    row->since_end_us = us_since_end(record);
    row->run_us = record->run_us ? record->run_us : record->wall_ms * 1000;
}

static struct job_outcome outcome_row(const struct run *run)
{
    const struct runner_record *record = &run->record;
    struct job_outcome row = {
        .condition = run->end.condition,
        .reason = run->end.reason[0] ? run->end.reason : NULL,
        .attempt = run->end.attempt,
    };
    if (!run->exited) {
        if (run->job->losses)
            kept_output_find(run, &row);
        return row;
    }
    row.run_fence = run->run;
    set_times(record, &row);
    row.has_exit_code = record->exit_code >= 0 && !record->signal && !record->start_error[0];
    row.exit_code = row.has_exit_code ? record->exit_code : 0;
    row.term_signal = record->signal;
    row.out = (struct job_stream){record->out.total_bytes, record->out.kept_bytes};
    row.errs = (struct job_stream){record->err.total_bytes, record->err.kept_bytes};
    return row;
}

static enum phase_result commit_end(struct run *run)
{
    int64_t start_us = clock_mono_us();
    for (uint32_t tries = 1;; tries++) {
        struct job_outcome row = outcome_row(run);
        struct err err = {0};
        enum err_code rc =
            job_writer_move(run->w->writer, &run->hold, run->job->status,
                            (struct job_moves){run->notes, run->note_count}, &row, &err);
        if (rc == ERR_OK) {
            metric_observe_us(&stat_commit, clock_mono_us() - start_us);
            return PHASE_DONE;
        }
        if (rc == ERR_FENCED)
            return PHASE_FENCED;
        /* The exit record on the disk keeps the result until the database takes it. */
        if (tries == 1)
            log_err("worker.end.waits", &err);
        enum phase_result result = run_pause(run, retry_pause_ms(&end_retry, tries));
        if (result != PHASE_DONE)
            return result;
    }
}

void run_remove_dir(struct run *run)
{
    struct err err = {0};
    /* Mostly it is empty: one call then, in place of reading through it. */
    if (unlinkat(run->w->work_fd, run->dir, AT_REMOVEDIR) == 0)
        return;
    if (fs_remove_tree(run->w->work_fd, run->dir, &err))
        log_err("worker.dir.kept", &err);
}

/* The runner's record goes, then the directory; what cannot be done now is done at the next start,
 * when the runner still lists the run, or the sweep finds its directory. */
static void clean_up(struct run *run)
{
    struct err err = {0};
    enum err_code rc = ERR_OK;
    if (run->started)
        rc = runner_link_forget(run->w->runner, &run->job->id, run->runner_fence, &err);
    FAULT("worker.forgotten");
    if (rc == ERR_OK || rc == ERR_NOT_FOUND)
        run_remove_dir(run);
    else
        log_err("worker.run.kept", &err);
}

/* The same for a run that has ended and is on record as such: nothing depends on the runner's
 * answer any more. A record that it keeps after all is refused by its fence. */
static void clean_up_soon(struct run *run)
{
    struct err err = {0};
    if (!run->started || !run->exited) {
        clean_up(run);
        return;
    }
    enum err_code rc =
        runner_link_forget_soon(run->w->runner, &run->job->id, run->runner_fence, &err);
    FAULT("worker.forgotten");
    if (rc == ERR_OK)
        run_remove_dir(run);
    else
        log_err("worker.run.kept", &err);
}

static void log_end(const struct run *run)
{
    log_event(LOG_INFO, "worker.job.ended", LOG_S("job", run->id_text),
              LOG_S("state", job_state_text(run->end.state)),
              LOG_S("condition", job_condition_text(run->end.condition)),
              LOG_S("reason", run->end.reason), LOG_U("fence", run->hold.fence),
              LOG_U("wall_ms", run->record.wall_ms));
}

enum phase_result run_finish(struct run *run)
{
    bool gone = !run->started || run->exited;
    /* Where jobs are counted, the next one would find this one under way still. */
    if (gone && !job_gate_has_limits(&run->gate))
        slot_finish(run->slot);
    run_note(run, run->end.state);
    struct job_move *last = &run->notes[run->note_count - 1];
    last->detail = run->end.reason[0] ? run->end.reason : NULL;
    enum phase_result result = commit_end(run);
    if (result != PHASE_DONE)
        return result;
    FAULT("worker.terminal_committed");
    log_end(run);
    metric_count(&stat_outcomes,
                 run->end.state == JOB_FINISHED ? STAT_FINISHED
                 : run->end.state == JOB_FAILED ? STAT_FAILED
                                                : STAT_CANCELLED,
                 1);
    announcer_tell(run->w->announcer, &run->job->id, run->end.state);
    run_tell_room(run);
    slot_settle(run->slot, BUS_ACK); /* the next message comes while this run is cleaned up */
    if (gone)
        slot_finish(run->slot);
    FAULT("worker.acknowledged");
    clean_up_soon(run);
    return PHASE_DONE;
}

static void log_fenced(const struct run *run)
{
    AUTO(job_free) struct job *now = NULL;
    struct err err = {0};
    uint64_t fence_now = 0;
    if (job_store_get(run->w->store, NULL, &run->job->id, &now, &err) == ERR_OK)
        fence_now = now->fence;
    metric_count(&stat_fenced, 0, 1);
    log_event(LOG_WARN, "worker.job.fenced", LOG_S("job", run->id_text),
              LOG_U("fence", run->hold.fence), LOG_U("fence_now", fence_now));
}

/* Until the runner has told its end or holds no such run: a process that hangs in the kernel may
 * take its time to die, and until then the message is not given back. */
static void await_end(struct run *run)
{
    for (;;) {
        struct err err = {0};
        enum err_code rc = runner_link_kill(run->w->runner, &run->job->id, run->runner_fence, 0,
                                            KILL_NOTE_FENCED, &err);
        if (rc == ERR_NOT_FOUND || rc == ERR_FENCED)
            return;
        if (slot_wait(run->slot, MAIL_EXITED, clock_mono_ms() + DROP_WAIT_MS))
            return;
        log_event(LOG_ERROR, "worker.run.lives_on", LOG_S("job", run->id_text),
                  LOG_U("fence", run->runner_fence));
        /* The next incarnation, or the next worker of this name, finds it in the runner's list. */
        if (atomic_load(&run->w->fenced) || slot_mail(run->slot) & MAIL_LEAVE)
            return;
    }
}

void run_drop(struct run *run)
{
    log_fenced(run);
    if (run->started && !run->exited)
        await_end(run);
    /* A worker that drops everything leaves the runs to the list of its next incarnation. */
    if (!atomic_load(&run->w->fenced))
        clean_up(run);
}

static void send_again(struct run *run, uint64_t outbox_id, uint32_t epoch)
{
    char body[MESSAGE_SIZE_MAX];
    char key[BUS_NAME_SIZE];
    struct message message = {run->job->id, epoch};
    struct err err = {0};
    size_t length = message_write(&message, body);
    struct bus_message out = {
        .exchange = BUS_SUBMIT,
        .routing_key = bus_submit_queue(run->job->tenant, run->job->queue, key),
        .body = {body, length},
        .message_id = run->id_text,
        .traceparent = run->traceparent[0] ? run->traceparent : NULL,
    };
    /* If it is not sent, the relay does it. */
    if (bus_publish_wait(run->w->publisher, &out, clock_mono_ms() + PUBLISH_WAIT_MS, &err) ==
        ERR_OK)
        best_effort(outbox_store_delete(run->w->store, &outbox_id, 1, &err));
}

void run_leave(struct run *run)
{
    struct err err = {0};
    struct job_handed_back back = {0};
    if (run->started) {
        log_event(LOG_INFO, "worker.job.left", LOG_S("job", run->id_text),
                  LOG_U("fence", run->hold.fence));
        atomic_fetch_add(&run->w->left, 1);
        return;
    }
    enum err_code rc = job_store_hand_back(run->w->store, &run->hold, run->job->status,
                                           "the worker stops", &back, &err);
    if (rc) {
        log_err("worker.job.kept", &err);
        return;
    }
    log_event(LOG_INFO, "worker.job.given_back", LOG_S("job", run->id_text));
    send_again(run, back.outbox_id, back.epoch);
    run_remove_dir(run);
    slot_settle(run->slot, BUS_ACK);
}

/* Our own run ended for want of our pings: we were silent, even if a beat or a frame came since.
 * A loss that we charged now would be charged again by whoever takes the job from us. */
static void notice_silence(struct run *run)
{
    if (run->exited && run->record.reason == RUNNER_LEASE_EXPIRED && !run->adopted &&
        !atomic_exchange(&run->w->fenced, true))
        log_event(LOG_ERROR, "worker.silent", LOG_S("worker", run->w->id_text));
}

enum phase_result run_lose(struct run *run)
{
    char detail[JOB_REASON_SIZE];
    notice_silence(run);
    if (atomic_load(&run->w->fenced)) /* the next incarnation finds the record and charges it */
        return PHASE_FENCED;
    (void)snprintf(detail, sizeof(detail), "run %llu: %.300s", (unsigned long long)run->run,
                   run->end.reason);
    log_event(LOG_WARN, "worker.job.lost", LOG_S("job", run->id_text), LOG_S("why", detail),
              LOG_U("losses", run->job->losses + 1));
    /* That it ran is on record before its trace is gone: what is then not in the runner, and not
     * RUNNING, was never there (receive.c). */
    enum phase_result noted = run_commit_now(run);
    if (noted != PHASE_DONE)
        return noted;
    /* First the record, then the charge: a crash between the two charges the loss once. */
    clean_up(run);
    run->adopted = false;
    run->started = false;
    run->exited = false;
    environment_free(&run->environment);
    for (uint32_t tries = 1;; tries++) {
        struct err err = {0};
        enum err_code rc = run_claim(run, true, true, detail, &err);
        if (rc == ERR_OK) {
            metric_count(&stat_losses, 0, 1);
            return daemon_stopping() ? PHASE_LEFT : PHASE_DONE; /* left: given back */
        }
        if (rc == ERR_CONFLICT || rc == ERR_FENCED)
            return PHASE_FENCED;
        enum phase_result result = run_pause(run, retry_pause_ms(&end_retry, tries));
        if (result != PHASE_DONE)
            return result;
    }
}
