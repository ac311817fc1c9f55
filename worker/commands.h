/* SPDX-License-Identifier: MIT */
#ifndef WORKER_COMMANDS_H
#define WORKER_COMMANDS_H

/* commands: tells the slots of cancel requests. Nothing that a command says is believed: it only
 * makes this thread look into the database at once, which it also does with every beat.
 * Threads: locked. */

#include "common/store/job_store.h"
#include "worker/slots.h"

struct commands;

MUST_USE enum err_code commands_start(struct store *store, const struct uuid *worker,
                                      struct slots *slots, unsigned beat_ms,
                                      struct commands **ret_commands, struct err *err);
void commands_wake(struct commands *commands);
void commands_stop(struct commands *commands); /* NULL is allowed */

#endif
