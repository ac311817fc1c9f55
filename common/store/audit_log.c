/* SPDX-License-Identifier: MIT */
#include "common/store/audit_log.h"

#include "common/store/reading.h"

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

/* A duplicate was written by a try whose answer was lost: it stays as it is, and the account needs
 * no right to change rows. */
static enum err_code write_entry(struct db *db, const struct audit_entry *entry, struct err *err)
{
    struct err refused = {0};
    enum err_code rc =
        db_exec(db, DB_AUDIT_LOG_ADD,
                DB_ARGS(db_uuid(&entry->id), db_text_or_null(entry->tenant),
                        db_text_or_null(entry->actor), db_text(entry->action),
                        db_text(entry->method), db_text(entry->subject), db_text(entry->address),
                        db_text(entry->request_id), db_text(audit_outcome_text(entry->outcome)),
                        db_u64(entry->status), db_u64(entry->code), db_text(entry->detail)),
                NULL, &refused);
    if (rc == ERR_OK || rc == ERR_DUPLICATE)
        return ERR_OK;
    *err = refused;
    return rc;
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

struct row {
    struct audit_entry entry;
    char outcome[17];
};

static enum err_code complete(void *row, struct err *err)
{
    struct row *read = row;
    return audit_outcome_parse(sv_of(read->outcome), &read->entry.outcome)
               ? ERR_OK
               : err_set(err, ERR_DB, "the database holds an outcome '%s' that is not known",
                         read->outcome);
}

enum err_code audit_log_list(struct store *store, const struct audit_query *query,
                             struct audit_list *ret_list, struct err *err)
{
    const char *outcome = query->has_outcome ? audit_outcome_text(query->outcome) : NULL;
    struct row row = {.outcome = ""};
    struct audit_entry *entry = &row.entry;
    struct rows rows = ROWS_OF(struct audit_entry);
    struct uuid last;
    memset(&last, 0xff, sizeof(last));
    struct reading reading = {
        .stmt = query->actor ? DB_AUDIT_LOG_OF_ACTOR : DB_AUDIT_LOG_LIST,
        .args = DB_ARGS(db_text(query->tenant), db_uuid(query->after ? query->after : &last),
                        db_text(query->actor), db_text(query->action), db_text(query->subject),
                        db_text(outcome), db_u64((uint64_t)query->limit + 1)),
        .cols = DB_COLS(COL_UUID(&entry->id), COL_I64(&entry->at_us), COL_TEXT(entry->tenant),
                        COL_TEXT(entry->actor), COL_TEXT(entry->action), COL_TEXT(entry->method),
                        COL_TEXT(entry->subject), COL_TEXT(entry->address),
                        COL_TEXT(entry->request_id), COL_TEXT(row.outcome), COL_U32(&entry->status),
                        COL_U32(&entry->code), COL_TEXT(entry->detail)),
        .row = &row,
        .complete = complete,
        .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    ret_list->more = rows.count > query->limit;
    ret_list->count = ret_list->more ? query->limit : rows.count;
    ret_list->items = rows_take(&rows);
    return ERR_OK;
}

enum err_code audit_log_newest(struct store *store, const char *tenant, const char *action,
                               const char *subject, struct audit_act *ret_act, struct err *err)
{
    struct audit_act act = {0};
    bool found = false;
    const struct reading reading = {
        .stmt = DB_AUDIT_LOG_NEWEST,
        .args = DB_ARGS(db_text(tenant), db_u64(AUDIT_LOOK_MAX), db_text(action), db_text(subject)),
        .cols = DB_COLS(COL_TEXT(act.actor), COL_I64(&act.age_us))};
    enum err_code rc = read_one(store, &reading, &found, err);
    if (rc == ERR_OK && !found)
        rc = err_set(err, ERR_NOT_FOUND, "nobody did %s to %s lately", action, subject);
    if (rc == ERR_OK)
        *ret_act = act;
    return rc;
}
