/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_DAEMON_H
#define COMMON_SERVICE_DAEMON_H

/* daemon: what every long-running program does alike: signals, readiness, the end.
 *
 * daemon_start() blocks the signals in the calling thread before any other thread exists, so that
 * all inherit that, and starts one thread that takes them: the first SIGTERM or SIGINT asks the
 * program to drain (stop callback, once), a second one ends the process at once with status 1;
 * SIGHUP calls reload. SIGPIPE is ignored. Other processes of the same user, jobs among them, can
 * no longer read the process's memory and environment in /proc (no core dumps either).
 * Threads: daemon_start from main before others start; the rest any. Callbacks run on the signal
 * thread and must not block long. */

#include "common/base/err.h"

struct daemon_calls {
    void (*stop)(void *arg);   /* drain was asked for */
    void (*reload)(void *arg); /* SIGHUP; may be NULL */
    void *arg;
};

MUST_USE enum err_code daemon_start(const struct daemon_calls *calls, struct err *err);
bool daemon_stopping(void);
/* Stop as if SIGTERM had come (a fatal condition of the program itself). */
void daemon_ask_stop(void);
/* Waits until stop was asked. */
void daemon_wait_stop(void);
/* Sleeps until deadline_ms (clock_mono_ms) or stop; true if stop was asked. */
bool daemon_sleep_until(int64_t deadline_ms);
/* sd_notify where systemd started us, else nothing: "READY=1", "STOPPING=1", "STATUS=...". */
void daemon_notify(const char *state);
/* For loops that take a stop flag of their own (store_wait_ready). */
const volatile bool *daemon_stop_flag(void);

#endif
