/* SPDX-License-Identifier: MIT */
#include "common/store/why_run.h"

#include "common/store/reading.h"

#define NAMED_MAX 300u /* of its owner's newest jobs that are looked at */

struct look {
    const struct job *job;
    struct why_run run;
};

static enum err_code read_losses(struct txn *txn, struct look *look, struct err *err)
{
    struct why_loss row;
    ROWS_AUTO struct rows rows = ROWS_OF(struct why_loss);
    struct reading reading = {.stmt = DB_WHY_LOSSES,
                              .args = DB_ARGS(db_uuid(&look->job->id), db_u64(WHY_LOSSES_MAX)),
                              .cols = DB_COLS(COL_I64(&row.at_us), COL_TEXT(row.worker),
                                              COL_TEXT(row.host), COL_TEXT(row.detail)),
                              .row = &row,
                              .rows = &rows};
    enum err_code rc = read_rows(txn->db, &reading, err);
    if (rc)
        return rc;
    look->run.loss_count = rows.count;
    if (rows.count > 0)
        memcpy(look->run.losses, rows.items, rows.count * rows.item_size);
    return ERR_OK;
}

static enum err_code read_named(struct txn *txn, struct look *look, struct err *err)
{
    const struct job *job = look->job;
    bool found = false;
    return db_one(
        txn->db, DB_WHY_NAMED,
        DB_ARGS(db_text(job->tenant), db_text(job->owner), db_u64(NAMED_MAX), db_text(job->name)),
        DB_COLS(COL_U32(&look->run.named), COL_I64(&look->run.named_us)), &found, err);
}

static enum err_code read_run(struct txn *txn, void *ctx, struct err *err)
{
    struct look *look = ctx;
    const struct job *job = look->job;
    enum err_code rc = ERR_OK;
    look->run = (struct why_run){0};
    bool found = false;
    if (job->status == JOB_PENDING)
        rc = db_one(txn->db, DB_WHY_ROUTED, DB_ARGS(db_uuid(&job->id)),
                    DB_COLS(COL_TEXT(look->run.routed)), &found, err);
    if (rc == ERR_OK && job->losses > 0)
        rc = read_losses(txn, look, err);
    if (rc == ERR_OK && job->status == JOB_RUNNING)
        rc = read_named(txn, look, err);
    return rc;
}

enum err_code why_run_read(struct store *store, const struct job *job, struct why_run *ret_run,
                           struct err *err)
{
    struct look look = {.job = job};
    enum err_code rc = store_once(store, read_run, &look, err);
    if (rc == ERR_OK)
        *ret_run = look.run;
    return rc;
}
