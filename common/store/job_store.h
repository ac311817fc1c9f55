/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_STORE_H
#define COMMON_STORE_JOB_STORE_H

/* job_store: the jobs table and its history. The only module that writes jobs.status: always by
 * compare-and-set, always with an event row per move in the same transaction. */

#include "common/model/job.h"
#include "common/store/job_new.h" /* submission */
#include "common/store/job_own.h" /* claim, move, hand back */
#include "common/store/store.h"

/* ---- reading ---------------------------------------------------------------------------- */

/* tenant NULL: of any tenant (for workers). ERR_NOT_FOUND. */
MUST_USE enum err_code job_store_get(struct store *store, const char *tenant, const struct uuid *id,
                                     struct job **ret_job, struct err *err);

#define JOB_STORE_PARAMS_MAX 128
#define JOB_STORE_PAGE_MAX 1000

/* A parameter of a search; text is borrowed for the call. */
struct store_param {
    enum { STORE_TEXT, STORE_INT, STORE_DOUBLE, STORE_BYTES } type;
    struct sv text;
    int64_t integer;
    double number;
};
enum job_order { JOB_ORDER_CREATED_DESC, JOB_ORDER_CREATED_ASC };

struct job_query {
    const char *tenant;
    const char *owner; /* NULL: any; the same for the next three */
    const char *queue;
    const char *name;
    const char *app_id;
    unsigned states; /* bit per enum job_state; 0: any */
    bool hidden_too;
    int64_t created_after_us; /* 0: any; the same for the next three */
    int64_t created_before_us;
    int64_t ended_after_us;
    int64_t ended_before_us;
    const char *where_sql; /* NULL, or a condition made by filter_to_sql */
    const struct store_param *params;
    size_t param_count;
    enum job_order order;
    const struct uuid *after; /* keyset: NULL for the first page */
    uint32_t limit;           /* 1..JOB_STORE_PAGE_MAX */
    /* Most rows of an index that a list looks at at once (few at first if the filter reads JSON),
     * and the time after which it looks at no more of them: a page may then be short, or empty, and
     * yet not be the last. 0: all of them. */
    uint32_t stretch;
    uint32_t look_ms;
};
struct job_list {
    struct job **items; /* without their requests */
    size_t count;
    bool more;        /* there is a further page, */
    struct uuid last; /* behind this id; not always that of an item */
};
MUST_USE enum err_code job_store_list(struct store *store, const struct job_query *query,
                                      struct job_list *ret_list, struct err *err);
/* How many jobs the query finds (its order and limit do not matter); no more than most are counted.
 */
MUST_USE enum err_code job_store_count(struct store *store, const struct job_query *query,
                                       uint32_t most, uint64_t *ret_count, struct err *err);
void job_list_done(struct job_list *list);

struct job_event {
    uint64_t seq;
    struct uuid job;
    int64_t at_us;
    char kind[25];
    bool has_from;
    enum job_state from;
    enum job_state to;
    enum job_condition condition;
    uint32_t epoch;
    uint64_t fence;
    bool has_worker;
    struct uuid worker;
    char actor[USER_SIZE];
    char detail[JOB_REASON_SIZE];
};
struct job_event_page {
    uint64_t after_seq; /* events with a higher number, in order */
    uint32_t limit;     /* at most so many */
};
struct job_event_list {
    struct job_event *items; /* free() */
    size_t count;
};
MUST_USE enum err_code job_store_events(struct store *store, const char *tenant,
                                        const struct uuid *id, struct job_event_page page,
                                        struct job_event_list *ret_list, struct err *err);
/* The status of each id (JOB_STATE_COUNT if it is not there), for waiters; count <= 256. */
MUST_USE enum err_code job_store_states(struct store *store, const struct uuid *ids, size_t count,
                                        enum job_state *ret_states, struct err *err);
struct job_count {
    char tenant[TENANT_SIZE];
    char queue[QUEUE_NAME_SIZE];
    enum job_state status;
    uint64_t jobs;
    int64_t oldest_us;
};
/* Jobs that have not ended, counted by tenant, queue and status. Freed with free(). */
MUST_USE enum err_code job_store_counts(struct store *store, struct job_count **ret_counts,
                                        size_t *ret_count, struct err *err);

/* ---- acts of users ------------------------------------------------------------------------ */

struct job_cancelled {
    enum job_state state; /* after the call */
    bool done;            /* CANCELLED now: nobody owned it */
    bool has_owner;       /* tell this worker */
    struct uuid owner_worker;
};
/* CANCELLED at once when nobody owns the job, else cancel_requested_at is set (once).
 * ERR_NOT_FOUND; ERR_STATE when it has ended (err.text names the state). */
MUST_USE enum err_code job_store_cancel(struct store *store, const char *tenant,
                                        const struct uuid *id, const char *actor,
                                        struct job_cancelled *ret, struct err *err);
/* ERR_NOT_FOUND; hiding a job that has not ended is ERR_STATE. */
MUST_USE enum err_code job_store_set_visible(struct store *store, const char *tenant,
                                             const struct uuid *id, bool visible, struct err *err);

#endif
