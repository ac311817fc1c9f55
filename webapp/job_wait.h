/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_JOB_WAIT_H
#define WEBAPP_JOB_WAIT_H

/* job_wait: requests with ?wait. They hold no thread: their connection is suspended until an event
 * says that the job has ended, the states that are read every second say so, or time is over.
 * Threads: locked. */

#include "webapp/web.h"

MUST_USE enum err_code waiters_open(struct web *web, struct waiters **ret_waiters, struct err *err);
void waiters_wake(struct waiters *waiters, const struct uuid *id); /* this job has ended */
size_t waiters_count(struct waiters *waiters);
void waiters_stop(struct waiters *waiters); /* all are answered now */
void waiters_free(struct waiters *waiters); /* NULL is allowed */

#endif
