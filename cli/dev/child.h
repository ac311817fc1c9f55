/* SPDX-License-Identifier: MIT */
#ifndef CLI_DEV_CHILD_H
#define CLI_DEV_CHILD_H

/* child: the processes of `sluice dev`, each started, watched and ended by its own pid.
 * Threads: owner (the supervisor has one thread). Memory: static tables of the caller. */

#include "common/base/err.h"

#include <sys/types.h>

struct child {
    char name[64];
    pid_t pid;     /* 0: does not run */
    int status;    /* of the last end, as waitpid tells it */
    uint16_t port; /* 0: none */
    bool restart;  /* start it again when it ends by itself */
    int64_t started_ms;
    uint32_t restarts;
};

struct child_start {
    const char *const *argv; /* ended by NULL; argv[0] is a path */
    const char *const *env;  /* NAME=VALUE, ended by NULL: all that the child gets */
    const char *folder;      /* working directory */
    int log_dir;             /* where its output is appended to, as <name>.log */
};

/* In a session of its own; the kernel kills it if the supervisor ends without ending it. */
MUST_USE enum err_code child_start(struct child *child, const struct child_start *start,
                                   struct err *err);
/* Notes which children have ended. Orphans that were handed to us are reaped as well. */
void child_reap(struct child *children, size_t count);
bool child_runs(const struct child *child);
/* first_signal, then SIGKILL after grace_ms; returns when it is gone. */
void child_end(struct child *child, int first_signal, int64_t grace_ms);
/* The same for processes that are our children but in no table (adopted orphans). */
void child_end_orphans(const struct child *children, size_t count, int64_t grace_ms);
/* Their pids, at most max; answers how many. */
size_t child_orphans(const struct child *children, size_t count, pid_t *ret_pids, size_t max);
/* Waits until something answers on 127.0.0.1:port, the child ends, or the time is over. */
MUST_USE enum err_code child_wait_port(struct child *child, int64_t timeout_ms, struct err *err);
/* A port on 127.0.0.1 that is free now; wanted if it is (0: any). */
uint16_t child_free_port(uint16_t wanted);

#endif
