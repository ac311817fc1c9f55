/* SPDX-License-Identifier: MIT */
#include "common/store/audit_log.h"

#include "common/store/pool.h"
#include "common/store/rows.h"

static const char *const outcome_texts[AUDIT_OUTCOME_COUNT] = {
    [AUDIT_DONE] = "done",
    [AUDIT_REFUSED] = "refused",
    [AUDIT_FAILED] = "failed",
};

const char *audit_outcome_text(enum audit_outcome outcome)
{
    return outcome_texts[outcome];
}

bool audit_outcome_parse(struct sv text, enum audit_outcome *ret_outcome)
{
    for (int i = 0; i < AUDIT_OUTCOME_COUNT; i++) {
        if (sv_is(text, outcome_texts[i])) {
            *ret_outcome = (enum audit_outcome)i;
            return true;
        }
    }
    return false;
}

/* ---- writing --------------------------------------------------------------------------------- */

static _Thread_local const struct audit_entry *armed;
static _Thread_local bool is_pending; /* written, and not committed */
static _Thread_local bool is_written;

void audit_arm(const struct audit_entry *entry)
{
    armed = entry;
    is_pending = false;
    is_written = false;
}

bool audit_disarm(void)
{
    armed = NULL;
    return is_written;
}

bool audit_is_armed(void)
{
    return armed && !is_written;
}

void audit_committed(void)
{
    is_written = is_written || is_pending;
    is_pending = false;
}

static enum err_code write_entry(struct db *db, const struct audit_entry *entry, struct err *err)
{
    return db_exec(db, DB_AUDIT_LOG_ADD,
                   DB_ARGS(db_uuid(&entry->id), db_text_or_null(entry->tenant),
                           db_text_or_null(entry->actor), db_text(entry->action),
                           db_text(entry->method), db_text(entry->subject), db_text(entry->address),
                           db_text(entry->request_id), db_text(audit_outcome_text(entry->outcome)),
                           db_u64(entry->status), db_u64(entry->code), db_text(entry->detail)),
                   NULL, err);
}

/* A retry that finds its work done had its row committed with it, or writes it now. */
enum err_code audit_write_armed(struct txn *txn, struct err *err)
{
    is_pending = audit_is_armed() && (db_has_written(txn->db) || txn->commit_unknown);
    return is_pending ? write_entry(txn->db, armed, err) : ERR_OK;
}

struct batch {
    const struct audit_entry *entries;
    size_t count;
};

static enum err_code write_batch(struct txn *txn, void *ctx, struct err *err)
{
    const struct batch *batch = ctx;
    enum err_code rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < batch->count; i++)
        rc = write_entry(txn->db, &batch->entries[i], err);
    return rc;
}

enum err_code audit_log_add(struct store *store, const struct audit_entry *entries, size_t count,
                            struct err *err)
{
    struct batch batch = {entries, count};
    return store_txn(store, write_batch, &batch, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct list {
    const struct audit_query *query;
    struct rows rows;
};

static enum err_code read_list(struct txn *txn, void *ctx, struct err *err)
{
    struct list *list = ctx;
    const struct audit_query *query = list->query;
    const char *outcome = query->has_outcome ? audit_outcome_text(query->outcome) : NULL;
    struct audit_entry row = {0};
    struct uuid last;
    char text[17];
    bool more = true;
    memset(&last, 0xff, sizeof(last));
    rows_clear(&list->rows);
    enum err_code rc = db_select(
        txn->db, query->actor ? DB_AUDIT_LOG_OF_ACTOR : DB_AUDIT_LOG_LIST,
        DB_ARGS(db_text(query->tenant), db_uuid(query->after ? query->after : &last),
                db_text(query->actor), db_text(query->action), db_text(query->subject),
                db_text(outcome), db_u64((uint64_t)query->limit + 1)),
        DB_COLS(COL_UUID(&row.id), COL_I64(&row.at_us), COL_TEXT(row.tenant), COL_TEXT(row.actor),
                COL_TEXT(row.action), COL_TEXT(row.method), COL_TEXT(row.subject),
                COL_TEXT(row.address), COL_TEXT(row.request_id), COL_TEXT(text),
                COL_U32(&row.status), COL_U32(&row.code), COL_TEXT(row.detail)),
        err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more && !audit_outcome_parse(sv_of(text), &row.outcome))
            rc = err_set(err, ERR_DB, "the database holds an outcome '%s' that is not known", text);
        if (rc == ERR_OK && more)
            rc = rows_add(&list->rows, &row, err);
    }
    db_end(txn->db);
    return rc;
}

enum err_code audit_log_list(struct store *store, const struct audit_query *query,
                             struct audit_list *ret_list, struct err *err)
{
    struct list list = {.query = query, .rows = ROWS_OF(struct audit_entry)};
    enum err_code rc = store_once(store, read_list, &list, err);
    if (rc == ERR_OK) {
        ret_list->more = list.rows.count > query->limit;
        ret_list->count = ret_list->more ? query->limit : list.rows.count;
        ret_list->items = rows_take(&list.rows);
    }
    rows_done(&list.rows);
    return rc;
}
