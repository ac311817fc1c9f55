/* SPDX-License-Identifier: MIT */
#include "common/store/queue_store.h"

#include "common/store/named.h"

#include <inttypes.h>

/* ---- tenants -------------------------------------------------------------------------------- */

static enum err_code tenant_is_there(struct txn *txn, void *ctx, struct err *err)
{
    const char *tenant = ctx;
    char name[TENANT_SIZE];
    bool found = false;
    enum err_code rc = db_one(txn->db, DB_TENANT_GET, DB_ARGS(db_text(tenant)),
                              DB_COLS(COL_TEXT(name)), &found, err);
    if (rc)
        return rc;
    return found ? ERR_OK : err_set(err, ERR_NOT_FOUND, "there is no tenant %s", tenant);
}

/* The version's row lock lets one of several makers at a time through; the others find it made. */
static enum err_code make_tenant(struct txn *txn, void *ctx, struct err *err)
{
    struct db *db = txn->db;
    const char *tenant = ctx;
    enum err_code rc = db_exec(db, DB_VERSION_RAISE, DB_NO_ARGS, NULL, err);
    if (rc)
        return rc;
    struct err missing = {0};
    rc = tenant_is_there(txn, ctx, &missing);
    if (rc != ERR_NOT_FOUND) {
        if (rc)
            *err = missing;
        return rc;
    }
    rc = db_exec(db, DB_TENANT_INSERT, DB_ARGS(db_text(tenant)), NULL, err);
    if (rc)
        return rc;
    return db_exec(db, DB_QUEUE_INSERT,
                   DB_ARGS(db_i64(0), db_null(), db_text("quorum"), db_u64(1), db_null(),
                           db_text("What no filter of another queue wants."), db_text(tenant),
                           db_text(QUEUE_DEFAULT)),
                   NULL, err);
}

enum err_code tenant_store_ensure(struct store *store, const char *tenant, struct err *err)
{
    struct err missing = {0};
    char name[TENANT_SIZE];
    if (!sv_copy(sv_of(tenant), name, sizeof(name)))
        return err_set(err, ERR_INVALID, "the name of a tenant has at most %zu bytes",
                       sizeof(name) - 1);
    enum err_code rc = store_once(store, tenant_is_there, name, &missing);
    if (rc == ERR_NOT_FOUND)
        return store_txn(store, make_tenant, name, err);
    if (rc)
        *err = missing;
    return rc;
}

/* ---- reading -------------------------------------------------------------------------------- */

static enum err_code read_version(struct txn *txn, void *ctx, struct err *err)
{
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_VERSION_GET, DB_NO_ARGS, DB_COLS(COL_U64((uint64_t *)ctx)), &found, err);
    if (rc == ERR_OK && !found)
        rc = err_set(err, ERR_DB, "site_versions has no row; run `sluice migrate`");
    return rc;
}

enum err_code queue_store_version(struct store *store, uint64_t *ret_version, struct err *err)
{
    return store_once(store, read_version, ret_version, err);
}

#define QUEUE_ROW_COLS(q)                                                                          \
    DB_COLS(COL_TEXT((q)->tenant), COL_TEXT((q)->name), COL_I32(&(q)->priority),                   \
            COL_HEAP(&(q)->filter), COL_TEXT((q)->queue_type), COL_BOOL(&(q)->enabled),            \
            COL_U32(&(q)->max_seconds), COL_TEXT((q)->description), COL_U32(&(q)->version),        \
            COL_I64(&(q)->created_us), COL_I64(&(q)->updated_us))

void job_queue_done(struct job_queue *queue)
{
    text_free(&queue->filter);
}

void job_queue_list_done(struct job_queue_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        job_queue_done(&list->items[i]);
    free(list->items);
    *list = (struct job_queue_list){0};
}

static void clear_queues(struct rows *rows)
{
    struct job_queue *items = rows->items;
    for (size_t i = 0; i < rows->count; i++)
        job_queue_done(&items[i]);
    rows_clear(rows);
}

static const struct named_kind queues = {.noun = "queue",
                                         .version = "version",
                                         .get = DB_QUEUE_GET,
                                         .lock = DB_QUEUE_LOCK,
                                         .same = DB_QUEUE_SAME,
                                         .insert = DB_QUEUE_INSERT,
                                         .update = DB_QUEUE_UPDATE,
                                         .remove = DB_QUEUE_DELETE};

static struct named queue_of(const char *tenant, const char *name)
{
    return (struct named){
        .kind = &queues, .name = name, .key = {db_text(tenant), db_text(name)}, .key_count = 2};
}

enum err_code queue_store_list(struct store *store, const char *tenant,
                               struct job_queue_list *ret_list, struct err *err)
{
    struct job_queue row = {0};
    struct rows rows = ROWS_OF(struct job_queue);
    struct reading reading = {.stmt = DB_QUEUE_LIST,
                              .args = DB_ARGS(db_text(tenant)),
                              .cols = QUEUE_ROW_COLS(&row),
                              .row = &row,
                              .clear = clear_queues,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    job_queue_done(&row);
    if (rc)
        return rc;
    ret_list->count = rows.count;
    ret_list->items = rows_take(&rows);
    return ERR_OK;
}

enum err_code queue_store_get(struct store *store, const char *tenant, const char *name,
                              struct job_queue *ret_queue, struct err *err)
{
    const struct named of = queue_of(tenant, name);
    struct job_queue row = {0};
    enum err_code rc = named_get(store, &of, QUEUE_ROW_COLS(&row), err);
    if (rc == ERR_OK)
        *ret_queue = row;
    else
        job_queue_done(&row);
    return rc;
}

/* ---- changes -------------------------------------------------------------------------------- */

#define FREE_PRIORITY_TRIES 20

static enum err_code look_at_priority(struct db *db, const struct job_queue *queue,
                                      int32_t priority, bool *ret_taken, char *ret_name,
                                      struct err *err)
{
    return db_one(db, DB_QUEUE_BY_PRIORITY,
                  DB_ARGS(db_text(queue->tenant), db_i64(priority), db_text(queue->name)),
                  DB_COLS((struct db_col){DB_COL_TEXT, ret_name, QUEUE_NAME_SIZE, NULL}), ret_taken,
                  err);
}

static enum err_code check_priority(struct db *db, const struct job_queue *queue, struct err *err)
{
    char name[QUEUE_NAME_SIZE];
    char other[QUEUE_NAME_SIZE];
    int32_t free_one = queue->priority;
    bool found = false;
    enum err_code rc = look_at_priority(db, queue, queue->priority, &found, name, err);
    if (rc || !found)
        return rc;
    for (int32_t far = 1; rc == ERR_OK && found && far <= FREE_PRIORITY_TRIES; far++) {
        free_one = queue->priority + (far % 2 ? (far + 1) / 2 : -far / 2);
        rc = look_at_priority(db, queue, free_one, &found, other, err);
    }
    if (rc)
        return rc;
    if (found)
        return err_set(err, ERR_CONFLICT,
                       "queue %s has priority %d already; each queue needs its own", name,
                       queue->priority);
    return err_set(err, ERR_CONFLICT,
                   "queue %s has priority %d already; each queue needs its own, and %d is free",
                   name, queue->priority, free_one);
}

static enum err_code check_room(struct db *db, const char *tenant, struct err *err)
{
    uint64_t count = 0;
    bool found = false;
    enum err_code rc =
        db_one(db, DB_QUEUE_COUNT, DB_ARGS(db_text(tenant)), DB_COLS(COL_U64(&count)), &found, err);
    if (rc || count < QUEUES_PER_TENANT_MAX)
        return rc;
    return err_set(err, ERR_INVALID, "a tenant has at most %d queues; delete one first",
                   QUEUES_PER_TENANT_MAX);
}

struct put {
    struct named_change named;
    const struct job_queue *queue;
};

static enum err_code put_queue(struct txn *txn, void *ctx, struct err *err)
{
    struct put *put = ctx;
    struct named_change *named = &put->named;
    enum err_code rc = db_exec(txn->db, DB_VERSION_RAISE, DB_NO_ARGS, NULL, err);
    if (rc == ERR_OK)
        rc = named_look(txn, named, err);
    if (rc || named->done)
        return rc;
    rc = check_priority(txn->db, put->queue, err);
    if (rc == ERR_OK && named->made)
        rc = check_room(txn->db, put->queue->tenant, err);
    if (rc)
        return rc;
    return named_write(txn, named->made ? DB_QUEUE_INSERT : DB_QUEUE_UPDATE, named->values, err);
}

enum err_code queue_store_put(struct store *store, const struct job_queue *queue,
                              uint32_t expect_version, uint32_t *ret_version, bool *ret_made,
                              struct err *err)
{
    struct put put = {
        .named = {.of = queue_of(queue->tenant, queue->name),
                  .expect = expect_version,
                  .values = DB_ARGS(db_i64(queue->priority), db_text(queue->filter),
                                    db_text(*queue->queue_type ? queue->queue_type : "quorum"),
                                    db_u64(queue->enabled),
                                    queue->max_seconds ? db_u64(queue->max_seconds) : db_null(),
                                    db_text(queue->description), db_text(queue->tenant),
                                    db_text(queue->name))},
        .queue = queue};
    enum err_code rc = store_txn(store, put_queue, &put, err);
    if (rc)
        return rc;
    *ret_version = put.named.version;
    *ret_made = put.named.made;
    return ERR_OK;
}

static enum err_code check_unused(struct db *db, const struct named *queue, struct err *err)
{
    uint64_t jobs = 0;
    bool found = false;
    if (strcmp(queue->name, QUEUE_DEFAULT) == 0)
        return err_set(err, ERR_IN_USE, "the default queue cannot be deleted");
    enum err_code rc =
        db_one(db, DB_QUEUE_JOBS, named_key(queue), DB_COLS(COL_U64(&jobs)), &found, err);
    if (rc || jobs == 0)
        return rc;
    return err_set(err, ERR_IN_USE,
                   "%" PRIu64 " job%s not ended %s on queue %s; disable it and delete it when %s",
                   jobs, jobs == 1 ? " that has" : "s that have", jobs == 1 ? "is" : "are",
                   queue->name, jobs == 1 ? "it has" : "they have");
}

static enum err_code delete_queue(struct txn *txn, void *ctx, struct err *err)
{
    struct named_change *change = ctx;
    enum err_code rc = db_exec(txn->db, DB_VERSION_RAISE, DB_NO_ARGS, NULL, err);
    if (rc == ERR_OK)
        rc = named_look_last(txn, change, err);
    if (rc || change->done)
        return rc;
    rc = check_unused(txn->db, &change->of, err);
    return rc ? rc : db_exec(txn->db, DB_QUEUE_DELETE, named_key(&change->of), NULL, err);
}

enum err_code queue_store_delete(struct store *store, const char *tenant, const char *name,
                                 uint32_t expect_version, struct err *err)
{
    struct named_change change = {.of = queue_of(tenant, name), .expect = expect_version};
    return store_txn(store, delete_queue, &change, err);
}
