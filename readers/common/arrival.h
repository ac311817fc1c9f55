/* SPDX-License-Identifier: MIT */
#ifndef READERS_COMMON_ARRIVAL_H
#define READERS_COMMON_ARRIVAL_H

/* arrival: a delivery of a reader's queue as the row that is kept of it. No I/O, no clock.
 * Threads: any. Memory: the row borrows the delivery's body. */

#include "common/bus/consumer.h"
#include "common/store/dead_store.h"

struct arrival {
    struct dead_message message;
    struct dead_arrival row; /* its message is the one above */
    char fault[160];         /* why the body names no job; "" if it names one */
    bool is_short;           /* there was no memory for its digest: read it again */
    bool is_probe;           /* of `sluice doctor`: nobody needs to look at it */
};

/* ret must stay where it is (it points into itself).
 *
 * The digest is over what tells two messages apart: source, body, size, message id, where it was
 * published to, and for a dead letter the latest entry of x-death (queue, reason, count, time). So
 * a message that is delivered or dead-lettered twice has one row; two messages with equal bytes
 * and no id that die in the same second of the same queue have one as well, counted twice. */
void arrival_read(enum dead_source source, const struct bus_delivery *delivery,
                  struct arrival *ret);

#endif
