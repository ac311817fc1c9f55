/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_LISTEN_H
#define WEBAPP_LISTEN_H

/* listen: the events of a tenant's jobs as server-sent events. One thread reads the history of the
 * whole site as far as it is safe (common/store/feed_store.h), writes each event once into a ring,
 * and wakes those whom it concerns; a stream takes what it may see from the ring. A listener who
 * waits costs a connection and no thread. One who reads too slowly for the ring is dropped and told
 * so; one who comes back with the id of his last event is given what he missed from the database
 * first.
 *
 *   id: <number>   event: job       data: <the event as JSON>
 *   id: <number>   event: dropped   data: {"reason": ...}; the stream is over
 *   id: <number>                    nothing happened; whoever is gone is found out
 *
 * Threads: locked. */

#include "common/model/job.h"
#include "webapp/web.h"

#define LISTEN_KINDS_MAX 16
#define LISTEN_KIND_SIZE 25

struct listen_filter {
    char tenant[TENANT_SIZE];
    bool has_job;
    struct uuid job;
    char queue[QUEUE_NAME_SIZE]; /* "": any */
    unsigned states;             /* bit per enum job_state that an event leads to */
    char kinds[LISTEN_KINDS_MAX][LISTEN_KIND_SIZE];
    size_t kind_count; /* neither states nor kinds: any */
};

MUST_USE enum err_code listeners_open(struct web *web, struct listeners **ret_listeners,
                                      struct err *err);
void listeners_wake(struct listeners *listeners); /* something has happened */
void listeners_stop(struct listeners *listeners); /* all streams end; they can be taken up again */
void listeners_free(struct listeners *listeners); /* NULL is allowed */

struct listen_counters {
    size_t listeners;
    uint64_t sent;    /* events */
    uint64_t dropped; /* listeners who read too slowly */
};
void listeners_counters(struct listeners *listeners, struct listen_counters *ret_counters);

/* Answers with a stream. after: the number of the last event that he has; LISTEN_FROM_NOW.
 * ERR_OVERLOADED: too many, or the process has only just begun. */
#define LISTEN_FROM_NOW UINT64_MAX
MUST_USE enum err_code listen_start(struct request *req, const struct listen_filter *filter,
                                    uint64_t after, struct err *err);

#endif
