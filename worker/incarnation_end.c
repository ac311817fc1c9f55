/* SPDX-License-Identifier: MIT */
#include "worker/incarnation.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/outcome.h"

#define LEAVE_WAIT_MS 20000
#define DRAIN_LOOK_MS 100

void incarnation_drain(struct worker *w)
{
    atomic_store(&w->draining, true);
    log_event(LOG_INFO, "worker.draining", LOG_U("busy", slots_busy(w->slots)),
              LOG_U("drain_ms", w->cfg->worker_drain_ms));
    slots_stop(w->slots);
    int64_t until_ms = clock_mono_ms() + w->cfg->worker_drain_ms;
    bool idle = false;
    while (!idle && !atomic_load(&w->fenced) && clock_mono_ms() < until_ms)
        idle = slots_wait_idle(w->slots, clock_mono_ms() + DRAIN_LOOK_MS);
    if (atomic_load(&w->fenced)) {
        incarnation_drop(w);
    } else if (!idle) {
        slots_post_all(w->slots, MAIL_LEAVE);
        (void)slots_wait_idle(w->slots, clock_mono_ms() + LEAVE_WAIT_MS);
    }
}

static void kill_all(struct worker *w)
{
    struct runner_job *jobs = NULL;
    size_t count = 0;
    struct err err = {0};
    if (runner_link_list(w->runner, &jobs, &count, &err)) {
        log_err("worker.runner.list", &err);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct err each = {0};
        if (!jobs[i].exited)
            best_effort(runner_link_kill(w->runner, &jobs[i].job, jobs[i].fence, 0,
                                         KILL_NOTE_FENCED, &each));
    }
    free(jobs);
}

void incarnation_drop(struct worker *w)
{
    atomic_store(&w->draining, true);
    kill_all(w);
    slots_post_all(w->slots, MAIL_FENCED);
    slots_stop(w->slots);
    (void)slots_wait_idle(w->slots, clock_mono_ms() + LEAVE_WAIT_MS);
}

void incarnation_end(struct worker *w)
{
    struct err err = {0};
    struct slots *slots = w->slots;
    bool fenced = atomic_load(&w->fenced);
    struct commands *commands = atomic_exchange(&w->commands, NULL);
    atomic_store(&w->draining, true);
    fleet_stop(w->fleet);
    commands_end(commands);
    discard_stop(w->discard);
    /* Beats and pings go on until no slot needs them; acknowledgements until they are sent. */
    if (slots) {
        slots_post_all(slots, fenced ? MAIL_FENCED : MAIL_LEAVE);
        slots_stop(slots);
        slots_join(slots);
    }
    if (w->runner)
        runner_link_hush(w->runner);
    bool live = w->heart != NULL && !fenced;
    heart_stop(w->heart);
    bus_consumer_free(w->consumer);
    commands_free(commands); /* a message may have been about to wake it until now */
    atomic_store(&w->slots, NULL);
    bool left = atomic_load(&w->left) > 0;
    if (live && left)
        log_event(LOG_INFO, "worker.jobs.left", LOG_U("count", atomic_load(&w->left)),
                  LOG_S("worker", w->id_text));
    else if (live && worker_store_end(w->store, &w->id, WORKER_STOPPED, &err))
        log_err("worker.row.kept", &err);
    runner_link_close(w->runner, !left && !fenced);
    slots_free(slots);
    free(TAKE(w->found));
    w->found_count = 0;
    w->discard = NULL;
    w->fleet = NULL;
    w->heart = NULL;
    w->consumer = NULL;
    w->runner = NULL;
}
