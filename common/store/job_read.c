/* SPDX-License-Identifier: MIT */
#include "common/store/job_row.h"

#include "common/store/reading.h"

#include <assert.h>

#define STATES_MAX 256

/* ---- one job -------------------------------------------------------------------------------- */

struct get {
    const char *tenant;
    const struct uuid *id;
    struct job *job;
};

static enum err_code get(struct txn *txn, void *ctx, struct err *err)
{
    struct get *get = ctx;
    struct job_row row = {0};
    bool found = false;
    enum err_code rc = db_one(txn->db, DB_JOB_GET, DB_ARGS(db_uuid(get->id), db_text(get->tenant)),
                              JOB_ROW_COLS(&row), &found, err);
    if (rc == ERR_OK && !found)
        rc = no_such_job(get->id, err);
    if (rc == ERR_OK)
        rc = job_row_take(&row, &get->job, err);
    job_row_done(&row);
    return rc;
}

enum err_code job_store_get(struct store *store, const char *tenant, const struct uuid *id,
                            struct job **ret_job, struct err *err)
{
    struct get ctx = {.tenant = tenant, .id = id};
    enum err_code rc = store_once(store, get, &ctx, err);
    if (rc == ERR_OK)
        *ret_job = ctx.job;
    return rc;
}

/* ---- history -------------------------------------------------------------------------------- */

struct events {
    const char *tenant;
    const struct uuid *id;
    struct job_event_page page;
    struct rows rows;
};

struct event_row {
    struct job_event event;
    char from[STATE_TEXT_SIZE];
    char to[STATE_TEXT_SIZE];
    char condition[CONDITION_TEXT_SIZE];
};

static enum err_code add_event(struct events *events, struct event_row *row, struct err *err)
{
    enum err_code rc = ERR_OK;
    if (row->event.has_from)
        rc = state_of(row->from, &row->event.from, err);
    if (rc == ERR_OK)
        rc = state_of(row->to, &row->event.to, err);
    if (rc == ERR_OK)
        rc = condition_of(row->condition, &row->event.condition, err);
    if (rc == ERR_OK)
        rc = rows_add(&events->rows, &row->event, err);
    return rc;
}

static enum err_code read_events(struct txn *txn, void *ctx, struct err *err)
{
    struct events *events = ctx;
    struct event_row row = {0};
    struct job_event *event = &row.event;
    bool more = true;
    rows_clear(&events->rows);
    enum err_code rc =
        db_select(txn->db, DB_JOB_EVENTS,
                  DB_ARGS(db_uuid(events->id), db_u64(events->page.after_seq),
                          db_text(events->tenant), db_u64(events->page.limit)),
                  DB_COLS(COL_U64(&event->seq), COL_UUID(&event->job), COL_I64(&event->at_us),
                          COL_TEXT(event->kind), COL_TEXT_OR(row.from, &event->has_from),
                          COL_TEXT(row.to), COL_TEXT(row.condition), COL_U32(&event->epoch),
                          COL_U64(&event->fence), COL_UUID_OR(&event->worker, &event->has_worker),
                          COL_TEXT(event->actor), COL_TEXT(event->detail)),
                  err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = add_event(events, &row, err);
    }
    db_end(txn->db);
    return rc;
}

enum err_code job_store_events(struct store *store, const char *tenant, const struct uuid *id,
                               struct job_event_page page, struct job_event_list *ret_list,
                               struct err *err)
{
    struct events ctx = {
        .tenant = tenant, .id = id, .page = page, .rows = ROWS_OF(struct job_event)};
    enum err_code rc = store_once(store, read_events, &ctx, err);
    if (rc == ERR_OK) {
        ret_list->count = ctx.rows.count;
        ret_list->items = rows_take(&ctx.rows);
    }
    rows_done(&ctx.rows);
    return rc;
}

/* ---- many states ---------------------------------------------------------------------------- */

struct states {
    const struct uuid *ids;
    size_t count;
    enum job_state *states;
};

static enum err_code set_state(struct states *states, const struct uuid *id, const char *text,
                               struct err *err)
{
    enum job_state state = JOB_STATE_COUNT;
    enum err_code rc = state_of(text, &state, err);
    for (size_t i = 0; rc == ERR_OK && i < states->count; i++) {
        if (uuid_eq(&states->ids[i], id))
            states->states[i] = state;
    }
    return rc;
}

static enum err_code read_states(struct txn *txn, void *ctx, struct err *err)
{
    struct states *states = ctx;
    struct db_arg args[STATES_MAX];
    struct uuid id;
    char text[STATE_TEXT_SIZE];
    bool more = true;
    size_t wide = states->count == 1 ? 1 : states->count <= 16 ? 16 : STATES_MAX;
    enum db_stmt_id stmt = wide == 1    ? DB_JOB_STATES_1
                           : wide == 16 ? DB_JOB_STATES_16
                                        : DB_JOB_STATES_256;
    for (size_t i = 0; i < wide; i++) /* the last id fills the places that are left */
        args[i] = db_uuid(&states->ids[i < states->count ? i : states->count - 1]);
    for (size_t i = 0; i < states->count; i++)
        states->states[i] = JOB_STATE_COUNT;
    enum err_code rc = db_select(txn->db, stmt, (struct db_args){args, wide},
                                 DB_COLS(COL_UUID(&id), COL_TEXT(text)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = set_state(states, &id, text, err);
    }
    db_end(txn->db);
    return rc;
}

enum err_code job_store_states(struct store *store, const struct uuid *ids, size_t count,
                               enum job_state *ret_states, struct err *err)
{
    struct states ctx = {ids, count, ret_states};
    assert(count <= STATES_MAX);
    return count == 0 ? ERR_OK : store_once(store, read_states, &ctx, err);
}

/* ---- counts --------------------------------------------------------------------------------- */

struct count_row {
    struct job_count count;
    char status[STATE_TEXT_SIZE];
};

static enum err_code complete_count(void *row, struct err *err)
{
    struct count_row *read = row;
    return state_of(read->status, &read->count.status, err);
}

enum err_code job_store_counts(struct store *store, struct job_count **ret_counts,
                               size_t *ret_count, struct err *err)
{
    struct count_row row;
    struct rows rows = ROWS_OF(struct job_count);
    struct reading reading = {.stmt = DB_JOB_COUNTS,
                              .cols = DB_COLS(COL_TEXT(row.count.tenant), COL_TEXT(row.count.queue),
                                              COL_TEXT(row.status), COL_U64(&row.count.jobs),
                                              COL_I64(&row.count.oldest_us)),
                              .row = &row,
                              .complete = complete_count,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_counts = rows_take(&rows);
    return ERR_OK;
}
