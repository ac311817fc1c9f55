/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_DESK_H
#define READERS_RECOVERY_DESK_H

/* desk: the tenants that this process serves, who of them it leads, and the causes that are due.
 * It leads a tenant when messages of sluice.<tenant>.recovery come to it: the broker gives them to
 * one process at a time (single active consumer), and each process sends one now and then, so that
 * whoever is that one learns it. Its number in the database (recovery_lead_take) then keeps all
 * former leaders from writing. One thread minds leading, some handle causes; those sleep until the
 * first is due.
 * Threads: owner for open and close; the rest any. */

#include "readers/recovery/handle.h"

struct desk;

struct desk_config {
    const struct handle_site *site;
    const struct bus_config *bus;
    struct bus_publisher *publisher;
};

MUST_USE enum err_code desk_open(const struct desk_config *cfg, struct desk **ret_desk,
                                 struct err *err);
/* Serves a tenant from now on; each call says that it is needed still. One thread calls this and
 * desk_rest(). */
MUST_USE enum err_code desk_serve(struct desk *desk, const char *tenant, struct err *err);
/* Tenants that nobody has said to be needed for so long cost nothing until they are again. */
void desk_rest(struct desk *desk, int64_t unneeded_ms);
/* Ends the threads; what is being handled is handled to its end. NULL is allowed. */
void desk_close(struct desk *desk);
DEFINE_AUTO(struct desk *, desk_close)

struct desk_leads {
    struct recovery_lead *items; /* free() */
    size_t count;
};
/* The tenants that it leads now. */
MUST_USE enum err_code desk_leads(struct desk *desk, struct desk_leads *ret_leads, struct err *err);
/* A write was refused because another process leads this tenant: this one stands by for it, with a
 * new consumer, which is the last in the broker's order. Its other tenants are not concerned. */
void desk_fence(struct desk *desk, const struct recovery_lead *lead);

#endif
