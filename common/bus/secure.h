/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BUS_SECURE_H
#define COMMON_BUS_SECURE_H

/* secure: TLS to the broker, whose certificate and name are checked (inside bus/ only).
 * Threads: owner. */

#include "common/base/hosts.h"
#include "common/bus/bus.h"

#include <amqp.h>

bool secure_is_wanted(const struct bus_config *cfg);
/* Connects to a node of cfg->host and shakes hands within cfg->connect_timeout_ms; TLS 1.2 at
 * least. The library makes the socket itself, so this cannot be given up early. ERR_BROKER_AWAY
 * tells what to do. */
MUST_USE enum err_code secure_open(const struct bus_config *cfg, const struct host *node,
                                   amqp_connection_state_t amqp, struct err *err);

#endif
