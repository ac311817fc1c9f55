/* SPDX-License-Identifier: MIT */
#include "worker/commands.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/service/daemon.h"
#include "common/store/job_store.h"
#include "common/store/worker_store.h"

#include <pthread.h>

struct commands {
    struct commands_setup setup;
    bool draining; /* as told last */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool stop;
    bool woken;
    struct job_hold_row *strays; /* ours by the database at the last look, and held by no slot */
    size_t stray_count;
    int64_t strays_ms; /* when to look again */
};

/* What the row says counts, not the command: one that was lost is made up for here. */
static void look_for_drain(struct commands *commands)
{
    const struct commands_setup *setup = &commands->setup;
    bool draining = false;
    struct err err = {0};
    if (worker_store_is_draining(setup->store, &setup->worker, &draining, &err) ||
        draining == commands->draining)
        return;
    commands->draining = draining;
    atomic_store(setup->draining, draining);
    log_event(LOG_INFO, draining ? "worker.drained" : "worker.undrained",
              LOG_U("busy", slots_busy(setup->slots)));
    slots_receive(setup->slots, !draining);
}

static void look_for_cancels(struct commands *commands)
{
    const struct commands_setup *setup = &commands->setup;
    struct job_hold_row *rows = NULL;
    size_t count = 0;
    struct err err = {0};
    if (job_store_cancel_requests(setup->store, &setup->worker, &rows, &count, &err))
        return; /* the database is away: the beat says so */
    for (size_t i = 0; i < count; i++)
        (void)slots_post(setup->slots, &rows[i].id, MAIL_CANCEL);
    free(rows);
}

static bool was_stray(const struct commands *commands, const struct job_hold_row *row)
{
    for (size_t i = 0; i < commands->stray_count; i++)
        if (uuid_eq(&commands->strays[i].id, &row->id) && commands->strays[i].fence == row->fence &&
            commands->strays[i].status == row->status)
            return true;
    return false;
}

/* The message is left to the relay. */
static void give_back(const struct commands *commands, const struct job_hold_row *row)
{
    struct job_hold hold = {.id = row->id, .worker = commands->setup.worker, .fence = row->fence};
    struct job_handed_back back = {0};
    struct err err = {0};
    char text[UUID_TEXT_SIZE];
    enum err_code rc = job_store_hand_back(commands->setup.store, &hold, row->status,
                                           "the worker has no such run", &back, &err);
    if (rc == ERR_OK)
        log_event(LOG_WARN, "worker.job.unknown", LOG_S("job", uuid_text(&row->id, text)),
                  LOG_U("fence", row->fence));
    else if (rc != ERR_FENCED)
        log_err("worker.job.unknown", &err);
}

/* A run whose end was written into a database that has lost it since, by a failover or a restore,
 * is ours by the row and by nothing else. Two looks a lease apart: a slot may have given a job up
 * between the read and the look. */
static void look_for_strays(struct commands *commands)
{
    const struct commands_setup *setup = &commands->setup;
    struct job_hold_row *rows = NULL;
    size_t count = 0, strays = 0;
    struct err err = {0};
    int64_t now_ms = clock_mono_ms();
    if (now_ms < commands->strays_ms || daemon_stopping())
        return;
    commands->strays_ms = now_ms + setup->lease_ms;
    if (job_store_owned(setup->store, &setup->worker, &rows, &count, &err))
        return;
    for (size_t i = 0; i < count; i++) {
        if (slots_hold(setup->slots, &rows[i].id))
            continue;
        if (was_stray(commands, &rows[i]))
            give_back(commands, &rows[i]);
        else
            rows[strays++] = rows[i];
    }
    free(commands->strays);
    commands->strays = rows;
    commands->stray_count = strays;
}

static void *commands_main(void *arg)
{
    struct commands *commands = arg;
    pthread_mutex_lock(&commands->lock);
    while (!commands->stop) {
        commands->woken = false;
        pthread_mutex_unlock(&commands->lock);
        look_for_cancels(commands);
        look_for_drain(commands);
        look_for_strays(commands);
        pthread_mutex_lock(&commands->lock);
        int64_t until_ms = clock_mono_ms() + commands->setup.beat_ms;
        while (!commands->stop && !commands->woken &&
               clock_cond_wait_until(&commands->news, &commands->lock, until_ms))
            ;
    }
    pthread_mutex_unlock(&commands->lock);
    store_thread_end();
    return NULL;
}

enum err_code commands_start(const struct commands_setup *setup, struct commands **ret_commands,
                             struct err *err)
{
    struct commands *commands = calloc(1, sizeof(*commands));
    if (!commands)
        return err_set(err, ERR_NOMEM, "no memory for commands");
    commands->setup = *setup;
    atomic_store(setup->draining, false);
    pthread_mutex_init(&commands->lock, NULL);
    clock_cond_init(&commands->news);
    int failed = pthread_create(&commands->thread, NULL, commands_main, commands);
    if (failed) {
        free(commands);
        return err_set_errno(err, ERR_NOMEM, failed, "cannot start the thread of commands");
    }
    *ret_commands = commands;
    return ERR_OK;
}

void commands_wake(struct commands *commands)
{
    pthread_mutex_lock(&commands->lock);
    commands->woken = true;
    pthread_cond_signal(&commands->news);
    pthread_mutex_unlock(&commands->lock);
}

void commands_end(struct commands *commands)
{
    if (!commands)
        return;
    pthread_mutex_lock(&commands->lock);
    commands->stop = true;
    pthread_cond_signal(&commands->news);
    pthread_mutex_unlock(&commands->lock);
    pthread_join(commands->thread, NULL);
}

void commands_free(struct commands *commands)
{
    if (!commands)
        return;
    pthread_mutex_destroy(&commands->lock);
    pthread_cond_destroy(&commands->news);
    free(commands->strays);
    free(commands);
}
