/* SPDX-License-Identifier: MIT */
#include "common/store/recovery_store.h"

#include "common/store/job_row.h"
#include "common/store/reading.h"

#include <inttypes.h>

/* ---- reading -------------------------------------------------------------------------------- */

struct row {
    struct recovery recovery;
    char condition[CONDITION_TEXT_SIZE];
};

#define ROW_COLS(row)                                                                              \
    DB_COLS(COL_UUID(&(row)->recovery.id), COL_TEXT((row)->recovery.tenant),                       \
            COL_TEXT((row)->condition), COL_TEXT((row)->recovery.tester),                          \
            COL_TEXT((row)->recovery.params), COL_TEXT((row)->recovery.policy),                    \
            COL_U32(&(row)->recovery.tests), COL_U32(&(row)->recovery.tries),                      \
            COL_I64(&(row)->recovery.first_us), COL_I64(&(row)->recovery.next_us),                 \
            COL_I64(&(row)->recovery.last_us), COL_I64(&(row)->recovery.next_in_us),               \
            COL_TEXT((row)->recovery.last_result), COL_TEXT((row)->recovery.last_detail),          \
            COL_U32(&(row)->recovery.ramp), COL_U64(&(row)->recovery.released),                    \
            COL_TEXT((row)->recovery.asked), COL_TEXT((row)->recovery.asked_by),                   \
            COL_I64(&(row)->recovery.asked_us), COL_U64(&(row)->recovery.blocked))

static enum err_code complete(void *row, struct err *err)
{
    struct row *read = row;
    return condition_of(read->condition, &read->recovery.condition, err);
}

static enum err_code read_groups(struct store *store, enum db_stmt_id stmt, struct db_args args,
                                 struct recovery_list *ret_list, struct err *err)
{
    struct row row = {.condition = ""};
    struct rows rows = ROWS_OF(struct recovery);
    struct reading reading = {.stmt = stmt,
                              .args = args,
                              .cols = ROW_COLS(&row),
                              .row = &row,
                              .complete = complete,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    ret_list->count = rows.count;
    ret_list->items = rows_take(&rows);
    return ERR_OK;
}

enum err_code recovery_store_list(struct store *store, const char *tenant,
                                  struct recovery_list *ret_list, struct err *err)
{
    return read_groups(store, DB_RECOVERY_LIST, DB_ARGS(db_text(tenant)), ret_list, err);
}

enum err_code recovery_store_page(struct store *store, const char *tenant,
                                  const struct recovery_page *page, struct recovery_list *ret_list,
                                  struct err *err)
{
    return read_groups(store, DB_RECOVERY_PAGE,
                       DB_ARGS(db_text(tenant), db_uuid(&page->after), db_u64(page->limit)),
                       ret_list, err);
}

static enum err_code no_such_cause(const struct uuid *id, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    return err_set(err, ERR_NOT_FOUND, "there is no group %s of blocked jobs", uuid_text(id, text));
}

enum err_code recovery_store_get(struct store *store, const char *tenant, const struct uuid *id,
                                 struct recovery *ret, struct err *err)
{
    struct row row = {.condition = ""};
    const struct reading reading = {.stmt = DB_RECOVERY_GET,
                                    .args = DB_ARGS(db_uuid(id), db_text(tenant)),
                                    .cols = ROW_COLS(&row),
                                    .row = &row,
                                    .complete = complete};
    bool found = false;
    enum err_code rc = read_one(store, &reading, &found, err);
    if (rc == ERR_OK && !found)
        rc = no_such_cause(id, err);
    if (rc == ERR_OK)
        *ret = row.recovery;
    return rc;
}

enum err_code recovery_store_user(struct store *store, const struct uuid *id,
                                  char ret_user[USER_SIZE], struct err *err)
{
    char user[USER_SIZE] = "";
    const struct reading reading = {.stmt = DB_RECOVERY_USER,
                                    .args = DB_ARGS(db_uuid(id)),
                                    .cols = DB_COLS(COL_TEXT(user)),
                                    .row = user};
    bool found = false;
    enum err_code rc = read_one(store, &reading, &found, err);
    if (rc == ERR_OK)
        memcpy(ret_user, user, USER_SIZE);
    return rc;
}

struct blocked_row {
    struct recovery_job job;
    char status[STATE_TEXT_SIZE];
};

static enum err_code complete_job(void *row, struct err *err)
{
    struct blocked_row *read = row;
    return state_of(read->status, &read->job.resume, err);
}

enum err_code recovery_store_jobs(struct store *store, const struct recovery *recovery,
                                  const struct recovery_page *page,
                                  struct recovery_job_list *ret_list, struct err *err)
{
    struct blocked_row row;
    struct rows rows = ROWS_OF(struct recovery_job);
    struct reading reading = {.stmt = DB_RECOVERY_JOBS,
                              .args = DB_ARGS(db_uuid(&recovery->id), db_text(recovery->tenant),
                                              db_uuid(&page->after), db_u64(page->limit)),
                              .cols = DB_COLS(COL_UUID(&row.job.id), COL_TEXT(row.status),
                                              COL_I64(&row.job.blocked_us), COL_TEXT(row.job.name),
                                              COL_TEXT(row.job.owner)),
                              .row = &row,
                              .complete = complete_job,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    ret_list->count = rows.count;
    ret_list->items = rows_take(&rows);
    return ERR_OK;
}

static enum err_code read_counts(struct txn *txn, void *ctx, struct err *err)
{
    uint64_t *counts = ctx;
    char text[CONDITION_TEXT_SIZE];
    uint64_t jobs = 0;
    bool more = true;
    enum job_condition condition = JOB_COND_NONE;
    memset(counts, 0, sizeof(*counts) * JOB_CONDITION_COUNT);
    enum err_code rc = db_select(txn->db, DB_RECOVERY_COUNTS, DB_NO_ARGS,
                                 DB_COLS(COL_TEXT(text), COL_U64(&jobs)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = condition_of(text, &condition, err);
        if (rc == ERR_OK && more)
            counts[condition] = jobs;
    }
    db_end(txn->db);
    return rc;
}

enum err_code recovery_store_counts(struct store *store, uint64_t ret_counts[JOB_CONDITION_COUNT],
                                    struct err *err)
{
    return store_once(store, read_counts, ret_counts, err);
}

/* ---- an operator's wish --------------------------------------------------------------------- */

struct wish {
    const char *tenant;
    const struct uuid *id;
    const char *what;
    const char *actor;
};

static enum err_code ask(struct txn *txn, void *ctx, struct err *err)
{
    const struct wish *wish = ctx;
    uint64_t rows = 0;
    enum err_code rc = ERR_OK;
    if (wish->what)
        rc = db_exec(txn->db, DB_RECOVERY_ASK,
                     DB_ARGS(db_text(wish->what), db_text(wish->actor), db_uuid(wish->id),
                             db_text(wish->tenant)),
                     &rows, err);
    else
        rc = db_exec(txn->db, DB_RECOVERY_CHECK, DB_ARGS(db_uuid(wish->id), db_text(wish->tenant)),
                     &rows, err);
    return rc || rows > 0 ? rc : no_such_cause(wish->id, err);
}

enum err_code recovery_store_ask(struct store *store, const char *tenant, const struct uuid *id,
                                 const char *what, const char *actor, struct err *err)
{
    struct wish wish = {tenant, id, what, actor};
    return store_once(store, ask, &wish, err);
}

/* ---- leading -------------------------------------------------------------------------------- */

static enum err_code take_lead(struct txn *txn, void *ctx, struct err *err)
{
    struct recovery_lead *lead = ctx;
    struct uuid holder;
    int64_t age_us = 0;
    bool found = false;
    enum err_code rc = db_exec(txn->db, DB_LEADER_TAKE,
                               DB_ARGS(db_text(lead->tenant), db_uuid(&lead->holder)), NULL, err);
    if (rc)
        return rc;
    return db_one(txn->db, DB_LEADER_GET, DB_ARGS(db_text(lead->tenant)),
                  DB_COLS(COL_U64(&lead->fencing), COL_UUID(&holder), COL_I64(&age_us)), &found,
                  err);
}

enum err_code recovery_lead_take(struct store *store, struct recovery_lead *lead, struct err *err)
{
    struct recovery_lead fresh = *lead;
    enum err_code rc = store_txn(store, take_lead, &fresh, err);
    if (rc == ERR_OK)
        *lead = fresh;
    return rc;
}

static enum err_code fenced(struct txn *txn, const struct recovery_lead *lead, struct err *err)
{
    store_count_fenced(txn->store);
    return err_set(err, ERR_FENCED,
                   "recovery of %s: another process leads now; fencing number %" PRIu64 " is old",
                   lead->tenant, lead->fencing);
}

static enum err_code renew_lead(struct txn *txn, void *ctx, struct err *err)
{
    const struct recovery_lead *lead = ctx;
    uint64_t rows = 0;
    enum err_code rc = db_exec(
        txn->db, DB_LEADER_RENEW,
        DB_ARGS(db_text(lead->tenant), db_u64(lead->fencing), db_uuid(&lead->holder)), &rows, err);
    return rc || rows > 0 ? rc : fenced(txn, lead, err);
}

enum err_code recovery_lead_renew(struct store *store, const struct recovery_lead *lead,
                                  struct err *err)
{
    struct recovery_lead copy = *lead;
    return store_once(store, renew_lead, &copy, err);
}

enum err_code recovery_lead_check(struct txn *txn, const struct recovery_lead *lead,
                                  struct err *err)
{
    uint64_t fencing = 0;
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_LEADER_CHECK,
               DB_ARGS(db_text(lead->tenant), db_u64(lead->fencing), db_uuid(&lead->holder)),
               DB_COLS(COL_U64(&fencing)), &found, err);
    return rc || found ? rc : fenced(txn, lead, err);
}

/* ---- a test in vain ------------------------------------------------------------------------- */

struct tested {
    const struct recovery_lead *lead;
    const struct uuid *id;
    const struct recovery_verdict *verdict;
    bool gone;
};

static enum err_code keep_verdict(struct txn *txn, void *ctx, struct err *err)
{
    struct tested *tested = ctx;
    const struct recovery_verdict *verdict = tested->verdict;
    char detail[JOB_REASON_SIZE];
    uint64_t rows = 0;
    enum err_code rc = recovery_lead_check(txn, tested->lead, err);
    if (rc == ERR_OK)
        rc = db_exec(
            txn->db, DB_RECOVERY_TESTED,
            DB_ARGS(db_u64(verdict->tests), db_u64(verdict->tries), db_text(verdict->result),
                    db_text(text_fit(verdict->detail, detail, sizeof(detail))),
                    db_i64(verdict->due_us), db_i64(verdict->next_ms * 1000), db_uuid(tested->id)),
            &rows, err);
    tested->gone = rows == 0;
    if (rc == ERR_OK && rows > 0 && verdict->tests > 0)
        rc = recovery_test_keep(txn, tested->id, err);
    return rc || rows == 0 ? rc : recovery_drop(txn, tested->id, &tested->gone, err);
}

enum err_code recovery_store_tested(struct store *store, const struct recovery_lead *lead,
                                    const struct uuid *id, const struct recovery_verdict *verdict,
                                    bool *ret_gone, struct err *err)
{
    struct tested tested = {.lead = lead, .id = id, .verdict = verdict};
    enum err_code rc = store_txn(store, keep_verdict, &tested, err);
    if (rc == ERR_OK)
        *ret_gone = tested.gone;
    return rc;
}
