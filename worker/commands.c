/* SPDX-License-Identifier: MIT */
#include "worker/commands.h"

#include "common/base/clock.h"
#include "common/base/log.h"
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

static void *commands_main(void *arg)
{
    struct commands *commands = arg;
    pthread_mutex_lock(&commands->lock);
    while (!commands->stop) {
        commands->woken = false;
        pthread_mutex_unlock(&commands->lock);
        look_for_cancels(commands);
        look_for_drain(commands);
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

void commands_stop(struct commands *commands)
{
    if (!commands)
        return;
    pthread_mutex_lock(&commands->lock);
    commands->stop = true;
    pthread_cond_signal(&commands->news);
    pthread_mutex_unlock(&commands->lock);
    pthread_join(commands->thread, NULL);
    pthread_mutex_destroy(&commands->lock);
    pthread_cond_destroy(&commands->news);
    free(commands);
}
