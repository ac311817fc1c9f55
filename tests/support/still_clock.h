/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_STILL_CLOCK_H
#define TESTS_SUPPORT_STILL_CLOCK_H

/* still_clock: a monotonic clock that stands still but when a test moves it, for programs of
 * several threads. Link with --wrap=clock_mono_ms,--wrap=clock_cond_wait_until: whoever calls these
 * lives by this clock. A wait that takes a minute of real time fails, as if its time had passed.
 * Threads: any; still_clock_pass() on one at a time. Memory: none. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Those who wait look at the clock again. */
void still_clock_pass(int64_t ms);
/* Until somebody, who has looked at the clock since it was moved, waits until due_ms. false: nobody
 * did within real_ms. */
bool still_clock_await(int64_t due_ms, int64_t real_ms);

int64_t still_clock_real_ms(void);
/* clock_cond_wait_until() by the real clock. */
bool still_clock_really_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms);

#endif
