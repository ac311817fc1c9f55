/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_OVERVIEW_STORE_H
#define COMMON_STORE_OVERVIEW_STORE_H

/* overview_store: what a tenant's people look at first. Every read is by an index and bounded,
 * however many jobs there are. Threads: locked. */

#include "common/model/job.h"
#include "common/store/store.h"

#define OVERVIEW_COUNT_MAX 10000 /* rows are counted so far; one more tells that there are more */
#define OVERVIEW_WAITS_MAX 1000  /* waiting jobs that are looked at for the waits of queues */

struct overview_job {
    bool found;
    struct uuid id;
    char name[JOB_NAME_SIZE];
    char owner[USER_SIZE];
    char queue[QUEUE_NAME_SIZE];
    int64_t since_us; /* it was submitted, or started */
    uint32_t max_seconds;
};

struct overview_blocked {
    enum job_condition condition;
    uint32_t causes;
    uint64_t jobs;
    int64_t first_us;
};

struct overview_fleet {
    char version[33];
    uint32_t workers;
    uint32_t slots;
    uint32_t busy;
};

struct overview {
    int64_t now_us; /* by the database's clock */
    char database_version[128];
    uint64_t jobs[JOB_STATE_COUNT]; /* of the states that are not the end */
    struct overview_job waiting;    /* for the longest time */
    struct overview_job running;    /* has used most of its time */
    struct overview_blocked *blocked;
    size_t blocked_count;
    struct overview_fleet *fleet; /* live workers by version */
    size_t fleet_count;
    uint64_t dead;         /* open */
    uint64_t outbox;       /* of the site */
    int64_t outbox_age_us; /* of its oldest row; 0: none */
    bool has_leader;       /* some process leads, or led, the tenant's recovery */
    int64_t leader_age_us; /* since it said so */
};

MUST_USE enum err_code overview_store_read(struct store *store, const char *tenant,
                                           struct overview *ret_overview, struct err *err);
void overview_done(struct overview *overview);
#define OVERVIEW_AUTO __attribute__((cleanup(overview_done)))

/* ---- queues ---------------------------------------------------------------------------------- */

struct queue_load {
    char queue[QUEUE_NAME_SIZE];
    uint32_t workers; /* live */
    uint32_t slots;
    uint32_t busy;
    uint32_t takers;    /* of the workers: neither drained nor silent for longer than their lease */
    uint64_t waiting;   /* jobs, of those that were looked at */
    int64_t waiting_us; /* the oldest waiting job of the queue was submitted then; 0: not seen */
};
struct queue_loads {
    struct queue_load *items; /* free(); queues with a worker or a job that was looked at */
    size_t count;
    int64_t now_us;
    /* Not 0: not all waiting jobs were looked at; those that were not are younger than this. */
    int64_t looked_until_us;
};
MUST_USE enum err_code overview_store_queues(struct store *store, const char *tenant,
                                             struct queue_loads *ret_loads, struct err *err);
/* Jobs wait for it, and no worker takes any. */
bool queue_load_unserved(const struct queue_load *load);
/* That of a queue; NULL: it has no worker, and none of its jobs was looked at. */
const struct queue_load *queue_load_find(const struct queue_loads *loads, const char *queue);

struct queue_taker { /* a queue of which some worker takes jobs */
    char tenant[TENANT_SIZE];
    char queue[QUEUE_NAME_SIZE];
};
/* Those of all tenants; free(). */
MUST_USE enum err_code overview_store_takers(struct store *store, struct queue_taker **ret_takers,
                                             size_t *ret_count, struct err *err);

/* ---- rates ----------------------------------------------------------------------------------- */

struct job_rate {    /* what happened within a minute */
    uint64_t minute; /* minutes since 1970, UTC */
    uint64_t accepted;
    uint64_t started;
    uint64_t finished;
    uint64_t failed;
    uint64_t cancelled;
};
struct job_rate_list {
    struct job_rate *items; /* free(); minutes in which nothing happened are left out */
    size_t count;
};
MUST_USE enum err_code rate_store_read(struct store *store, const char *tenant, uint64_t since,
                                       struct job_rate_list *ret_list, struct err *err);
/* Counts the events that have come since somebody did so, of all tenants; nothing if that was less
 * than some seconds ago. Any number of processes may call it: each event is counted once.
 * *ret_more: there are so many that they want another call. Events of a transaction that took
 * longer than those seconds may be left out: these are figures for people. */
MUST_USE enum err_code rate_store_count(struct store *store, bool *ret_more, struct err *err);

#endif
