/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_SUBMITTER_H
#define COMMON_SERVICE_SUBMITTER_H

/* submitter: stores the jobs of concurrent requests together. While one transaction is on its way
 * the next jobs gather; when nothing is on its way a job is stored at once, by the thread that
 * brings it. So a lone request waits for nobody, and many share the cost of a commit.
 * A transaction that takes long (it waits for a lock) holds nobody up: after a while the next one
 * begins beside it. When the database is away all that wait are told so, not one group after the
 * other.
 * Threads: locked. Memory: items are lent from submitter_add() until their done() is called. */

#include "common/store/job_store.h"

struct submitter;

struct submit_item {
    struct job_item item; /* its job is filled in; done() finds the outcome */
    /* Called once, after the commit or the failure, on a thread that stores: it must not wait for
     * anything. It may free the item. */
    void (*done)(struct submit_item *item);
    struct submit_item *next; /* the submitter's */
};

/* store must outlive the submitter. waiting_max: jobs that may wait for a transaction. */
MUST_USE enum err_code submitter_open(struct store *store, unsigned waiting_max,
                                      struct submitter **ret_submitter, struct err *err);
/* ERR_OK: done() will be called, perhaps before this returns. Otherwise never: ERR_OVERLOADED,
 * ERR_STOPPING. */
MUST_USE enum err_code submitter_add(struct submitter *submitter, struct submit_item *item,
                                     struct err *err);
/* Waits until every item is done; later ones are refused. NULL is allowed. */
void submitter_stop(struct submitter *submitter);
void submitter_free(struct submitter *submitter); /* NULL is allowed */
DEFINE_AUTO(struct submitter *, submitter_free)

struct submitter_counters {
    uint64_t groups;
    uint64_t items;
    unsigned waiting;
    unsigned under_way; /* transactions */
};
void submitter_counters(struct submitter *submitter, struct submitter_counters *ret_counters);

#endif
