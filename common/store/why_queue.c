/* SPDX-License-Identifier: MIT */
#include "common/store/why_queue.h"

#include "common/store/reading.h"

#define LOOK_MAX                                                                                   \
    (2 * WHY_AHEAD_MAX) /* rows of waiting jobs that are looked at, of whatever queue */
#define RUNS_MAX 400u   /* finished ones; half as many that failed */
#define SUBJECT_SIZE 160
#define CHANGE_SLACK_US                                                                            \
    INT64_C(2000000) /* between a row and the audit entry of the same change                       \
                      */

struct look {
    const char *tenant;
    const char *name;
    const struct job *job;
    int64_t lease_us;
    struct why_queue *queue;
};

/* ---- the queue and its workers --------------------------------------------------------------- */

static enum err_code read_row(struct db *db, const struct look *look, struct err *err)
{
    struct why_queue *queue = look->queue;
    return db_one(db, DB_WHY_QUEUE, DB_ARGS(db_text(look->tenant), db_text(look->name)),
                  DB_COLS(COL_BOOL(&queue->enabled), COL_U32(&queue->version),
                          COL_I64(&queue->changed_age_us)),
                  &queue->exists, err);
}

static enum err_code read_fleet(struct db *db, const struct look *look, struct err *err)
{
    struct why_queue *queue = look->queue;
    const struct db_arg lease = db_i64(look->lease_us);
    bool found = false;
    return db_one(
        db, DB_WHY_FLEET,
        DB_ARGS(lease, lease, lease, lease, lease, db_text(look->tenant), db_text(look->name)),
        DB_COLS(COL_U32(&queue->workers), COL_U32(&queue->silent), COL_U32(&queue->drained),
                COL_U32(&queue->slots), COL_U32(&queue->busy), COL_U32(&queue->usable),
                COL_U32(&queue->free), COL_I64(&queue->beat_age_us)),
        &found, err);
}

static enum err_code read_runs(struct db *db, const struct look *look, struct err *err)
{
    struct why_queue *queue = look->queue;
    bool found = false;
    return db_one(db, DB_WHY_RUN_TIME,
                  DB_ARGS(db_text(look->tenant), db_u64(RUNS_MAX), db_text(look->tenant),
                          db_u64(RUNS_MAX / 2), db_text(look->name)),
                  DB_COLS(COL_U32(&queue->runs), COL_I64(&queue->run_us)), &found, err);
}

static enum err_code read_queue(struct txn *txn, void *ctx, struct err *err)
{
    const struct look *look = ctx;
    *look->queue = (struct why_queue){0};
    enum err_code rc = read_row(txn->db, look, err);
    if (rc == ERR_OK)
        rc = read_fleet(txn->db, look, err);
    if (rc == ERR_OK)
        rc = read_runs(txn->db, look, err);
    return rc;
}

/* What is not there is left as it is. */
static enum err_code or_none(enum err_code rc, struct err *missing, struct err *err)
{
    if (rc == ERR_NOT_FOUND)
        return ERR_OK;
    if (rc)
        *err = *missing;
    return rc;
}

static enum err_code read_worker(struct store *store, const struct look *look, struct err *err)
{
    struct why_queue *queue = look->queue;
    struct err missing = {0};
    enum err_code rc = worker_store_of_queue(store, look->tenant, look->name, queue->workers > 0,
                                             &queue->worker, &missing);
    queue->has_worker = rc == ERR_OK;
    return or_none(rc, &missing, err);
}

static enum err_code read_drain(struct store *store, const struct look *look, struct err *err)
{
    struct why_queue *queue = look->queue;
    struct err missing = {0};
    char subject[SUBJECT_SIZE];
    char id[UUID_TEXT_SIZE];
    (void)snprintf(subject, sizeof(subject), "/v1/workers/%s/drain",
                   uuid_text(&queue->worker.id, id));
    enum err_code rc =
        audit_log_newest(store, look->tenant, "worker_drain", subject, &queue->drain, &missing);
    return or_none(rc, &missing, err);
}

/* Who disabled it, if that was its last change. */
static enum err_code read_change(struct store *store, const struct look *look, struct err *err)
{
    struct why_queue *queue = look->queue;
    struct err missing = {0};
    char subject[SUBJECT_SIZE];
    struct audit_act act = {0};
    (void)snprintf(subject, sizeof(subject), "/v1/queues/%s", look->name);
    enum err_code rc = audit_log_newest(store, look->tenant, "queue_put", subject, &act, &missing);
    int64_t apart_us = act.age_us - queue->changed_age_us;
    if (rc == ERR_OK && apart_us < CHANGE_SLACK_US && apart_us > -CHANGE_SLACK_US)
        queue->change = act;
    return or_none(rc, &missing, err);
}

enum err_code why_queue_read(struct store *store, const char *tenant, const char *name,
                             uint32_t lease_ms, struct why_queue *ret_queue, struct err *err)
{
    struct look look = {tenant, name, NULL, (int64_t)lease_ms * 1000, ret_queue};
    enum err_code rc = store_once(store, read_queue, &look, err);
    if (rc == ERR_OK)
        rc = read_worker(store, &look, err);
    if (rc == ERR_OK && ret_queue->workers > 0 && ret_queue->worker.draining)
        rc = read_drain(store, &look, err);
    if (rc == ERR_OK && ret_queue->exists && !ret_queue->enabled)
        rc = read_change(store, &look, err);
    return rc;
}

/* ---- what is before a job -------------------------------------------------------------------- */

static enum err_code count_ahead(struct txn *txn, void *ctx, struct err *err)
{
    const struct look *look = ctx;
    struct why_queue *queue = look->queue;
    uint64_t looked_at = 0;
    uint64_t ahead = 0;
    bool found = false;
    enum err_code rc = db_one(txn->db, DB_WHY_AHEAD,
                              DB_ARGS(db_text(look->name), db_text(look->tenant),
                                      db_uuid(&look->job->id), db_u64(LOOK_MAX)),
                              DB_COLS(COL_U64(&looked_at), COL_U64(&ahead)), &found, err);
    queue->ahead_more = ahead > WHY_AHEAD_MAX || looked_at >= LOOK_MAX;
    queue->ahead = (uint32_t)(ahead > WHY_AHEAD_MAX ? WHY_AHEAD_MAX : ahead);
    return rc;
}

static enum err_code read_owners(struct store *store, const struct look *look, struct err *err)
{
    struct why_owner row;
    struct why_queue *queue = look->queue;
    ROWS_AUTO struct rows rows = ROWS_OF(struct why_owner);
    struct reading reading = {.stmt = DB_WHY_AHEAD_OWNERS,
                              .args = DB_ARGS(db_text(look->tenant), db_uuid(&look->job->id),
                                              db_u64(LOOK_MAX), db_text(look->name),
                                              db_u64(WHY_OWNERS_MAX)),
                              .cols = DB_COLS(COL_TEXT(row.name), COL_U32(&row.jobs)),
                              .row = &row,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    queue->owner_count = rows.count;
    if (rows.count > 0)
        memcpy(queue->owners, rows.items, rows.count * rows.item_size);
    return ERR_OK;
}

enum err_code why_queue_ahead(struct store *store, const struct job *job, struct why_queue *queue,
                              struct err *err)
{
    struct look look = {job->tenant, job->queue, job, 0, queue};
    enum err_code rc = store_once(store, count_ahead, &look, err);
    if (rc == ERR_OK && queue->ahead > 0 && !queue->ahead_more)
        rc = read_owners(store, &look, err);
    return rc;
}
