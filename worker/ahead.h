/* SPDX-License-Identifier: MIT */
#ifndef WORKER_AHEAD_H
#define WORKER_AHEAD_H

/* ahead: when a worker takes more deliveries than it has slots, so that the next job is there
 * while the end of the last one is written.
 *
 * A delivery that waits here for a slot might be run by somebody else, so this is only done while
 * the slots turn over quickly and are never without work for long: after a streak of short runs,
 * each while all slots were taken, and no longer than AHEAD_LASTS_MS after the last such run. A
 * delivery that has waited for AHEAD_LATE_MS ends it at once and goes back to the queue with all
 * others that wait: so none waits longer than that, but while every thread works or cleans up
 * (nobody looks then). Giving back raises a count that the broker limits, so the next try comes
 * after a pause that doubles each time, until it went well for AHEAD_CALM_MS. Threads: owner
 * (slots.c calls it under its lock). Times: clock_mono_ms(). */

#include "common/base/base.h"

#include <stdbool.h>
#include <stdint.h>

#define AHEAD_SHORT_MS 100 /* from the claim to the end of the run */
#define AHEAD_STREAK 8     /* at least; as many as there are slots */
#define AHEAD_PROMPT_MS 20 /* slots that got their next delivery within this had no rest */
#define AHEAD_LASTS_MS 500
#define AHEAD_LATE_MS 250
#define AHEAD_PAUSE_MS 1000
#define AHEAD_PAUSE_MAX_MS 64000
#define AHEAD_CALM_MS 10000

#define AHEAD_MOST 64 /* more gain nothing: transactions are shared by then */

struct ahead {
    unsigned streak_min;
    unsigned streak;
    bool on;
    int64_t began_ms;
    int64_t until_ms;
    int64_t not_before_ms;
    int64_t pause_ms; /* after the next time that it went wrong */
};

/* How many messages a worker may go ahead that can have so many in all. */
unsigned ahead_most(unsigned slots, unsigned deliveries);
void ahead_init(struct ahead *ahead, unsigned slots);
/* A slot is free again, which was taken for held_ms. full: all slots were, without a rest. */
void ahead_ended(struct ahead *ahead, int64_t now_ms, int64_t held_ms, bool full);
/* A delivery has waited for too long. */
void ahead_late(struct ahead *ahead, int64_t now_ms);
/* Its time is over: true once. */
bool ahead_expired(struct ahead *ahead, int64_t now_ms);

#endif
