/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_STORE_H
#define COMMON_STORE_JOB_STORE_H

/* job_store: the jobs table and its history. The only module that writes jobs.status: always by
 * compare-and-set, always with an event row per move in the same transaction. */

#include "common/model/job.h"
#include "common/store/store.h"

/* ---- submission ------------------------------------------------------------------------- */

struct job_new {
    struct uuid id; /* made by the caller, so that a retry after an unknown commit finds it */
    const char *tenant;
    const char *owner;
    const char *name;
    const char *app_id; /* NULL or "" for none; the same for app_version and system_id */
    const char *app_version;
    const char *system_id;
    const char *queue;
    uint32_t node_count;
    uint32_t cores_per_node;
    uint32_t memory_mb;
    uint32_t max_seconds;
    struct sv request;           /* JSON */
    const char *tags;            /* JSON array */
    const char *idempotency_key; /* NULL for none */
    uint8_t body_hash[32];       /* SHA-256 of the request; used with a key only */
    const char *detail;          /* for the first event, e.g. "resubmitted from ..."; may be NULL */
};

struct job_submitted {
    struct uuid id; /* of an earlier job if replayed */
    bool replayed;  /* the key was used before for the same body: nothing was written */
    uint64_t outbox_id;
};

/* One transaction: job row (PENDING, epoch 1), event, outbox row, idempotency key.
 * ERR_IDEMPOTENCY: the key was used for another body. An unknown commit is settled by looking for
 * the id. */
MUST_USE enum err_code job_store_submit(struct store *store, const struct job_new *job,
                                        struct job_submitted *ret, struct err *err);
/* All or none, without idempotency keys; ret holds count items. */
MUST_USE enum err_code job_store_submit_many(struct store *store, const struct job_new *jobs,
                                             size_t count, struct job_submitted *ret,
                                             struct err *err);

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
    const char *where_sql; /* NULL, or a condition made by filter_to_sql */
    const struct store_param *params;
    size_t param_count;
    enum job_order order;
    const struct uuid *after; /* keyset: NULL for the first page */
    uint32_t limit;           /* 1..JOB_STORE_PAGE_MAX */
};

struct job_list {
    struct job **items;
    size_t count;
    bool more; /* there is a further page after the last item */
};
MUST_USE enum err_code job_store_list(struct store *store, const struct job_query *query,
                                      struct job_list *ret_list, struct err *err);
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
/* Events with seq > after_seq in order; at most limit. *ret_events is freed with free(). */
MUST_USE enum err_code job_store_events(struct store *store, const char *tenant,
                                        const struct uuid *id, uint64_t after_seq, uint32_t limit,
                                        struct job_event **ret_events, size_t *ret_count,
                                        struct err *err);
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

/* ---- ownership (02-ownership: every write of an owner is guarded by its fence) -------------- */

/* One step of a job's history. Several steps in one call are one transaction. */
struct job_move {
    enum job_state to;
    const char *kind; /* of the event: "claimed", "status", "lost", "blocked", ...; NULL: status */
    const char *detail; /* NULL for none */
};
#define JOB_MOVES_MAX 12

/* What a run left; written with the move that records it. NULL pointers and zeros leave columns. */
struct job_outcome {
    enum job_condition condition; /* merged with job_condition_keep */
    bool has_exit_code;
    int exit_code;
    int term_signal;
    const char *reason; /* NULL: none */
    uint64_t run_fence; /* 0: no run */
    bool attempt;       /* charge one attempt: the job itself ended this run */
    int64_t started_us; /* 0: leave (set by the database at the first move to RUNNING) */
    struct job_stream out;
    struct job_stream errs;
};

struct job_claim {
    struct uuid id;
    uint32_t epoch;
    struct uuid worker;
    /* NULL: the job has no owner. Otherwise a takeover from this owner with this fence. */
    const struct uuid *from_worker;
    uint64_t from_fence;
    bool charge_loss;             /* losses + 1 */
    enum job_state from;          /* the state that was read */
    const struct job_move *moves; /* first the claim itself (to == from), then further moves */
    size_t move_count;
};
/* owner = worker, fence + 1. ERR_CONFLICT: the row is no longer as expected; read it again. An
 * unknown commit is settled by reading owner and fence. The claim also fails with ERR_CONFLICT
 * when the job has ended. */
MUST_USE enum err_code job_store_claim(struct store *store, const struct job_claim *claim,
                                       uint64_t *ret_fence, struct err *err);

struct job_hold { /* an ownership, as its holder knows it */
    struct uuid id;
    struct uuid worker;
    uint64_t fence;
};
/* Moves of the holder. The last move decides: a terminal state, BLOCKED or PAUSED gives up the
 * ownership (owner NULL) and, if terminal, sets ended_at. With a cancel request pending a move
 * that is not to CANCELLED or another terminal state is still allowed: the holder acts on it.
 * ERR_FENCED: the row has another owner, fence or state: the holder has lost it. Repeating a call
 * whose commit was unknown answers ERR_OK when its moves are there. outcome may be NULL. */
MUST_USE enum err_code job_store_move(struct store *store, const struct job_hold *hold,
                                      enum job_state from, const struct job_move *moves,
                                      size_t move_count, const struct job_outcome *outcome,
                                      struct err *err);
/* Gives a job back untouched (drain): owner NULL, epoch + 1, state as it is, outbox row. */
MUST_USE enum err_code job_store_hand_back(struct store *store, const struct job_hold *hold,
                                           enum job_state from, const char *detail,
                                           uint64_t *ret_outbox_id, uint32_t *ret_epoch,
                                           struct err *err);

struct job_hold_row {
    struct uuid id;
    uint64_t fence;
    enum job_state status;
};
/* Jobs of a worker with a cancel request; freed with free(). Indexed, normally empty. */
MUST_USE enum err_code job_store_cancel_requests(struct store *store, const struct uuid *worker,
                                                 struct job_hold_row **ret_rows, size_t *ret_count,
                                                 struct err *err);
/* All jobs that have this owner and have not ended; freed with free(). */
MUST_USE enum err_code job_store_owned(struct store *store, const struct uuid *worker,
                                       struct job_hold_row **ret_rows, size_t *ret_count,
                                       struct err *err);

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
