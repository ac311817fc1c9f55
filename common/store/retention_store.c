/* SPDX-License-Identifier: MIT */
#include "common/store/retention_store.h"

#include "common/base/clock.h"
#include "common/store/pool.h"

#include <assert.h>

static const struct {
    const char *name, *state, *what;
} kinds[] = {
#define RETENTION(id, name, state, what) {#name, state, what},
#include "common/store/retention.def"
#undef RETENTION
};

const char *retention_name(enum retention_kind kind)
{
    return kinds[kind].name;
}

const char *retention_what(enum retention_kind kind)
{
    return kinds[kind].what;
}

const char *retention_state(enum retention_kind kind)
{
    return kinds[kind].state;
}

/* ---- who removes, and how far it has come ---------------------------------------------------- */

static enum err_code get(struct txn *txn, void *ctx, struct err *err)
{
    struct retention_row *row = ctx;
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_RETENTION_GET, DB_NO_ARGS,
               DB_COLS(COL_I64(&row->now_us), COL_I64(&row->outbox_us), COL_I64(&row->key_us),
                       COL_I64(&row->hook_us), COL_I64(&row->created_us), COL_I64(&row->ended_us),
                       COL_I64(&row->swept_us), COL_U64(&row->events_upto),
                       COL_U64(&row->archive_jobs), COL_U64(&row->archive_bytes)),
               &found, err);
    if (rc == ERR_OK && !found)
        return err_set(err, ERR_DB, "table retention has lost its row");
    return rc;
}

enum err_code retention_store_get(struct store *store, struct retention_row *ret_row,
                                  struct err *err)
{
    struct retention_row row = {0};
    enum err_code rc = store_once(store, get, &row, err);
    int64_t now_us = clock_wall_us();
    if (rc)
        return rc;
    if (row.now_us > now_us)
        row.now_us = now_us;
    *ret_row = row;
    return ERR_OK;
}

struct change { /* of the one row */
    enum db_stmt_id stmt;
    struct db_args args;
    uint64_t rows;
};

static enum err_code make_change(struct txn *txn, void *ctx, struct err *err)
{
    struct change *change = ctx;
    return db_exec(txn->db, change->stmt, change->args, &change->rows, err);
}

static enum err_code change_row(struct store *store, enum db_stmt_id stmt, struct db_args args,
                                struct err *err)
{
    struct change change = {.stmt = stmt, .args = args};
    enum err_code rc = store_once(store, make_change, &change, err);
    if (rc == ERR_OK && change.rows == 0)
        return err_set(err, ERR_IN_USE, "another process removes what is old now");
    return rc;
}

enum err_code retention_store_lead(struct store *store, const struct uuid *holder, int64_t lease_ms,
                                   struct err *err)
{
    return change_row(
        store, DB_RETENTION_LEAD,
        DB_ARGS(db_uuid(holder), db_uuid(holder), db_i64(lease_ms * 1000), db_i64(lease_ms * 1000)),
        err);
}

enum err_code retention_store_begun(struct store *store, const struct uuid *holder, struct err *err)
{
    return change_row(store, DB_RETENTION_BEGUN, DB_ARGS(db_uuid(holder)), err);
}

enum err_code retention_store_done(struct store *store, const struct uuid *holder, bool whole,
                                   struct err *err)
{
    struct change change = {.stmt = DB_RETENTION_DONE,
                            .args = DB_ARGS(db_u64(whole), db_uuid(holder))};
    return store_once(store, make_change, &change, err);
}

enum err_code retention_store_swept(struct store *store, const struct uuid *holder, uint64_t jobs,
                                    uint64_t bytes, struct err *err)
{
    return change_row(store, DB_RETENTION_SWEPT,
                      DB_ARGS(db_u64(jobs), db_u64(bytes), db_uuid(holder)), err);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* The least id that a thing of this time can have: ids begin with the milliseconds of their time.
 */
static struct uuid id_at(int64_t time_us)
{
    struct uuid id = {{0}};
    uint64_t ms = time_us > 0 ? (uint64_t)time_us / 1000 + 1 : 0;
    for (int i = 5; i >= 0; i--, ms >>= 8)
        id.bytes[i] = (uint8_t)ms;
    return id;
}

struct finding {
    const struct retention_search *search;
    struct uuid *ids;
    size_t count;
};

static enum err_code find(struct txn *txn, void *ctx, struct err *err)
{
    struct finding *finding = ctx;
    const struct retention_search *search = finding->search;
    const struct uuid upto = id_at(search->limit_us);
    struct uuid id;
    bool more = true;
    finding->count = 0;
    enum err_code rc =
        db_select(txn->db, DB_RETENTION_FIND,
                  DB_ARGS(db_text(search->tenant), db_text(retention_state(search->kind)),
                          db_uuid(&search->after), db_uuid(&upto), db_i64(search->limit_us),
                          db_i64(search->untold_us), db_u64(RETENTION_AT_ONCE)),
                  DB_COLS(COL_UUID(&id)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more && finding->count < RETENTION_AT_ONCE)
            finding->ids[finding->count++] = id;
    }
    db_end(txn->db);
    return rc;
}

enum err_code retention_store_find(struct store *store, const struct retention_search *search,
                                   struct uuid *ret_ids, size_t *ret_count, struct err *err)
{
    struct finding finding = {.search = search, .ids = ret_ids};
    enum err_code rc = store_once(store, find, &finding, err);
    if (rc == ERR_OK)
        *ret_count = finding.count;
    return rc;
}

struct batch {
    const struct uuid *ids;
    size_t count;
    int64_t limit_us;
    struct retention_removed removed;
    struct db_arg args[RETENTION_AT_ONCE + 1]; /* the ids, and limit_us */
};

static void set_args(struct batch *batch)
{
    for (size_t i = 0; i < RETENTION_AT_ONCE; i++) /* NULL is equal to none */
        batch->args[i] = i < batch->count ? db_uuid(&batch->ids[i]) : db_null();
    batch->args[RETENTION_AT_ONCE] = db_i64(batch->limit_us);
}

/* So that nothing of them changes between the statements. */
static enum err_code lock_jobs(struct txn *txn, struct db_args args, struct err *err)
{
    struct uuid id;
    bool more = true;
    enum err_code rc = db_select(txn->db, DB_RETENTION_LOCK, args, DB_COLS(COL_UUID(&id)), err);
    while (rc == ERR_OK && more)
        rc = db_next(txn->db, &more, err);
    db_end(txn->db);
    return rc;
}

static enum err_code remove_jobs(struct txn *txn, void *ctx, struct err *err)
{
    struct batch *batch = ctx;
    const struct db_args ids = {batch->args, RETENTION_AT_ONCE};
    const struct db_args all = {batch->args, RETENTION_AT_ONCE + 1};
    bool found = false;
    enum err_code rc = lock_jobs(txn, all, err);
    if (rc == ERR_OK)
        rc = db_one(txn->db, DB_RETENTION_UNTOLD, ids, DB_COLS(COL_U64(&batch->removed.untold)),
                    &found, err);
    if (rc == ERR_OK)
        rc = db_exec(txn->db, DB_RETENTION_MARK, ids, NULL, err);
    if (rc == ERR_OK)
        rc = db_exec(txn->db, DB_RETENTION_EVENTS, all, &batch->removed.events, err);
    if (rc == ERR_OK)
        rc = db_exec(txn->db, DB_RETENTION_JOBS, all, &batch->removed.jobs, err);
    if (rc == ERR_OK)
        rc = db_exec(txn->db, DB_RETENTION_HOOKS, ids, NULL, err);
    return rc;
}

enum err_code retention_store_remove_jobs(struct store *store, const struct uuid *ids, size_t count,
                                          int64_t limit_us, struct retention_removed *ret,
                                          struct err *err)
{
    struct batch batch = {.ids = ids, .count = count, .limit_us = limit_us};
    assert(count <= RETENTION_AT_ONCE);
    set_args(&batch);
    enum err_code rc = store_txn(store, remove_jobs, &batch, err);
    if (rc == ERR_OK)
        *ret = batch.removed;
    return rc;
}

static enum err_code count_events(struct txn *txn, void *ctx, struct err *err)
{
    struct batch *batch = ctx;
    bool found = false;
    return db_one(txn->db, DB_RETENTION_EVENTS_COUNT,
                  (struct db_args){batch->args, RETENTION_AT_ONCE},
                  DB_COLS(COL_U64(&batch->removed.events)), &found, err);
}

enum err_code retention_store_count_events(struct store *store, const struct uuid *ids,
                                           size_t count, uint64_t *ret_events, struct err *err)
{
    struct batch batch = {.ids = ids, .count = count};
    assert(count <= RETENTION_AT_ONCE);
    set_args(&batch);
    enum err_code rc = store_once(store, count_events, &batch, err);
    if (rc == ERR_OK)
        *ret_events = batch.removed.events;
    return rc;
}

/* ---- what is no job -------------------------------------------------------------------------- */

static const struct {
    enum db_stmt_id remove, count;
} statements[RETENTION_KIND_COUNT] = {
    [RETENTION_OF_DEAD] = {DB_RETENTION_DEAD, DB_RETENTION_DEAD_COUNT},
    [RETENTION_OF_OPEN] = {DB_RETENTION_OPEN, DB_RETENTION_OPEN_COUNT},
    [RETENTION_OF_AUDIT] = {DB_RETENTION_AUDIT, DB_RETENTION_AUDIT_COUNT},
    [RETENTION_OF_WORKERS] = {DB_RETENTION_WORKERS, DB_RETENTION_WORKERS_COUNT},
};

enum err_code retention_store_remove(struct store *store, enum retention_kind kind,
                                     int64_t limit_us, uint32_t most, uint64_t *ret_rows,
                                     struct err *err)
{
    const struct uuid upto = id_at(limit_us);
    struct change change = {.stmt = statements[kind].remove,
                            .args = DB_ARGS(db_uuid(&upto), db_i64(limit_us), db_u64(most))};
    assert(!retention_state(kind));
    enum err_code rc = store_once(store, make_change, &change, err);
    if (rc == ERR_OK)
        *ret_rows = change.rows;
    return rc;
}

struct counting {
    enum retention_kind kind;
    int64_t limit_us;
    uint64_t rows;
};

static enum err_code count_rows(struct txn *txn, void *ctx, struct err *err)
{
    struct counting *counting = ctx;
    const struct uuid upto = id_at(counting->limit_us);
    bool found = false;
    return db_one(txn->db, statements[counting->kind].count,
                  DB_ARGS(db_uuid(&upto), db_i64(counting->limit_us)),
                  DB_COLS(COL_U64(&counting->rows)), &found, err);
}

enum err_code retention_store_count(struct store *store, enum retention_kind kind, int64_t limit_us,
                                    uint64_t *ret_rows, struct err *err)
{
    struct counting counting = {.kind = kind, .limit_us = limit_us};
    assert(!retention_state(kind));
    enum err_code rc = store_once(store, count_rows, &counting, err);
    if (rc == ERR_OK)
        *ret_rows = counting.rows;
    return rc;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

struct sizes {
    struct table_size *items;
    size_t count;
};

static enum err_code read_sizes(struct txn *txn, void *ctx, struct err *err)
{
    struct sizes *sizes = ctx;
    struct table_size row = {.rows = 0};
    bool more = true;
    sizes->count = 0;
    enum err_code rc =
        db_select(txn->db, DB_TABLE_SIZES, DB_NO_ARGS,
                  DB_COLS(COL_TEXT(row.table), COL_U64(&row.rows), COL_U64(&row.bytes)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more && sizes->count < TABLE_SIZES_MAX)
            sizes->items[sizes->count++] = row;
    }
    db_end(txn->db);
    return rc;
}

enum err_code retention_store_sizes(struct store *store,
                                    struct table_size ret_sizes[TABLE_SIZES_MAX], size_t *ret_count,
                                    struct err *err)
{
    struct sizes sizes = {.items = ret_sizes};
    enum err_code rc = store_once(store, read_sizes, &sizes, err);
    if (rc == ERR_OK)
        *ret_count = sizes.count;
    return rc;
}
