/* SPDX-License-Identifier: MIT */
#include "common/store/recovery_store.h"

#include "common/base/clock.h"
#include "common/store/job_row.h"
#include "common/store/reading.h"

#include <assert.h>

/* Batches of blocked jobs leave: back to their queues, or to the end. Locks are taken in the order
 * leader, jobs, blocked rows, cause: whoever blocks or cancels a job keeps to it, too. */

#define AT_ONCE 64

struct batch {
    const struct recovery_lead *lead;
    const struct recovery_batch *what;
    const struct recovery_verdict *verdict;
    bool release; /* else: give up */
    int64_t began_ms;
    struct uuid ids[RECOVERY_BATCH_MAX + 1];
    size_t count;
    char detail[JOB_REASON_SIZE];
    const char *detail_text;
    struct rows messages;
    struct recovery_done done;
};

static enum err_code read_ids(struct txn *txn, struct batch *batch, struct err *err)
{
    const struct recovery_batch *what = batch->what;
    struct uuid id;
    bool more = true;
    batch->count = 0;
    enum err_code rc =
        db_select(txn->db, DB_BATCH_IDS,
                  DB_ARGS(db_uuid(&what->id), db_u64(what->asked), db_i64(what->waited_ms * 1000),
                          db_u64(what->asked), db_u64(what->limit + 1)),
                  DB_COLS(COL_UUID(&id)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            batch->ids[batch->count++] = id;
    }
    db_end(txn->db);
    batch->done.more = batch->count > what->limit;
    if (batch->done.more)
        batch->count = what->limit;
    return rc;
}

/* ---- up to AT_ONCE jobs --------------------------------------------------------------------- */

struct part { /* ids fill all places: the last one is repeated */
    struct batch *batch;
    struct db_arg ids[AT_ONCE];
};

/* Arguments of a statement: some before the ids, some behind them. */
static enum err_code run(struct txn *txn, enum db_stmt_id stmt, struct db_args before,
                         const struct part *part, struct db_args behind, struct err *err)
{
    struct db_arg args[AT_ONCE + 4];
    size_t n = 0;
    for (size_t i = 0; i < before.count; i++)
        args[n++] = before.items[i];
    memcpy(args + n, part->ids, sizeof(part->ids));
    n += AT_ONCE;
    for (size_t i = 0; i < behind.count; i++)
        args[n++] = behind.items[i];
    return db_exec(txn->db, stmt, (struct db_args){args, n}, NULL, err);
}

static enum err_code lock_jobs(struct txn *txn, const struct part *part, struct err *err)
{
    struct uuid id;
    bool more = true;
    enum err_code rc = db_select(txn->db, DB_BATCH_LOCK, (struct db_args){part->ids, AT_ONCE},
                                 DB_COLS(COL_UUID(&id)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            part->batch->done.jobs++;
    }
    db_end(txn->db);
    return rc;
}

static enum err_code read_messages(struct txn *txn, const struct part *part, uint64_t first,
                                   struct err *err)
{
    struct db_arg args[AT_ONCE + 1] = {db_u64(first)};
    struct outbox_row row;
    struct reading reading = {.stmt = DB_RELEASE_MESSAGES,
                              .args = {args, AT_ONCE + 1},
                              .cols = DB_COLS(COL_U64(&row.id), COL_UUID(&row.job),
                                              COL_U32(&row.epoch), COL_TEXT(row.tenant),
                                              COL_TEXT(row.queue), COL_TEXT(row.queue_type)),
                              .row = &row,
                              .rows = &part->batch->messages};
    memcpy(args + 1, part->ids, sizeof(part->ids));
    return read_rows(txn->db, &reading, err);
}

static enum err_code release_part(struct txn *txn, const struct part *part, struct err *err)
{
    const struct batch *batch = part->batch;
    enum err_code rc = run(txn, DB_RELEASE_EVENTS,
                           DB_ARGS(db_text(batch->what->actor), db_text(batch->detail_text)), part,
                           DB_NO_ARGS, err);
    if (rc == ERR_OK)
        rc = run(txn, DB_RELEASE_OUTBOX, DB_NO_ARGS, part, DB_NO_ARGS, err);
    if (rc)
        return rc;
    uint64_t first = db_insert_id(txn->db);
    rc = run(txn, DB_RELEASE_JOBS, DB_NO_ARGS, part, DB_NO_ARGS, err);
    return rc ? rc : read_messages(txn, part, first, err);
}

static enum err_code give_up_part(struct txn *txn, const struct part *part, struct err *err)
{
    const struct batch *batch = part->batch;
    enum err_code rc = run(txn, DB_GIVE_UP_EVENTS,
                           DB_ARGS(db_text(batch->what->actor), db_text(batch->detail_text)), part,
                           DB_NO_ARGS, err);
    if (rc)
        return rc;
    return run(txn, DB_GIVE_UP_JOBS, DB_ARGS(db_text(batch->detail_text)), part, DB_NO_ARGS, err);
}

static enum err_code handle_part(struct txn *txn, struct batch *batch, size_t from, struct err *err)
{
    struct part part = {.batch = batch};
    for (size_t i = 0; i < AT_ONCE; i++) {
        size_t at = from + i < batch->count ? from + i : batch->count - 1;
        part.ids[i] = db_uuid(&batch->ids[at]);
    }
    enum err_code rc = lock_jobs(txn, &part, err);
    if (rc == ERR_OK)
        rc = batch->release ? release_part(txn, &part, err) : give_up_part(txn, &part, err);
    if (rc)
        return rc;
    return run(txn, DB_BLOCKED_DELETE_64, DB_NO_ARGS, &part, DB_ARGS(db_uuid(&batch->what->id)),
               err);
}

/* ---- the transaction ------------------------------------------------------------------------ */

/* What the batch takes is part of the pause. */
static int64_t next_us(const struct batch *batch)
{
    int64_t next_ms = batch->verdict->next_ms - (clock_mono_ms() - batch->began_ms);
    return next_ms > 0 ? next_ms * 1000 : 0;
}

static enum err_code keep_verdict(struct txn *txn, struct batch *batch, struct err *err)
{
    const struct recovery_verdict *verdict = batch->verdict;
    const struct recovery_batch *what = batch->what;
    char detail[JOB_REASON_SIZE];
    uint64_t rows = 0;
    bool goes_on = batch->done.more;
    enum err_code rc = db_exec(
        txn->db, DB_RECOVERY_RELEASED,
        DB_ARGS(db_u64(verdict->tests), db_u64(batch->release), db_u64(batch->release),
                db_text(verdict->result),
                db_text(text_fit(verdict->detail, detail, sizeof(detail))),
                db_u64(goes_on ? what->ramp : 0), db_u64(batch->release ? batch->done.jobs : 0),
                db_u64(what->asked && !goes_on), db_i64(what->asked_us),
                db_u64(what->waited_ms > 0), db_u64(what->asked), db_i64(what->asked_us),
                db_i64(next_us(batch)), db_uuid(&what->id)),
        &rows, err);
    if (rc == ERR_OK && rows > 0 && verdict->tests > 0)
        rc = recovery_test_keep(txn, &what->id, err);
    if (rc || rows == 0 || goes_on) {
        batch->done.gone = rc == ERR_OK && rows == 0;
        return rc;
    }
    return recovery_drop(txn, &what->id, &batch->done.gone, err);
}

static enum err_code handle(struct txn *txn, void *ctx, struct err *err)
{
    struct batch *batch = ctx;
    batch->done = (struct recovery_done){0};
    rows_clear(&batch->messages);
    enum err_code rc = recovery_lead_check(txn, batch->lead, err);
    if (rc == ERR_OK)
        rc = read_ids(txn, batch, err);
    for (size_t from = 0; rc == ERR_OK && from < batch->count; from += AT_ONCE)
        rc = handle_part(txn, batch, from, err);
    return rc ? rc : keep_verdict(txn, batch, err);
}

static enum err_code run_batch(struct store *store, struct batch *batch, struct recovery_done *ret,
                               struct err *err)
{
    assert(batch->what->limit > 0 && batch->what->limit <= RECOVERY_BATCH_MAX);
    batch->began_ms = clock_mono_ms();
    batch->messages = ROWS_OF(struct outbox_row);
    batch->detail_text = text_fit(batch->what->detail, batch->detail, sizeof(batch->detail));
    enum err_code rc = store_txn(store, handle, batch, err);
    if (rc == ERR_OK) {
        *ret = batch->done;
        ret->messages.count = batch->messages.count;
        ret->messages.items = rows_take(&batch->messages);
    }
    rows_done(&batch->messages);
    return rc;
}

enum err_code recovery_store_release(struct store *store, const struct recovery_lead *lead,
                                     const struct recovery_batch *what,
                                     const struct recovery_verdict *verdict,
                                     struct recovery_done *ret, struct err *err)
{
    struct batch batch = {.lead = lead, .what = what, .verdict = verdict, .release = true};
    return run_batch(store, &batch, ret, err);
}

enum err_code recovery_store_give_up(struct store *store, const struct recovery_lead *lead,
                                     const struct recovery_batch *what,
                                     const struct recovery_verdict *verdict,
                                     struct recovery_done *ret, struct err *err)
{
    struct batch batch = {.lead = lead, .what = what, .verdict = verdict};
    return run_batch(store, &batch, ret, err);
}
