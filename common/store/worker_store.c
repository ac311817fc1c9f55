/* SPDX-License-Identifier: MIT */
#include "common/store/worker_store.h"

#include "common/store/reading.h"

#include <assert.h>

static const char *const state_texts[] = {
    [WORKER_LIVE] = "live",
    [WORKER_STOPPED] = "stopped",
    [WORKER_REPLACED] = "replaced",
    [WORKER_DEAD] = "dead",
};

const char *worker_state_text(enum worker_state state)
{
    return state_texts[state];
}

static enum err_code worker_state_of(const char *text, enum worker_state *ret_state,
                                     struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(state_texts); i++) {
        if (strcmp(text, state_texts[i]) == 0) {
            *ret_state = (enum worker_state)i;
            return ERR_OK;
        }
    }
    return err_set(err, ERR_DB, "the database holds a worker's state '%s' that is not known", text);
}

static enum err_code no_such_worker(const struct uuid *id, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    return err_set(err, ERR_NOT_FOUND, "there is no worker %s", uuid_text(id, text));
}

/* ---- writing -------------------------------------------------------------------------------- */

static enum err_code insert_worker(struct txn *txn, void *ctx, struct err *err)
{
    const struct worker_row *row = ctx;
    struct err failed = {0};
    enum err_code rc = db_exec(txn->db, DB_WORKER_INSERT,
                               DB_ARGS(db_uuid(&row->id), db_text(row->tenant), db_text(row->queue),
                                       db_text(row->name), db_text(row->host), db_uuid(&row->home),
                                       db_text(row->boot_id), db_u64(row->pid),
                                       db_text(row->version), db_u64(row->slots), db_u64(row->busy),
                                       db_u64(row->lease_ms), db_text(row->runner)),
                               NULL, &failed);
    if (rc == ERR_DUPLICATE) /* nobody else makes this id: our own commit had no answer */
        return ERR_OK;
    if (rc)
        *err = failed;
    return rc;
}

enum err_code worker_store_register(struct store *store, const struct worker_row *row,
                                    struct err *err)
{
    struct worker_row copy = *row;
    return store_once(store, insert_worker, &copy, err);
}

struct change {
    const struct uuid *id;
    enum worker_state state;
    uint64_t beat_seen; /* for dead only */
};

static enum err_code read_state(struct txn *txn, void *ctx, struct err *err)
{
    struct change *change = ctx;
    char text[17];
    bool found = false;
    enum err_code rc = db_one(txn->db, DB_WORKER_STATE, DB_ARGS(db_uuid(change->id)),
                              DB_COLS(COL_TEXT(text)), &found, err);
    if (rc == ERR_OK && !found)
        rc = no_such_worker(change->id, err);
    if (rc == ERR_OK)
        rc = worker_state_of(text, &change->state, err);
    return rc;
}

/* Saying the same again is no conflict: the first time may have been an unknown commit. */
static enum err_code not_changed(struct txn *txn, const struct change *change, struct err *err)
{
    struct change now = {.id = change->id};
    enum err_code rc = read_state(txn, &now, err);
    if (rc)
        return rc;
    if (now.state == change->state && (change->state != WORKER_DEAD || txn->commit_unknown))
        return ERR_OK;
    char text[UUID_TEXT_SIZE];
    return err_set(err, ERR_CONFLICT, "worker %s cannot become %s: it is %s%s",
                   uuid_text(change->id, text), worker_state_text(change->state),
                   worker_state_text(now.state),
                   now.state == WORKER_LIVE ? " and its beat has changed" : "");
}

static enum err_code change_state(struct txn *txn, void *ctx, struct err *err)
{
    const struct change *change = ctx;
    uint64_t rows = 0;
    enum err_code rc = ERR_OK;
    if (change->state == WORKER_DEAD)
        rc = db_exec(txn->db, DB_WORKER_DEAD,
                     DB_ARGS(db_uuid(change->id), db_u64(change->beat_seen)), &rows, err);
    else
        rc = db_exec(txn->db, DB_WORKER_END,
                     DB_ARGS(db_text(worker_state_text(change->state)), db_uuid(change->id)), &rows,
                     err);
    if (rc || rows > 0)
        return rc;
    return not_changed(txn, change, err);
}

enum err_code worker_store_end(struct store *store, const struct uuid *worker,
                               enum worker_state state, struct err *err)
{
    struct change change = {.id = worker, .state = state};
    assert(state == WORKER_STOPPED || state == WORKER_REPLACED);
    return store_once(store, change_state, &change, err);
}

enum err_code worker_store_declare_dead(struct store *store, const struct uuid *worker,
                                        uint64_t beat_seen, struct err *err)
{
    struct change change = {.id = worker, .state = WORKER_DEAD, .beat_seen = beat_seen};
    return store_once(store, change_state, &change, err);
}

struct draining {
    const char *tenant;
    const struct uuid *id;
    bool draining;
    uint64_t rows;
};

static enum err_code set_draining(struct txn *txn, void *ctx, struct err *err)
{
    struct draining *change = ctx;
    return db_exec(txn->db, DB_WORKER_DRAINING,
                   DB_ARGS(db_u64(change->draining), db_uuid(change->id), db_text(change->tenant)),
                   &change->rows, err);
}

enum err_code worker_store_set_draining(struct store *store, const char *tenant,
                                        const struct uuid *worker, bool draining, struct err *err)
{
    struct draining change = {tenant, worker, draining, 0};
    struct worker_row row;
    char text[UUID_TEXT_SIZE];
    enum err_code rc = store_once(store, set_draining, &change, err);
    if (rc || change.rows > 0)
        return rc;
    rc = worker_store_get(store, tenant, worker, &row, err);
    return rc ? rc
              : err_set(err, ERR_STATE, "worker %s is not live: it is %s", uuid_text(worker, text),
                        worker_state_text(row.state));
}

/* ---- reading -------------------------------------------------------------------------------- */

enum err_code worker_store_state(struct store *store, const struct uuid *worker,
                                 enum worker_state *ret_state, struct err *err)
{
    struct change change = {.id = worker};
    enum err_code rc = store_once(store, read_state, &change, err);
    if (rc == ERR_OK)
        *ret_state = change.state;
    return rc;
}

struct drain_look {
    const struct uuid *worker;
    bool draining;
};

static enum err_code read_draining(struct txn *txn, void *ctx, struct err *err)
{
    struct drain_look *look = ctx;
    bool found = false;
    enum err_code rc = db_one(txn->db, DB_WORKER_IS_DRAINING, DB_ARGS(db_uuid(look->worker)),
                              DB_COLS(COL_BOOL(&look->draining)), &found, err);
    return rc == ERR_OK && !found ? no_such_worker(look->worker, err) : rc;
}

enum err_code worker_store_is_draining(struct store *store, const struct uuid *worker,
                                       bool *ret_draining, struct err *err)
{
    struct drain_look look = {.worker = worker};
    enum err_code rc = store_once(store, read_draining, &look, err);
    if (rc == ERR_OK)
        *ret_draining = look.draining;
    return rc;
}

struct runner_look {
    const struct uuid *worker;
    const struct uuid *home;
    const char *runner;
    bool shares;
};

static enum err_code read_runner(struct txn *txn, void *ctx, struct err *err)
{
    struct runner_look *look = ctx;
    uint64_t one = 0;
    return db_one(txn->db, DB_WORKER_SHARES_RUNNER,
                  DB_ARGS(db_uuid(look->worker), db_uuid(look->home), db_text(look->runner)),
                  DB_COLS(COL_U64(&one)), &look->shares, err);
}

enum err_code worker_store_shares_runner(struct store *store, const struct uuid *worker,
                                         const struct uuid *home, const char *runner,
                                         bool *ret_shares, struct err *err)
{
    struct runner_look look = {.worker = worker, .home = home, .runner = runner};
    enum err_code rc = store_once(store, read_runner, &look, err);
    if (rc == ERR_OK)
        *ret_shares = look.shares;
    return rc;
}

enum err_code worker_store_beats(struct store *store, struct worker_beat **ret_beats,
                                 size_t *ret_count, struct err *err)
{
    struct worker_beat row;
    struct rows rows = ROWS_OF(struct worker_beat);
    struct reading reading = {
        .stmt = DB_WORKER_BEATS,
        .cols = DB_COLS(COL_UUID(&row.id), COL_U64(&row.beat), COL_U32(&row.lease_ms)),
        .row = &row,
        .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_beats = rows_take(&rows);
    return ERR_OK;
}

struct found {
    struct worker_row row;
    char state[17];
};

static enum err_code complete(void *row, struct err *err)
{
    struct found *found = row;
    return worker_state_of(found->state, &found->row.state, err);
}

static enum err_code select_workers(struct store *store, enum db_stmt_id stmt, struct db_args args,
                                    struct worker_row **ret_rows, size_t *ret_count,
                                    struct err *err)
{
    struct found found;
    struct worker_row *row = &found.row;
    struct rows rows = ROWS_OF(struct worker_row);
    struct reading reading = {
        .stmt = stmt,
        .args = args,
        .cols = DB_COLS(
            COL_UUID(&row->id), COL_TEXT(row->tenant), COL_TEXT(row->queue), COL_TEXT(row->name),
            COL_TEXT(row->host), COL_TEXT(row->boot_id), COL_U32(&row->pid), COL_TEXT(row->version),
            COL_U32(&row->slots), COL_U32(&row->busy), COL_U64(&row->beat), COL_TEXT(found.state),
            COL_BOOL(&row->draining), COL_I64(&row->started_us), COL_I64(&row->beat_age_us),
            COL_U32(&row->lease_ms), COL_I64(&row->clock_ms)),
        .row = &found,
        .complete = complete,
        .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_rows = rows_take(&rows);
    return ERR_OK;
}

enum err_code worker_store_former(struct store *store, const struct uuid *home,
                                  struct worker_row **ret_rows, size_t *ret_count, struct err *err)
{
    return select_workers(store, DB_WORKER_FORMER, DB_ARGS(db_uuid(home)), ret_rows, ret_count,
                          err);
}

enum err_code worker_store_list(struct store *store, const char *tenant,
                                struct worker_row **ret_rows, size_t *ret_count, struct err *err)
{
    return select_workers(store, DB_WORKER_LIST, DB_ARGS(db_text(tenant)), ret_rows, ret_count,
                          err);
}

enum err_code worker_store_get(struct store *store, const char *tenant, const struct uuid *worker,
                               struct worker_row *ret_row, struct err *err)
{
    struct worker_row *rows = NULL;
    size_t count = 0;
    enum err_code rc = select_workers(
        store, DB_WORKER_GET, DB_ARGS(db_uuid(worker), db_text(tenant)), &rows, &count, err);
    if (rc == ERR_OK && count == 0)
        rc = no_such_worker(worker, err);
    if (rc == ERR_OK)
        *ret_row = rows[0];
    free(rows);
    return rc;
}

enum err_code worker_store_of_queue(struct store *store, const char *tenant, const char *queue,
                                    bool live, struct worker_row *ret_row, struct err *err)
{
    struct worker_row *rows = NULL;
    size_t count = 0;
    const struct db_arg of = db_text(tenant);
    const struct db_arg name = db_text(queue);
    enum err_code rc = select_workers(
        store, live ? DB_WORKER_OF_QUEUE : DB_WORKER_GONE_FROM_QUEUE,
        live ? DB_ARGS(of, name) : DB_ARGS(of, name, of, name, of, name), &rows, &count, err);
    if (rc == ERR_OK && count == 0)
        rc = err_set(err, ERR_NOT_FOUND, "no worker serves queue %s", queue);
    if (rc == ERR_OK)
        *ret_row = rows[0];
    free(rows);
    return rc;
}
