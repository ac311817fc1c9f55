/* SPDX-License-Identifier: MIT */
#ifndef READERS_COMMON_HANDLE_H
#define READERS_COMMON_HANDLE_H

/* handle: one message of a reader's queue: row, then job, then what was done; each step may be
 * repeated. Threads: owner (the reader's handler thread). */

#include "common/bus/publisher.h"
#include "common/config/config.h"
#include "readers/common/arrival.h"
#include "readers/common/notify.h"

struct handle {
    const struct config *cfg;
    struct store *store;
    struct bus_publisher *pub;
    struct notify *notify;
    enum dead_source source;
};

void handle_metrics_add(void);
/* ERR_OK: the message may be acknowledged. Anything else: nothing, or not all, was done; try the
 * whole again. */
MUST_USE enum err_code handle_delivery(const struct handle *handle,
                                       const struct bus_delivery *delivery, struct err *err);
/* For a message that cannot be handled, whatever the reason: it is kept for a person, with this
 * reason, if need be under another id and with its bytes and origin only. ERR_OK: acknowledge it.
 */
MUST_USE enum err_code handle_set_aside(const struct handle *handle,
                                        const struct bus_delivery *delivery, const char *reason,
                                        struct err *err);

#endif
