/* SPDX-License-Identifier: MIT */
#ifndef READERS_WEBHOOK_SENDER_H
#define READERS_WEBHOOK_SENDER_H

/* sender: looks through the history of all jobs, makes a delivery of each event that somebody
 * subscribed to, and sees them through. Of all processes of a site one sends; the others watch its
 * beat in the database and take over when it has not changed for a lease, by their own clocks. The
 * one that was replaced is told so by its next write; until it can write it begins no attempt once
 * three quarters of a lease have gone by since its last beat.
 *
 * One thread does everything that touches the database; receivers are waited for by the crew.
 * Threads: owner; sender_run() on a thread of its own. */

#include "readers/webhook/crew.h"

struct sender;

struct sender_config {
    const struct config *cfg;
    struct store *store;
    struct post_site *site;
};
MUST_USE enum err_code sender_open(const struct sender_config *cfg, struct sender **ret_sender,
                                   struct err *err);
void sender_free(struct sender *sender); /* NULL is allowed */
/* Until the end is asked for (daemon_stopping), or another process sends: ERR_FENCED. */
MUST_USE enum err_code sender_run(struct sender *sender, struct err *err);

#endif
