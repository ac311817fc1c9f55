/* SPDX-License-Identifier: MIT */
#include "common/store/lost_store.h"

#include "common/store/reading.h"

#include <assert.h>

#define EVENTS_MAX 4096 /* read by one look */

/* ---- looking -------------------------------------------------------------------------------- */

struct looking {
    const struct lost_look *what;
    struct rows rows;
    uint64_t head;
    bool complete;
};

static enum err_code read_head(struct txn *txn, struct looking *looking, struct err *err)
{
    const struct lost_look *what = looking->what;
    uint64_t count = 0;
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_LOST_HEAD,
               DB_ARGS(db_text(what->tenant), db_u64(what->after), db_u64(EVENTS_MAX)),
               DB_COLS(COL_U64(&looking->head), COL_U64(&count)), &found, err);
    if (looking->head < what->after)
        looking->head = what->after;
    looking->complete = count < EVENTS_MAX;
    return rc;
}

static enum err_code look(struct txn *txn, void *ctx, struct err *err)
{
    struct looking *looking = ctx;
    const struct lost_look *what = looking->what;
    struct lost_queue queue;
    struct reading reading = {
        .stmt = DB_LOST_QUEUES,
        .args = DB_ARGS(db_text(what->tenant), db_text(what->tenant), db_u64(what->after),
                        db_u64(EVENTS_MAX), db_text(what->tenant), db_text(what->tenant)),
        .cols =
            DB_COLS(COL_TEXT(queue.name), COL_TEXT(queue.type), COL_U64(&queue.waiting),
                    COL_U64(&queue.unsent), COL_I64(&queue.unsent_us), COL_I64(&queue.oldest_us),
                    COL_I64(&queue.passed_us), COL_U64(&queue.claims_head)),
        .row = &queue,
        .rows = &looking->rows};
    rows_clear(&looking->rows);
    enum err_code rc = read_head(txn, looking, err);
    return rc ? rc : read_rows(txn->db, &reading, err);
}

enum err_code lost_store_look(struct store *store, const struct lost_look *what,
                              struct lost_queues *ret_queues, struct err *err)
{
    struct looking looking = {.what = what, .rows = ROWS_OF(struct lost_queue)};
    enum err_code rc = store_once(store, look, &looking, err);
    if (rc == ERR_OK) {
        ret_queues->head = looking.head;
        ret_queues->complete = looking.complete;
        ret_queues->count = looking.rows.count;
        ret_queues->items = rows_take(&looking.rows);
    }
    rows_done(&looking.rows);
    return rc;
}

enum err_code lost_store_find(struct store *store, const struct lost_search *search,
                              struct lost_jobs *ret_jobs, struct err *err)
{
    struct uuid id;
    struct rows rows = ROWS_OF(struct uuid);
    struct reading reading = {
        .stmt = DB_LOST_FIND,
        .args = DB_ARGS(db_text(search->tenant), db_text(search->queue), db_i64(search->age_us),
                        search->before_us ? db_i64(search->before_us) : db_null(),
                        db_u64(search->limit)),
        .cols = DB_COLS(COL_UUID(&id)),
        .row = &id,
        .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    ret_jobs->count = rows.count;
    ret_jobs->items = rows_take(&rows);
    return ERR_OK;
}

/* ---- new messages --------------------------------------------------------------------------- */

struct resending {
    const struct lost_resend *what;
    struct uuid ids[LOST_AT_ONCE]; /* that are lost still, and locked */
    size_t count;
    struct rows messages;
};

/* All places are filled: the last id is repeated. */
static void put_ids(const struct uuid *ids, size_t count, struct db_arg *ret_args)
{
    for (size_t i = 0; i < LOST_AT_ONCE; i++)
        ret_args[i] = db_uuid(&ids[i < count ? i : count - 1]);
}

static enum err_code lock_jobs(struct txn *txn, struct resending *resending, struct err *err)
{
    const struct lost_resend *what = resending->what;
    struct db_arg args[LOST_AT_ONCE + 1];
    struct uuid id;
    bool more = true;
    put_ids(what->jobs, what->count, args);
    args[LOST_AT_ONCE] = db_i64(what->age_us);
    enum err_code rc = db_select(txn->db, DB_LOST_LOCK, (struct db_args){args, LOST_AT_ONCE + 1},
                                 DB_COLS(COL_UUID(&id)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more && resending->count < LOST_AT_ONCE)
            resending->ids[resending->count++] = id;
    }
    db_end(txn->db);
    return rc;
}

static enum err_code read_messages(struct txn *txn, struct resending *resending,
                                   const struct db_arg *ids, uint64_t first, struct err *err)
{
    struct db_arg args[LOST_AT_ONCE + 1] = {db_u64(first)};
    struct outbox_row row;
    struct reading reading = {.stmt = DB_RELEASE_MESSAGES,
                              .args = {args, LOST_AT_ONCE + 1},
                              .cols = DB_COLS(COL_U64(&row.id), COL_UUID(&row.job),
                                              COL_U32(&row.epoch), COL_TEXT(row.tenant),
                                              COL_TEXT(row.queue), COL_TEXT(row.queue_type)),
                              .row = &row,
                              .rows = &resending->messages};
    memcpy(args + 1, ids, LOST_AT_ONCE * sizeof(ids[0]));
    return read_rows(txn->db, &reading, err);
}

static enum err_code resend(struct txn *txn, void *ctx, struct err *err)
{
    struct resending *resending = ctx;
    struct db_arg args[LOST_AT_ONCE];
    resending->count = 0;
    rows_clear(&resending->messages);
    enum err_code rc = recovery_lead_check(txn, resending->what->lead, err);
    if (rc == ERR_OK)
        rc = lock_jobs(txn, resending, err);
    if (rc || resending->count == 0)
        return rc;
    put_ids(resending->ids, resending->count, args);
    const struct db_args ids = {args, LOST_AT_ONCE};
    rc = db_exec(txn->db, DB_LOST_RESEND, ids, NULL, err);
    if (rc == ERR_OK)
        rc = db_exec(txn->db, DB_LOST_EVENTS, ids, NULL, err);
    if (rc == ERR_OK)
        rc = db_exec(txn->db, DB_LOST_OUTBOX, ids, NULL, err);
    return rc ? rc : read_messages(txn, resending, args, db_insert_id(txn->db), err);
}

enum err_code lost_store_resend(struct store *store, const struct lost_resend *what,
                                struct outbox_list *ret_messages, struct err *err)
{
    struct resending resending = {.what = what, .messages = ROWS_OF(struct outbox_row)};
    assert(what->count > 0 && what->count <= LOST_AT_ONCE);
    enum err_code rc = store_txn(store, resend, &resending, err);
    if (rc == ERR_OK) {
        ret_messages->count = resending.messages.count;
        ret_messages->items = rows_take(&resending.messages);
    }
    rows_done(&resending.messages);
    return rc;
}
