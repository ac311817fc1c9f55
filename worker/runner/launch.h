/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_LAUNCH_H
#define WORKER_RUNNER_LAUNCH_H

/* launch: starts the main process of a job. The child shares the runner's memory until it execs,
 * and the calling thread waits for that (as vfork): so nothing is copied, and a failure is known
 * when launch returns. Everything is prepared before; the child makes bare system calls only. It
 * has its own session, default signals, no descriptor but 0 (/dev/null), 1 and 2 (pipes to the
 * runner), umask 077, and dies with the thread that called (PR_SET_PDEATHSIG), which therefore
 * lives as long as the runner. PR_SET_NO_NEW_PRIVS: a job that became another user could neither
 * be killed nor die with the runner. It has no capability, is confined (confine.h), and
 * is another user's if those say so.
 * Threads: a launcher belongs to one thread; a launch_watch is read by others. */

#include "worker/runner/confine.h"
#include "worker/runner/protocol.h"

struct launcher;

struct launched {
    pid_t pid;
    int pidfd;
    int out; /* read ends */
    int err;
    int64_t at_us; /* CLOCK_BOOTTIME, before there was a process */
    int64_t at_wall_us;
    const char *step; /* that failed */
};

/* What others may see and say while a launch goes on, which may hang: the program or the working
 * directory may be on a disk that does. */
struct launch_watch {
    _Atomic pid_t pid;       /* 0 until there is a process */
    _Atomic bool called_off; /* do not start it, if it is not too late */
};

/* All signals are blocked in the thread that opens it. soft_files is the soft limit of open files
 * for a job that says none. */
MUST_USE enum err_code launcher_open(uint64_t soft_files, struct launcher **ret_launcher,
                                     struct err *err);
void launcher_free(struct launcher *launcher);

/* On failure err->sys_errno is the reason (ECANCELED: called off) and ret->step the step that
 * failed. If ret->pid is set then, a process was there and is a zombie now. */
MUST_USE enum err_code launch(struct launcher *launcher, const struct runner_start *start,
                              const struct confine_job *confinement, struct launch_watch *watch,
                              struct launched *ret, struct err *err);

#endif
