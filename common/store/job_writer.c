/* SPDX-License-Identifier: MIT */
#include "common/store/job_writer.h"

#include "common/base/fault.h"
#include "common/store/job_batch.h"
#include "common/store/job_row.h"

#include <assert.h>

struct job_writer {
    struct store *store;
    struct group writes;
};

/* ---- looks ---------------------------------------------------------------------------------- */

struct job_take {
    struct uuid id;
    job_judge_fn *judge;
    void *arg;
    struct job *job; /* NULL: there is none */
    struct job_gate gate;
};

struct looks {
    struct job_take *items[GROUP_MAX];
    size_t count;
};

static void forget_looks(struct looks *looks)
{
    for (size_t i = 0; i < looks->count; i++)
        job_free(TAKE(looks->items[i]->job));
}

struct look_row {
    struct job_row row;
    bool has_app, app_on, has_system, system_on;
    uint32_t limits[QUOTA_SCOPE_COUNT];
};

static enum err_code take_look(struct looks *looks, struct look_row *from, struct err *err)
{
    struct job_take *look = NULL;
    for (size_t i = 0; i < looks->count && !look; i++) {
        if (uuid_eq(&looks->items[i]->id, &from->row.job.id))
            look = looks->items[i];
    }
    if (!look)
        return err_set(err, ERR_DB, "the database told of a job that was not asked for");
    look->gate.app_off = from->has_app && !from->app_on;
    look->gate.system_off = from->has_system && !from->system_on;
    memcpy(look->gate.limits, from->limits, sizeof(from->limits));
    return job_row_take(&from->row, &look->job, err);
}

static enum err_code read_looks(struct txn *txn, void *ctx, struct err *err)
{
    struct looks *looks = ctx;
    struct look_row from = {0};
    struct db_arg ids[GROUP_MAX];
    size_t room = looks->count <= 1 ? 1 : looks->count <= 4 ? 4 : GROUP_MAX;
    enum db_stmt_id stmt = room == 1   ? DB_JOBS_LOOK_1
                           : room == 4 ? DB_JOBS_LOOK_4
                                       : DB_JOBS_LOOK_16;
    bool more = true;
    forget_looks(looks);
    for (size_t i = 0; i < room; i++)
        ids[i] = db_uuid(i < looks->count ? &looks->items[i]->id : NULL);
    enum err_code rc = db_select(
        txn->db, stmt, (struct db_args){ids, room},
        DB_COLS(JOB_ROW_COL_LIST(&from.row), COL_BOOL(&from.has_app), COL_BOOL(&from.app_on),
                COL_BOOL(&from.has_system), COL_BOOL(&from.system_on),
                COL_U32(&from.limits[QUOTA_TENANT]), COL_U32(&from.limits[QUOTA_OWNER]),
                COL_U32(&from.limits[QUOTA_SYSTEM]), COL_U32(&from.limits[QUOTA_SYSTEM_OWNER])),
        err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = take_look(looks, &from, err);
    }
    db_end(txn->db);
    job_row_done(&from.row);
    return rc;
}

static bool has_id(const struct looks *looks, const struct uuid *id)
{
    for (size_t i = 0; i < looks->count; i++) {
        if (uuid_eq(&looks->items[i]->id, id))
            return true;
    }
    return false;
}

/* Those of one statement: a job that is asked for twice is read twice, for each its own. */
static void next_looks(struct job_write **writes, size_t count, struct looks *ret_looks,
                       struct job_write **ret_of)
{
    ret_looks->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct job_write *write = writes[i];
        if (!write || has_id(ret_looks, &write->take->id))
            continue;
        ret_of[ret_looks->count] = write;
        ret_looks->items[ret_looks->count++] = write->take;
        writes[i] = NULL;
    }
}

static void judge_one(struct job_write *write)
{
    struct job_take *take = write->take;
    const struct job_claim *claim = take->judge(take->arg, &take->job, &take->gate);
    job_free(TAKE(take->job));
    write->is_claim = claim != NULL;
    if (claim)
        write->claim = own_claim_of(claim);
}

/* One statement, and what comes of it for each. */
static void look_at(struct job_writer *writer, struct looks *looks, struct job_write *const *of)
{
    struct err err = {0};
    enum err_code rc = store_once(writer->store, read_looks, looks, &err);
    if (rc)
        forget_looks(looks);
    for (size_t i = 0; i < looks->count; i++) {
        assert(of[i]);
        of[i]->rc = rc;
        of[i]->err = err;
        if (rc == ERR_OK)
            judge_one(of[i]);
    }
}

/* Reads and judges those that want it. What is not to be written has been dealt with then. */
static void look_first(struct job_writer *writer, struct group_item **items, size_t count)
{
    struct job_write *left[GROUP_MAX];
    struct job_write *of[GROUP_MAX] = {NULL};
    struct looks looks;
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        struct job_write *write = (struct job_write *)items[i];
        if (write->take)
            left[wanted++] = write;
    }
    for (next_looks(left, wanted, &looks, of); looks.count > 0;
         next_looks(left, wanted, &looks, of))
        look_at(writer, &looks, of);
}

/* ---- writes --------------------------------------------------------------------------------- */

static enum err_code write_one(struct txn *txn, struct job_write *write)
{
    err_clear(&write->err);
    write->rc = write->is_claim ? own_claim_txn(txn, &write->claim, &write->err)
                                : own_move_txn(txn, &write->move, &write->err);
    /* A refusal is this job's alone: it has written nothing. */
    return write->rc == ERR_CONFLICT || write->rc == ERR_FENCED ? ERR_OK : write->rc;
}

static enum err_code write_batch(struct txn *txn, void *ctx, struct err *err)
{
    struct job_batch *batch = ctx;
    /* What an earlier try may have written is found job by job. */
    bool apart = batch->apart || txn->commit_unknown;
    enum err_code rc = apart ? ERR_OK : job_batch_together(txn, batch, err);
    for (size_t i = 0; i < batch->count && rc == ERR_OK; i++) {
        struct job_write *write = batch->items[i];
        write->rc = ERR_OK;
        if (!apart && write->together)
            continue;
        rc = write_one(txn, write);
        if (rc)
            *err = write->err;
    }
    FAULT("job.writer.before_commit");
    return rc;
}

static bool is_of_one_job(enum err_code rc)
{
    return rc != ERR_OK && rc != ERR_DB_AWAY && rc != ERR_STOPPING;
}

static void write_all(struct job_writer *writer, struct job_batch *batch)
{
    struct err err = {0};
    enum err_code rc = store_txn(writer->store, write_batch, batch, &err);
    if (batch->mismatch) {
        batch->apart = true;
        batch->mismatch = false;
        err_clear(&err);
        rc = store_txn(writer->store, write_batch, batch, &err);
    }
    for (size_t i = 0; i < batch->count && rc; i++) {
        struct job_write *write = batch->items[i];
        struct job_batch alone = {.items = {write}, .count = 1, .apart = true};
        struct err failed = err;
        enum err_code each = rc;
        if (batch->count > 1 && is_of_one_job(rc)) { /* the others shall not suffer for it */
            err_clear(&failed);
            each = store_txn(writer->store, write_batch, &alone, &failed);
        }
        if (each) {
            write->rc = each;
            write->err = failed;
        }
    }
}

static void write_group(void *arg, struct group_item **items, size_t count)
{
    struct job_batch batch = {.count = 0};
    look_first(arg, items, count);
    for (size_t i = 0; i < count; i++) {
        struct job_write *write = (struct job_write *)items[i];
        if (!write->take || write->is_claim)
            batch.items[batch.count++] = write;
    }
    if (batch.count > 0)
        write_all(arg, &batch);
}

static enum err_code write(struct job_writer *writer, struct job_write *what, struct err *err)
{
    group_do(&writer->writes, &what->item);
    if (what->rc && err->code == ERR_OK)
        *err = what->err;
    return what->rc;
}

enum err_code job_writer_take(struct job_writer *writer, const struct uuid *id, job_judge_fn *judge,
                              void *arg, uint64_t *ret_fence, struct err *err)
{
    struct job_take take = {.id = *id, .judge = judge, .arg = arg};
    struct job_write what = {.take = &take};
    enum err_code rc = write(writer, &what, err);
    if (rc)
        return rc;
    if (what.is_claim)
        FAULT("job.claim.after_commit");
    *ret_fence = what.is_claim ? what.claim.fence : 0;
    return ERR_OK;
}

enum err_code job_writer_claim(struct job_writer *writer, const struct job_claim *claim,
                               uint64_t *ret_fence, struct err *err)
{
    struct job_write what = {.is_claim = true, .claim = own_claim_of(claim)};
    enum err_code rc = write(writer, &what, err);
    if (rc)
        return rc;
    FAULT("job.claim.after_commit");
    *ret_fence = what.claim.fence;
    return ERR_OK;
}

enum err_code job_writer_move(struct job_writer *writer, const struct job_hold *hold,
                              enum job_state from, struct job_moves moves,
                              const struct job_outcome *outcome, struct err *err)
{
    struct job_write what = {.move = own_move_of(hold, from, moves, outcome)};
    enum err_code rc = write(writer, &what, err);
    if (rc == ERR_OK)
        FAULT("job.move.after_commit");
    return rc;
}

/* ---- life ----------------------------------------------------------------------------------- */

enum err_code job_writer_open(struct store *store, struct job_writer **ret_writer, struct err *err)
{
    struct job_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return err_set(err, ERR_NOMEM, "no memory for a writer");
    writer->store = store;
    group_init(&writer->writes, write_group, writer);
    *ret_writer = writer;
    return ERR_OK;
}

void job_writer_free(struct job_writer *writer)
{
    if (!writer)
        return;
    group_done(&writer->writes);
    free(writer);
}
