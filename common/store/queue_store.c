/* SPDX-License-Identifier: MIT */
#include "common/store/queue_store.h"

#include "common/store/pool.h"
#include "common/store/rows.h"

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
    struct job_queue *queues = rows->items;
    for (size_t i = 0; i < rows->count; i++)
        job_queue_done(&queues[i]);
    rows_clear(rows);
}

struct list {
    const char *tenant;
    struct rows rows;
};

static enum err_code read_list(struct txn *txn, void *ctx, struct err *err)
{
    struct list *list = ctx;
    struct job_queue row = {0};
    bool more = true;
    clear_queues(&list->rows);
    enum err_code rc = db_select(txn->db, DB_QUEUE_LIST, DB_ARGS(db_text(list->tenant)),
                                 QUEUE_ROW_COLS(&row), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc || !more)
            break;
        rc = rows_add(&list->rows, &row, err);
        if (rc == ERR_OK)
            row.filter = NULL;
    }
    db_end(txn->db);
    job_queue_done(&row);
    return rc;
}

enum err_code queue_store_list(struct store *store, const char *tenant,
                               struct job_queue_list *ret_list, struct err *err)
{
    struct list list = {.tenant = tenant, .rows = ROWS_OF(struct job_queue)};
    enum err_code rc = store_once(store, read_list, &list, err);
    if (rc == ERR_OK) {
        ret_list->count = list.rows.count;
        ret_list->items = rows_take(&list.rows);
    }
    clear_queues(&list.rows);
    rows_done(&list.rows);
    return rc;
}

struct one {
    const char *tenant;
    const char *name;
    struct job_queue queue;
    bool found;
};

static enum err_code read_one(struct txn *txn, void *ctx, struct err *err)
{
    struct one *one = ctx;
    return db_one(txn->db, DB_QUEUE_GET, DB_ARGS(db_text(one->tenant), db_text(one->name)),
                  QUEUE_ROW_COLS(&one->queue), &one->found, err);
}

static enum err_code no_such_queue(const char *name, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "there is no queue %s", name);
}

enum err_code queue_store_get(struct store *store, const char *tenant, const char *name,
                              struct job_queue *ret_queue, struct err *err)
{
    struct one one = {.tenant = tenant, .name = name};
    enum err_code rc = store_once(store, read_one, &one, err);
    if (rc == ERR_OK && one.found) {
        *ret_queue = one.queue;
        return ERR_OK;
    }
    job_queue_done(&one.queue);
    return rc ? rc : no_such_queue(name, err);
}

/* ---- changes -------------------------------------------------------------------------------- */

struct put {
    const struct job_queue *queue;
    uint32_t expect;
    uint32_t version; /* of the row that this, or an earlier try, wrote */
    bool made;
};

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_queue(const struct job_queue *a, const struct job_queue *b)
{
    return a->priority == b->priority && same_text(a->filter, b->filter) &&
           strcmp(a->queue_type, b->queue_type) == 0 && a->enabled == b->enabled &&
           a->max_seconds == b->max_seconds && strcmp(a->description, b->description) == 0;
}

static enum err_code check_expected(const char *name, const struct one *old, uint32_t expect,
                                    struct err *err)
{
    if (expect == 0)
        return ERR_OK;
    if (expect == QUEUE_MUST_BE_NEW)
        return old->found ? err_set(err, ERR_PRECONDITION, "queue %s exists already", name)
                          : ERR_OK;
    if (!old->found)
        return err_set(err, ERR_PRECONDITION, "queue %s does not exist", name);
    if (old->queue.version != expect)
        return err_set(err, ERR_PRECONDITION,
                       "queue %s is at version %u, not %u: read it again before you change it",
                       name, old->queue.version, expect);
    return ERR_OK;
}

static enum err_code check_priority(struct db *db, const struct job_queue *queue, struct err *err)
{
    char name[QUEUE_NAME_SIZE];
    bool found = false;
    enum err_code rc =
        db_one(db, DB_QUEUE_BY_PRIORITY,
               DB_ARGS(db_text(queue->tenant), db_i64(queue->priority), db_text(queue->name)),
               DB_COLS(COL_TEXT(name)), &found, err);
    if (rc || !found)
        return rc;
    return err_set(err, ERR_CONFLICT, "queue %s has priority %d already; each queue needs its own",
                   name, queue->priority);
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

static enum err_code write_queue(struct db *db, const struct job_queue *queue, bool is_new,
                                 struct err *err)
{
    return db_exec(
        db, is_new ? DB_QUEUE_INSERT : DB_QUEUE_UPDATE,
        DB_ARGS(db_i64(queue->priority), db_text(queue->filter),
                db_text(*queue->queue_type ? queue->queue_type : "quorum"), db_u64(queue->enabled),
                queue->max_seconds ? db_u64(queue->max_seconds) : db_null(),
                db_text(queue->description), db_text(queue->tenant), db_text(queue->name)),
        NULL, err);
}

static enum err_code put_over(struct txn *txn, struct put *put, const struct one *old,
                              struct err *err)
{
    const struct job_queue *queue = put->queue;
    /* Our own earlier try was committed after all. */
    if (txn->commit_unknown && old->found && old->queue.version == put->version &&
        same_queue(&old->queue, queue))
        return ERR_OK;
    enum err_code rc = check_expected(queue->name, old, put->expect, err);
    if (rc == ERR_OK)
        rc = check_priority(txn->db, queue, err);
    if (rc == ERR_OK && !old->found)
        rc = check_room(txn->db, queue->tenant, err);
    if (rc == ERR_OK)
        rc = write_queue(txn->db, queue, !old->found, err);
    if (rc)
        return rc;
    put->made = !old->found;
    put->version = old->found ? old->queue.version + 1 : 1;
    return ERR_OK;
}

static enum err_code put_queue(struct txn *txn, void *ctx, struct err *err)
{
    struct put *put = ctx;
    struct one old = {.tenant = put->queue->tenant, .name = put->queue->name};
    enum err_code rc = db_exec(txn->db, DB_VERSION_RAISE, DB_NO_ARGS, NULL, err);
    if (rc == ERR_OK)
        rc = read_one(txn, &old, err);
    if (rc == ERR_OK)
        rc = put_over(txn, put, &old, err);
    job_queue_done(&old.queue);
    return rc;
}

enum err_code queue_store_put(struct store *store, const struct job_queue *queue,
                              uint32_t expect_version, uint32_t *ret_version, bool *ret_made,
                              struct err *err)
{
    struct put put = {.queue = queue, .expect = expect_version};
    enum err_code rc = store_txn(store, put_queue, &put, err);
    if (rc)
        return rc;
    *ret_version = put.version;
    *ret_made = put.made;
    return ERR_OK;
}

struct removal {
    const char *tenant;
    const char *name;
    uint32_t expect;
    bool tried;
};

static enum err_code check_unused(struct db *db, const struct removal *removal, struct err *err)
{
    uint64_t jobs = 0;
    bool found = false;
    if (strcmp(removal->name, QUEUE_DEFAULT) == 0)
        return err_set(err, ERR_IN_USE, "the default queue cannot be deleted");
    enum err_code rc =
        db_one(db, DB_QUEUE_JOBS, DB_ARGS(db_text(removal->tenant), db_text(removal->name)),
               DB_COLS(COL_U64(&jobs)), &found, err);
    if (rc || jobs == 0)
        return rc;
    return err_set(err, ERR_IN_USE,
                   "%" PRIu64 " jobs that have not ended are on queue %s; disable it and delete "
                   "it when they have",
                   jobs, removal->name);
}

static enum err_code delete_old(struct txn *txn, struct removal *removal, const struct one *old,
                                struct err *err)
{
    bool again = removal->tried && txn->commit_unknown;
    removal->tried = true;
    if (!old->found)
        return again ? ERR_OK : no_such_queue(removal->name, err);
    enum err_code rc = check_expected(removal->name, old, removal->expect, err);
    if (rc == ERR_OK)
        rc = check_unused(txn->db, removal, err);
    if (rc)
        return rc;
    return db_exec(txn->db, DB_QUEUE_DELETE,
                   DB_ARGS(db_text(removal->tenant), db_text(removal->name)), NULL, err);
}

static enum err_code delete_queue(struct txn *txn, void *ctx, struct err *err)
{
    struct removal *removal = ctx;
    struct one old = {.tenant = removal->tenant, .name = removal->name};
    enum err_code rc = db_exec(txn->db, DB_VERSION_RAISE, DB_NO_ARGS, NULL, err);
    if (rc == ERR_OK)
        rc = read_one(txn, &old, err);
    if (rc == ERR_OK)
        rc = delete_old(txn, removal, &old, err);
    job_queue_done(&old.queue);
    return rc;
}

enum err_code queue_store_delete(struct store *store, const char *tenant, const char *name,
                                 uint32_t expect_version, struct err *err)
{
    struct removal removal = {.tenant = tenant, .name = name, .expect = expect_version};
    return store_txn(store, delete_queue, &removal, err);
}
