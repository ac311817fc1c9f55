/* SPDX-License-Identifier: MIT */
#include "common/model/retry.h"

#include "common/base/uuid.h"

int64_t retry_pause_ms(const struct retry *retry, uint32_t tries)
{
    int64_t pause = retry->first_ms;
    for (uint32_t i = 1; i < tries && pause < retry->most_ms; i++)
        pause *= 2;
    if (pause > retry->most_ms)
        pause = retry->most_ms;
    if (pause < 2)
        return pause;
    return pause - (int64_t)random_below((uint64_t)pause / 2);
}
