/* SPDX-License-Identifier: MIT */
#ifndef COMMON_MODEL_RETRY_H
#define COMMON_MODEL_RETRY_H

/* retry: how long to wait before the next try. Threads: any. Memory: none. */

#include "common/base/base.h"

struct retry {
    int64_t first_ms; /* the first pause */
    int64_t most_ms;  /* no pause is longer */
};

/* The pause after `tries` failures (1, 2, ...): doubled each time up to most_ms, then spread evenly
 * over its upper half, so that many who failed together do not come back together. */
int64_t retry_pause_ms(const struct retry *retry, uint32_t tries);

#endif
