/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_ROW_H
#define COMMON_STORE_JOB_ROW_H

/* job_row: what the job_* files of this folder share: a row of jobs being read, and the rows of
 * history being written. Threads: owner. */

#include "common/store/job_store.h"
#include "common/store/pool.h"

#define STATE_TEXT_SIZE 25
#define CONDITION_TEXT_SIZE 33
#define KEPT_CONDITIONS_SIZE ((size_t)JOB_CONDITION_COUNT * CONDITION_TEXT_SIZE)

/* ---- reading ------------------------------------------------------------------------------ */

struct job_row { /* the selection's columns go here; then job_row_take() makes a job of it */
    struct job job;
    char status[STATE_TEXT_SIZE];
    char condition[CONDITION_TEXT_SIZE];
};

/* The columns of JOB_COLS, or of JOB_LIST_COLS, in db_stmt.def. */
#define JOB_ROW_COL_LIST(row)                                                                      \
    COL_UUID(&(row)->job.id), COL_TEXT((row)->job.tenant), COL_TEXT((row)->job.owner),             \
        COL_TEXT((row)->job.name), COL_TEXT((row)->job.app_id), COL_TEXT((row)->job.app_version),  \
        COL_TEXT((row)->job.system_id), COL_TEXT((row)->job.queue), COL_TEXT((row)->status),       \
        COL_TEXT((row)->condition), COL_U32(&(row)->job.epoch), COL_U64(&(row)->job.fence),        \
        COL_UUID_OR(&(row)->job.owner_worker, &(row)->job.has_owner),                              \
        COL_BOOL(&(row)->job.cancel_requested), COL_TEXT((row)->job.cancel_by),                    \
        COL_U32(&(row)->job.node_count), COL_U32(&(row)->job.cores_per_node),                      \
        COL_U32(&(row)->job.memory_mb), COL_U32(&(row)->job.max_seconds),                          \
        COL_U32(&(row)->job.attempts), COL_U32(&(row)->job.losses),                                \
        COL_I32_OR(&(row)->job.exit_code, &(row)->job.has_exit_code),                              \
        COL_I32(&(row)->job.term_signal), COL_TEXT((row)->job.reason),                             \
        COL_U64(&(row)->job.run_fence), COL_U64(&(row)->job.out.total_bytes),                      \
        COL_U64(&(row)->job.out.kept_bytes), COL_U64(&(row)->job.errs.total_bytes),                \
        COL_U64(&(row)->job.errs.kept_bytes), COL_BOOL(&(row)->job.visible),                       \
        COL_I64(&(row)->job.created_us), COL_I64(&(row)->job.updated_us),                          \
        COL_I64(&(row)->job.started_us), COL_I64(&(row)->job.ended_us),                            \
        COL_HEAP(&(row)->job.request), COL_HEAP(&(row)->job.tags)
#define JOB_ROW_COLS(row) DB_COLS(JOB_ROW_COL_LIST(row))

/* Moves the row's texts into a job of its own. */
MUST_USE enum err_code job_row_take(struct job_row *row, struct job **ret_job, struct err *err);
void job_row_done(struct job_row *row);
MUST_USE enum err_code state_of(const char *text, enum job_state *ret_state, struct err *err);
MUST_USE enum err_code condition_of(const char *text, enum job_condition *ret_condition,
                                    struct err *err);
enum err_code no_such_job(const struct uuid *id, struct err *err);

/* ---- history ------------------------------------------------------------------------------ */

struct history { /* what the events of one call share */
    const struct uuid *job;
    const struct uuid *worker; /* NULL: nobody's */
    const char *actor;         /* NULL: nobody */
    uint64_t fence;
    enum job_state from;          /* the state before the first move */
    enum job_condition condition; /* of the last event */
};

/* One event per move, in order; *ret_seq is that of the first one. */
MUST_USE enum err_code history_write(struct db *db, const struct history *history,
                                     const struct job_move *moves, size_t count, uint64_t *ret_seq,
                                     struct err *err);
/* The event that an earlier try of this call wrote (0: none) is in the database. */
MUST_USE enum err_code history_has(struct txn *txn, const struct uuid *job, uint64_t seq,
                                   bool *ret_there, struct err *err);
/* Each move is a legal one: anything else is a mistake of ours. */
bool moves_are_legal(enum job_state from, const struct job_move *moves, size_t count);
/* The first move to this state; NULL: none. */
const struct job_move *moves_find(enum job_state state, const struct job_move *moves, size_t count);

/* The conditions that new_one does not replace (job_condition_keep), as FIND_IN_SET wants them. */
const char *kept_conditions(enum job_condition new_one, char *ret_text, size_t size);

/* ---- text from outside ---------------------------------------------------------------------- */

/* At most size - 1 bytes of text into ret_text, cut between two characters; bytes that are not
 * UTF-8 become '?': a strange byte in a message must not stop a job from ending.
 * NULL stays NULL. */
const char *text_fit(const char *text, char *ret_text, size_t size);
#define DETAIL_SIZE JOB_REASON_SIZE

#endif
