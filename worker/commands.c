/* SPDX-License-Identifier: MIT */
#include "worker/commands.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#include <pthread.h>

struct commands {
    struct store *store;
    struct uuid worker;
    struct slots *slots;
    unsigned beat_ms;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool stop;
    bool woken;
};

static void look(struct commands *commands)
{
    struct job_hold_row *rows = NULL;
    size_t count = 0;
    struct err err = {0};
    if (job_store_cancel_requests(commands->store, &commands->worker, &rows, &count, &err))
        return; /* the database is away: the beat says so */
    for (size_t i = 0; i < count; i++)
        (void)slots_post(commands->slots, &rows[i].id, MAIL_CANCEL);
    free(rows);
}

static void *commands_main(void *arg)
{
    struct commands *commands = arg;
    pthread_mutex_lock(&commands->lock);
    while (!commands->stop) {
        commands->woken = false;
        pthread_mutex_unlock(&commands->lock);
        look(commands);
        pthread_mutex_lock(&commands->lock);
        int64_t until_ms = clock_mono_ms() + commands->beat_ms;
        while (!commands->stop && !commands->woken &&
               clock_cond_wait_until(&commands->news, &commands->lock, until_ms))
            ;
    }
    pthread_mutex_unlock(&commands->lock);
    store_thread_end();
    return NULL;
}

enum err_code commands_start(struct store *store, const struct uuid *worker, struct slots *slots,
                             unsigned beat_ms, struct commands **ret_commands, struct err *err)
{
    struct commands *commands = calloc(1, sizeof(*commands));
    if (!commands)
        return err_set(err, ERR_NOMEM, "no memory for commands");
    *commands =
        (struct commands){.store = store, .worker = *worker, .slots = slots, .beat_ms = beat_ms};
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
