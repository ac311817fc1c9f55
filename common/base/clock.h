/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

/* clock: the time, replaceable in tests. Durations and deadlines use the monotonic clock, which
 * stands still while the host is suspended. What grants something until a time (leases) uses the
 * boot clock, which goes on. The wall clock is for people and for tokens.
 * Threads: any (the replacement is for tests of one thread). */

#include "common/base/base.h"
#include "common/base/sv.h"

#include <pthread.h>

#define CLOCK_TEXT_SIZE 32 /* "2026-01-31T23:59:59.123Z" and its NUL fit */

int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);
int64_t clock_boot_us(void);
int64_t clock_boot_ms(void); /* CLOCK_BOOTTIME: never compared with clock_mono_ms() */
int64_t clock_wall_us(void); /* since 1970-01-01 UTC */
int64_t clock_wall_s(void);
/* RFC 3339, UTC, milliseconds, into at least CLOCK_TEXT_SIZE bytes. */
void clock_rfc3339(int64_t wall_us, char *ret_text);
/* RFC 3339 with any offset; at most 6 digits of fraction are kept. false: not such a text. */
MUST_USE bool clock_parse_rfc3339(struct sv text, int64_t *ret_wall_us);

/* A condition variable that waits on the monotonic clock. */
void clock_cond_init(pthread_cond_t *cond);
/* Waits until deadline_ms (clock_mono_ms); false when that time has passed. */
bool clock_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms);

/* For tests: both answer microseconds; NULL puts the system's back. */
void clock_replace(int64_t (*mono_us)(void), int64_t (*wall_us)(void));
void clock_replace_boot(int64_t (*boot_us)(void));

#endif
