/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_RECONCILE_H
#define READERS_RECOVERY_RECONCILE_H

/* reconcile: a thread that once per lease looks for what should never be (reconcile_store) in the
 * tenants that this process leads, says which tenants need to be served, and keeps the gauges.
 * Threads: owner. */

#include "readers/recovery/desk.h"

struct reconcile;

struct reconcile_config {
    const struct handle_site *site;
    struct desk *desk;
};

MUST_USE enum err_code reconcile_start(const struct reconcile_config *cfg,
                                       struct reconcile **ret_reconcile, struct err *err);
void reconcile_stop(struct reconcile *reconcile); /* NULL is allowed */

#endif
