/* SPDX-License-Identifier: MIT */
#ifndef READERS_WEBHOOK_LANES_H
#define READERS_WEBHOOK_LANES_H

/* lanes: how many deliveries are under way to each receiver, and which receivers do not answer.
 * One that does not answer is tried by one delivery at a time, with growing pauses, until one gets
 * through: it costs the others no thread. Times are of clock_mono_ms(), and come from the caller.
 * Threads: owner. */

#include "common/base/err.h"
#include "common/base/uuid.h"

struct lanes;

struct lanes_config {
    unsigned most;         /* at once in one lane */
    int64_t first_hold_ms; /* after one delivery was not answered; then doubling */
    int64_t most_hold_ms;
};
MUST_USE enum err_code lanes_open(const struct lanes_config *cfg, struct lanes **ret_lanes,
                                  struct err *err);
void lanes_free(struct lanes *lanes); /* NULL is allowed */
/* How many more may begin now. */
unsigned lanes_room(const struct lanes *lanes, const struct uuid *lane, int64_t now_ms);
unsigned lanes_under_way(const struct lanes *lanes, const struct uuid *lane);
MUST_USE enum err_code lanes_begin(struct lanes *lanes, const struct uuid *lane, int64_t now_ms,
                                   struct err *err);
void lanes_end(struct lanes *lanes, const struct uuid *lane, bool answered, int64_t now_ms);

#endif
