/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOME_H
#define WORKER_HOME_H

/* home: the identity of the work folder, a random id in a file of it. Former incarnations are known
 * by it, so no two folders may have the same. One that was copied (a cloned machine, a folder
 * copied for a second worker) is found out by its origin's going on to beat.
 * Threads: main. */

#include "worker/worker.h"

/* Reads it, or makes it, once; the folder is locked. */
MUST_USE enum err_code home_open(struct worker *w, struct err *err);
/* Before the runner is looked for: a folder whose id another worker lives by gets a new one, and
 * forgets the runs that are told of in it. Takes two beats if a former incarnation had another name
 * or was of an earlier boot and is live by its row, else no time. ERR_DB_AWAY, ERR_STOPPING. */
MUST_USE enum err_code home_check(struct worker *w, struct err *err);

#endif
