/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_LOST_STORE_H
#define COMMON_STORE_LOST_STORE_H

/* lost_store: jobs whose message the broker has lost: what the database knows of the queues of a
 * tenant, the candidates of one queue, and new messages for them.
 * Threads: locked. Memory: lists are the caller's; free() their items.
 *
 * A job waits on a queue when it is active and nobody owns it. For such a job `updated_at` is the
 * time of its last message: whatever gives it a message changes the row in the same transaction. */

#include "common/store/recovery_store.h"

struct lost_queue { /* that jobs wait on, or that was served lately */
    char name[QUEUE_NAME_SIZE];
    char type[16];        /* "quorum", "classic" */
    uint64_t waiting;     /* jobs */
    uint64_t unsent;      /* messages in the outbox */
    int64_t unsent_us;    /* age of the oldest of these; 0: there is none */
    int64_t oldest_us;    /* the earliest message of a waiting job; 0: none waits */
    int64_t passed_us;    /* a job submitted then was claimed: earlier messages were delivered */
    uint64_t claims_head; /* its newest event that has a fence; 0: none since look->after */
};
struct lost_queues {
    struct lost_queue *items;
    size_t count;
    uint64_t head; /* of the tenant's events; for the next look */
    bool complete; /* all events since then were read */
};
struct lost_look {
    const char *tenant;
    uint64_t after; /* events; 0: only the newest are read */
};
/* Reads each row of a waiting job once. */
MUST_USE enum err_code lost_store_look(struct store *store, const struct lost_look *look,
                                       struct lost_queues *ret_queues, struct err *err);

struct lost_search {
    const char *tenant;
    const char *queue;
    int64_t age_us;    /* the last message is older than this */
    int64_t before_us; /* and was sent before; 0: at any time */
    uint32_t limit;
};
struct lost_jobs {
    struct uuid *items;
    size_t count;
};
/* Waiting jobs, those with the oldest message first. */
MUST_USE enum err_code lost_store_find(struct store *store, const struct lost_search *search,
                                       struct lost_jobs *ret_jobs, struct err *err);

#define LOST_AT_ONCE 64
struct lost_resend {
    const struct recovery_lead *lead;
    const struct uuid *jobs;
    size_t count;   /* 1..LOST_AT_ONCE */
    int64_t age_us; /* as in the search: a job that got a message since is left alone */
};
/* One transaction: epoch + 1, outbox row, event. ret_messages: to be sent now. ERR_FENCED. */
MUST_USE enum err_code lost_store_resend(struct store *store, const struct lost_resend *resend,
                                         struct outbox_list *ret_messages, struct err *err);

#endif
