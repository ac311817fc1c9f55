/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_OUTBOX_H
#define COMMON_SERVICE_OUTBOX_H

/* outbox: sends the messages that committed rows promise, and deletes the rows that the broker has
 * confirmed, in batches, on a thread of its own. Whatever was not confirmed is sent again: when the
 * broker is back, at start (rows that another process left), and once a row is age_ms old. Rows
 * that are under way are left alone; a message that two processes send is harmless.
 * Threads: locked. Memory: outbox_close() frees. */

#include "common/base/err.h"
#include "common/base/uuid.h"
#include "common/bus/publisher.h"
#include "common/store/store.h"

struct outbox;

struct outbox_config {
    struct store *store;       /* both must outlive the outbox, which must be closed */
    struct bus_publisher *pub; /* after the publisher (its callbacks come here) */
    uint32_t age_ms;
    const char *fault_confirmed; /* failure point passed at each confirmation */
};

struct outbox_message {
    uint64_t outbox_id;
    struct uuid job;
    uint32_t epoch;
    const char *tenant;
    const char *queue;
    const char *queue_type;  /* "quorum", "classic" */
    const char *traceparent; /* NULL or "": none */
};

MUST_USE enum err_code outbox_open(const struct outbox_config *cfg, struct outbox **ret_outbox,
                                   struct err *err);
/* Publishes soon; never waits and never fails: what cannot be sent now is sent later. */
void outbox_send(struct outbox *outbox, const struct outbox_message *message);
/* Rows that were sent and are not deleted yet. */
size_t outbox_under_way(struct outbox *outbox);
/* Deletes what was confirmed and ends the thread. Call it twice around bus_publisher_free(): */
void outbox_stop(struct outbox *outbox);  /* first: no more relaying */
void outbox_close(struct outbox *outbox); /* last, NULL is allowed */

struct outbox_counters {
    uint64_t sent, confirmed, relayed, failed;
};
void outbox_counters(struct outbox *outbox, struct outbox_counters *ret_counters);

#endif
