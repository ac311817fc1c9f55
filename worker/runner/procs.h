/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_PROCS_H
#define WORKER_RUNNER_PROCS_H

/* procs: finds and ends the processes of a job. The runner is the subreaper, so whatever a job
 * left behind is still below it. A process belongs to a job when it or one of its ancestors is the
 * main process, or is in the main process's session or group, or has the job's id and run in its
 * environment (SLUICE_JOB_ID, SLUICE_FENCE). One that wiped all of that is found when the job is
 * the only one that runs: then everything below the runner is its own.
 * Threads: owner (the runner's first one). */

#include "common/base/base.h"
#include "common/base/uuid.h"

#include <sys/types.h>

struct procs_job {
    pid_t main; /* alive or not reaped yet, so that its number is not somebody else's */
    struct uuid job;
    uint64_t run;
    const pid_t *mains; /* main processes of all jobs, this one too, ascending */
    size_t main_count;
    bool alone; /* no other job runs */
};

/* Reaps what the runner adopted and has ended; true if something that it adopted lives (or if that
 * cannot be told). Cheap: one small file is read. To be called by the process's first thread, to
 * which orphans come; main processes are children of the threads that started them. */
bool procs_orphans(void);
/* The processes are looked at again from now on; until then one look serves several jobs, which
 * is right for a job whose main process had ended before it. */
void procs_refresh(void);
/* Signals every living process of the job, its main process included; how many there were. */
size_t procs_signal(const struct procs_job *job, int signal_number);
/* A run whose runner is gone. */
struct procs_lost {
    struct uuid job;
    uint64_t run;
    size_t left; /* its processes that lived when they were looked for last */
};

/* The same for such runs: by environment only, wherever they are. How many lived in all. */
size_t procs_signal_lost(struct procs_lost *runs, size_t count, int signal_number);

#endif
