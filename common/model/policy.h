/* SPDX-License-Identifier: MIT */
#ifndef COMMON_MODEL_POLICY_H
#define COMMON_MODEL_POLICY_H

/* policy: when to ask again whether a cause has cleared, and when to give up. Written as
 *   constant every=15s jitter=10 elapsed=30d
 *   stepwise steps=1m,5m,30m tries=20
 *   exponential first=2s most=5m jitter=20 elapsed=7d
 * Durations are numbers with ms, s, m, h or d; jitter is in percent of the pause, both ways. tries
 * (tests in vain) and elapsed (waiting of a job) end the patience; without them it never ends.
 * No I/O, no clock. Threads: any. */

#include "common/base/err.h"

enum policy_kind {
#define POLICY(kind, pause) POLICY_##kind,
#include "common/model/policy.def"
#undef POLICY
    POLICY_KIND_COUNT
};

#define POLICY_STEPS_MAX 16
#define POLICY_JITTER_MAX 90

struct policy {
    enum policy_kind kind;
    int64_t steps_ms[POLICY_STEPS_MAX]; /* constant: one; exponential: first and most */
    size_t step_count;
    unsigned jitter_percent;
    uint32_t max_tries;     /* 0: no end */
    int64_t max_elapsed_ms; /* 0: no end */
};

/* ERR_INVALID says what is wrong with the text. */
MUST_USE enum err_code policy_parse(const char *text, struct policy *ret_policy, struct err *err);
/* The pause after `tries` tests in vain (1, 2, ...); dice is a random number, 0..UINT32_MAX. */
int64_t policy_pause_ms(const struct policy *policy, uint32_t tries, uint32_t dice);
/* So many tests were in vain: it is enough. */
bool policy_is_out_of_tries(const struct policy *policy, uint32_t tries);

#endif
