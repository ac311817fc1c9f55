/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_LAUNCH_H
#define WORKER_RUNNER_LAUNCH_H

/* launch: starts the main process of a job. Everything is prepared before the fork; the child
 * makes async-signal-safe calls only. It has its own session, default signals, no descriptor but
 * 0 (/dev/null), 1 and 2 (pipes to the runner), umask 077, and dies with the runner
 * (PR_SET_PDEATHSIG; the runner has one thread, so this is sound). PR_SET_NO_NEW_PRIVS: a job
 * that became another user could neither be killed nor die with the runner.
 * Threads: owner. */

#include "worker/runner/protocol.h"

struct launched {
    pid_t pid;
    int pidfd;
    int report; /* ends empty when the program runs; holds what launch_report reads if not */
    int out;    /* read ends, non-blocking */
    int err;
};

/* On failure err->sys_errno is the reason and *ret_step the step that failed. soft_files is the
 * soft limit of open files for a job that says none. */
MUST_USE enum err_code launch(const struct runner_start *start, int working_dir,
                              uint64_t soft_files, struct launched *ret, const char **ret_step,
                              struct err *err);
/* Reads what the child said: 1 it could not start (outputs are set), 0 it runs, -1 not known yet */
int launch_report(int report_fd, const char **ret_step, int *ret_errno);

#endif
