/* SPDX-License-Identifier: MIT */
#ifndef WORKER_COMMANDS_H
#define WORKER_COMMANDS_H

/* commands: tells the slots of cancel requests, and whether to take further jobs
 * (workers.draining); gives back what the database takes for ours and no slot holds. Nothing that a
 * command says is believed: it only makes this thread look into the database at once, which it also
 * does with every beat. Threads: locked. */

#include "common/store/store.h"
#include "worker/slots.h"

#include <stdatomic.h>

struct commands;

struct commands_setup {
    struct store *store;
    struct uuid worker;
    struct slots *slots; /* told to receive already */
    unsigned beat_ms, lease_ms;
    atomic_bool *draining; /* answer: it takes no further jobs, because its row says so */
};

MUST_USE enum err_code commands_start(const struct commands_setup *setup,
                                      struct commands **ret_commands, struct err *err);
void commands_wake(struct commands *commands);
/* Ends the thread; commands_wake() does nothing any more. NULL is allowed, here and below. */
void commands_end(struct commands *commands);
/* After the last that may call commands_wake() has gone. */
void commands_free(struct commands *commands);

#endif
