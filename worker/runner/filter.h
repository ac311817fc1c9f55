/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_FILTER_H
#define WORKER_RUNNER_FILTER_H

/* filter: a seccomp filter for jobs. It refuses what neither Landlock nor the rights of files stop
 * between processes of one user: to set limits of another process (prlimit with a number other
 * than 0), by which a job could end its runner. Everything else passes.
 * Threads: any. Memory: none. */

#include <linux/filter.h>

/* For seccomp(SECCOMP_SET_MODE_FILTER); len is 0 on processors for which there is none. */
extern const struct sock_fprog filter_program;

#endif
