/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_NEXT_STEP_H
#define WEBAPP_NEXT_STEP_H

/* next_step: what the reader of a sentence may do next. Threads: any. Memory: none. Who has the
 * role is told the command, anybody else whom to ask:
 *
 *   next_step_add(text, asker, ROLE_OPERATOR, "let it take jobs again", "sluice undrain %s", id);
 *
 *   operator: ". Let it take jobs again: 'sluice undrain 01a2...'"
 *   user:     ". Ask an operator of this site to let it take jobs again"
 *
 * The text before it ends without a full stop, and so does what is added. ROLE_ADMIN is also for
 * what is done on a host: sluice-worker, sluice-recovery. next_step_role() gives the role for acts
 * on a job: its owner may do what needs an operator for the jobs of others. */

#include "common/auth/auth.h"
#include "common/base/buf.h"

void next_step_add(struct buf *text, const struct identity *asker, enum role least,
                   const char *what, const char *command, ...) PRINTF_LIKE(5, 6);
MUST_USE enum role next_step_role(const struct identity *asker, const char *owner);

#endif
