/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_MONITOR_H
#define COMMON_SERVICE_MONITOR_H

/* monitor: the small listener of workers and readers: GET /livez, /readyz, /metrics. It has one
 * thread, few connections and a short timeout, and no way to change anything.
 * Threads: owner for start and stop; ready is called on the listener's thread and must not block
 * for long. */

#include "common/base/buf.h"
#include "common/base/err.h"

struct monitor;

struct monitor_config {
    const char *service;
    const char *listen; /* address */
    uint16_t port;
    /* Is the program ready? Adds members of a JSON object ("\"database\":true,...") to reasons. */
    bool (*ready)(void *arg, struct buf *reasons);
    void *arg;
};

MUST_USE enum err_code monitor_start(const struct monitor_config *cfg, struct monitor **ret_monitor,
                                     struct err *err);
uint16_t monitor_port(const struct monitor *monitor); /* the one that was bound */
void monitor_stop(struct monitor *monitor);           /* NULL is allowed */
DEFINE_AUTO(struct monitor *, monitor_stop)

#endif
