/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RECEIVE_H
#define WORKER_RECEIVE_H

/* receive: what a slot does with a delivery (docs/ownership.md, "Claiming"). The message is a
 * wake-up only; the job's row decides, and every row of that table is one verdict here.
 * Threads: receive_judge any; receive_delivery the slot's. */

#include "common/model/job.h"
#include "common/store/worker_store.h"

struct worker;
struct slot;

enum receive_verdict {
    RECEIVE_UNKNOWN,   /* no such job: reject */
    RECEIVE_STALE,     /* another epoch: acknowledge */
    RECEIVE_ENDED,     /* terminal: do what follows once more, acknowledge */
    RECEIVE_HELD,      /* BLOCKED or PAUSED: wake recovery, acknowledge */
    RECEIVE_CLAIM,     /* nobody's: claim and run */
    RECEIVE_ADOPT,     /* ours, and a slot drives it: that slot gets the delivery */
    RECEIVE_DEFER,     /* a living worker's: look again later */
    RECEIVE_TAKE_OVER, /* its owner is not live, or lost track of it: take it over */
};

struct receive_facts {
    const struct job *job; /* NULL: there is none */
    uint32_t epoch;        /* of the message */
    const struct uuid *me;
    bool slot_known;               /* a slot of ours drives this job */
    enum worker_state owner_state; /* if somebody else owns it */
};

enum receive_verdict receive_judge(const struct receive_facts *facts);
/* The owner of this job is known by its row (not us), so its state has to be read. */
bool receive_needs_owner_state(const struct receive_facts *facts);

/* Deals with the delivery that the slot holds, up to its settlement. */
void receive_delivery(struct worker *w, struct slot *slot);
/* For slots_setup.give_back: gives back the delivery that the slot holds, which waited for too
 * long. One that nears the broker's limit of redeliveries goes by the defer exchange, as a fresh
 * copy. */
void receive_give_back(void *worker, struct slot *slot);

#endif
