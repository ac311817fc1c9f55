/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_STARTER_H
#define WORKER_RUNNER_STARTER_H

/* starter: threads that start the processes of jobs, so that the loop never waits for a disk: the
 * job's folder, the note of its start, the program's exec.
 * Threads: owner, beside starter_kill. Memory: a task is its starter's from ask to done. */

#include "worker/runner/confine.h"
#include "worker/runner/journal.h"
#include "worker/runner/launch.h"

struct starter;

struct start_task {
    struct start_task *next;
    void *owner;               /* not looked at */
    json_t *message;           /* a reference; `start` leads into it */
    struct runner_start start; /* to be cleared by the owner */
    struct runner_job job;     /* as it is noted */
    struct journal_entry *entry;
    struct launch_watch watch;
    /* Results */
    enum err_code rc;
    struct err err;
    const char *step; /* that failed */
    struct launched launched;
};

/* All borrowed. */
struct starter_setup {
    int work_dir;
    struct journal *journal;
    struct confine *confine;
    uint64_t soft_files; /* soft limit of open files of jobs */
    int wake;            /* raised when starter_done has something to tell */
};

MUST_USE enum err_code starter_open(const struct starter_setup *setup, struct starter **ret_starter,
                                    struct err *err);
/* No task is under way any more. */
void starter_close(struct starter *starter);
void starter_ask(struct starter *starter, struct start_task *task);
struct start_task *starter_done(struct starter *starter); /* NULL: no more now */

#endif
