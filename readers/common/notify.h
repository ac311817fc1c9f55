/* SPDX-License-Identifier: MIT */
#ifndef READERS_COMMON_NOTIFY_H
#define READERS_COMMON_NOTIFY_H

/* notify: tells people by mail (notify.* settings), at most once per cause and interval; what was
 * held back is counted in the next mail of its cause. Nobody waits for a mail: they go through a
 * bounded queue to a thread of its own, and what finds the queue full is counted and dropped (the
 * log and the table have all of it anyhow).
 * Threads: locked. Memory: everything given is copied. */

#include "common/config/config.h"
#include "common/store/dead_store.h"

struct notify;

/* Without notify.smtp_url it does nothing. ERR_CONFIG: a setting that belongs to it is missing. */
MUST_USE enum err_code notify_open(const struct config *cfg, const char *service,
                                   struct notify **ret_notify, struct err *err);
/* What is queued is tried for a moment, the rest is dropped. NULL is allowed. */
void notify_close(struct notify *notify);
void notify_dead(struct notify *notify, const struct dead_message *message, const struct uuid *row,
                 enum dead_outcome outcome, const char *detail);
void notify_metrics_add(void);

/* ---- the throttle, apart for its test ------------------------------------------------------- */

#define THROTTLE_CAUSES 128
#define THROTTLE_CAUSE_SIZE 320

struct throttle {
    struct throttle_cause {
        char text[THROTTLE_CAUSE_SIZE];
        int64_t told_ms;
        uint64_t held_back; /* since then */
    } causes[THROTTLE_CAUSES];
    size_t count;
};

/* true: tell it now; *ret_held_back were not told since the last time. When more causes come than
 * are remembered, the one told of longest ago is forgotten. */
bool throttle_take(struct throttle *throttle, const char *cause, int64_t now_ms,
                   int64_t interval_ms, uint64_t *ret_held_back);

#endif
