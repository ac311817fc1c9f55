/* SPDX-License-Identifier: MIT */
#include "worker/ahead.h"

unsigned ahead_most(unsigned slots, unsigned deliveries)
{
    unsigned most = slots < AHEAD_MOST ? slots : AHEAD_MOST;
    unsigned room = slots < deliveries ? deliveries - slots : 0;
    return most < room ? most : room;
}

void ahead_init(struct ahead *ahead, unsigned slots)
{
    *ahead = (struct ahead){
        .streak_min = slots > AHEAD_STREAK ? slots : AHEAD_STREAK,
        .pause_ms = AHEAD_PAUSE_MS,
    };
}

void ahead_ended(struct ahead *ahead, int64_t now_ms, int64_t held_ms, bool full)
{
    if (held_ms > AHEAD_SHORT_MS || !full) {
        ahead->streak = 0;
        return;
    }
    ahead->streak++;
    if (!ahead->on && (ahead->streak < ahead->streak_min || now_ms < ahead->not_before_ms))
        return;
    if (!ahead->on)
        ahead->began_ms = now_ms;
    ahead->on = true;
    ahead->until_ms = now_ms + AHEAD_LASTS_MS;
}

void ahead_late(struct ahead *ahead, int64_t now_ms)
{
    if (ahead->on && now_ms - ahead->began_ms >= AHEAD_CALM_MS)
        ahead->pause_ms = AHEAD_PAUSE_MS;
    if (ahead->on || now_ms >= ahead->not_before_ms) {
        ahead->not_before_ms = now_ms + ahead->pause_ms;
        ahead->pause_ms *= 2;
        if (ahead->pause_ms > AHEAD_PAUSE_MAX_MS)
            ahead->pause_ms = AHEAD_PAUSE_MAX_MS;
    }
    ahead->on = false;
    ahead->streak = 0;
}

bool ahead_expired(struct ahead *ahead, int64_t now_ms)
{
    if (!ahead->on || now_ms < ahead->until_ms)
        return false;
    ahead->on = false;
    ahead->streak = 0;
    return true;
}
