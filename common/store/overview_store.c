/* SPDX-License-Identifier: MIT */
#include "common/store/overview_store.h"

#include "common/store/job_row.h"
#include "common/store/reading.h"

#define RUNNING_MAX 1000 /* running jobs that are looked at */

struct look {
    const char *tenant;
    struct overview overview;
    struct rows blocked;
    struct rows fleet;
};

static enum err_code count_jobs(struct txn *txn, struct look *look, struct err *err)
{
    enum err_code rc = ERR_OK;
    for (int i = 0; rc == ERR_OK && i < JOB_STATE_COUNT; i++) {
        bool found = false;
        if (job_state_ends((enum job_state)i) || i == JOB_BLOCKED) /* these have rows to count */
            continue;
        rc = db_one(txn->db, DB_OVERVIEW_JOBS,
                    DB_ARGS(db_text(look->tenant), db_text(job_state_text((enum job_state)i)),
                            db_u64(OVERVIEW_COUNT_MAX + 1)),
                    DB_COLS(COL_U64(&look->overview.jobs[i])), &found, err);
    }
    return rc;
}

#define JOB_COLS_OF(job)                                                                           \
    DB_COLS(COL_UUID(&(job)->id), COL_TEXT((job)->name), COL_TEXT((job)->owner),                   \
            COL_TEXT((job)->queue), COL_I64(&(job)->since_us), COL_U32(&(job)->max_seconds))

static enum err_code find_jobs(struct txn *txn, struct look *look, struct err *err)
{
    struct overview_job *waiting = &look->overview.waiting;
    struct overview_job *running = &look->overview.running;
    enum err_code rc = db_one(txn->db, DB_OVERVIEW_WAITING, DB_ARGS(db_text(look->tenant)),
                              JOB_COLS_OF(waiting), &waiting->found, err);
    if (rc == ERR_OK)
        rc = db_one(txn->db, DB_OVERVIEW_RUNNING,
                    DB_ARGS(db_text(look->tenant), db_u64(RUNNING_MAX)), JOB_COLS_OF(running),
                    &running->found, err);
    return rc;
}

struct blocked_row {
    struct overview_blocked blocked;
    char condition[CONDITION_TEXT_SIZE];
};

static enum err_code complete(void *row, struct err *err)
{
    struct blocked_row *read = row;
    return condition_of(read->condition, &read->blocked.condition, err);
}

static enum err_code read_blocked(struct txn *txn, struct look *look, struct err *err)
{
    struct blocked_row row = {.condition = ""};
    struct reading reading = {.stmt = DB_OVERVIEW_BLOCKED,
                              .args = DB_ARGS(db_text(look->tenant)),
                              .cols = DB_COLS(COL_TEXT(row.condition), COL_U32(&row.blocked.causes),
                                              COL_U64(&row.blocked.jobs),
                                              COL_I64(&row.blocked.first_us)),
                              .row = &row,
                              .complete = complete,
                              .rows = &look->blocked};
    enum err_code rc = read_rows(txn->db, &reading, err);
    const struct overview_blocked *items = look->blocked.items;
    for (size_t i = 0; i < look->blocked.count; i++)
        look->overview.jobs[JOB_BLOCKED] += items[i].jobs;
    return rc;
}

static enum err_code read_fleet(struct txn *txn, struct look *look, struct err *err)
{
    struct overview_fleet row = {0};
    struct reading reading = {.stmt = DB_OVERVIEW_FLEET,
                              .args = DB_ARGS(db_text(look->tenant)),
                              .cols = DB_COLS(COL_TEXT(row.version), COL_U32(&row.workers),
                                              COL_U32(&row.slots), COL_U32(&row.busy)),
                              .row = &row,
                              .rows = &look->fleet};
    return read_rows(txn->db, &reading, err);
}

static enum err_code read_site(struct txn *txn, struct look *look, struct err *err)
{
    struct overview *overview = &look->overview;
    const struct db_arg most = db_u64(OVERVIEW_COUNT_MAX + 1);
    struct uuid holder;
    uint64_t fencing = 0;
    bool found = false;
    enum err_code rc = db_one(
        txn->db, DB_OVERVIEW_SITE, DB_NO_ARGS,
        DB_COLS(COL_TEXT(overview->database_version), COL_I64(&overview->now_us)), &found, err);
    if (rc == ERR_OK)
        rc = db_one(txn->db, DB_OVERVIEW_DEAD, DB_ARGS(db_text(look->tenant), most),
                    DB_COLS(COL_U64(&overview->dead)), &found, err);
    if (rc == ERR_OK)
        rc = db_one(txn->db, DB_OVERVIEW_OUTBOX, DB_ARGS(most),
                    DB_COLS(COL_U64(&overview->outbox), COL_I64(&overview->outbox_age_us)), &found,
                    err);
    if (rc == ERR_OK)
        rc =
            db_one(txn->db, DB_LEADER_GET, DB_ARGS(db_text(look->tenant)),
                   DB_COLS(COL_U64(&fencing), COL_UUID(&holder), COL_I64(&overview->leader_age_us)),
                   &overview->has_leader, err);
    return rc;
}

static enum err_code read_overview(struct txn *txn, void *ctx, struct err *err)
{
    struct look *look = ctx;
    look->overview = (struct overview){0};
    rows_clear(&look->blocked);
    rows_clear(&look->fleet);
    enum err_code rc = read_site(txn, look, err);
    if (rc == ERR_OK)
        rc = count_jobs(txn, look, err);
    if (rc == ERR_OK)
        rc = find_jobs(txn, look, err);
    if (rc == ERR_OK)
        rc = read_blocked(txn, look, err);
    return rc ? rc : read_fleet(txn, look, err);
}

enum err_code overview_store_read(struct store *store, const char *tenant,
                                  struct overview *ret_overview, struct err *err)
{
    struct look look = {.tenant = tenant,
                        .blocked = ROWS_OF(struct overview_blocked),
                        .fleet = ROWS_OF(struct overview_fleet)};
    enum err_code rc = store_once(store, read_overview, &look, err);
    if (rc == ERR_OK) {
        *ret_overview = look.overview;
        ret_overview->blocked_count = look.blocked.count;
        ret_overview->fleet_count = look.fleet.count;
        ret_overview->blocked = rows_take(&look.blocked);
        ret_overview->fleet = rows_take(&look.fleet);
    }
    rows_done(&look.blocked);
    rows_done(&look.fleet);
    return rc;
}

void overview_done(struct overview *overview)
{
    free(overview->blocked);
    free(overview->fleet);
    *overview = (struct overview){0};
}

/* ---- queues ---------------------------------------------------------------------------------- */

struct queues_look {
    const char *tenant;
    struct rows rows;
    struct queue_loads loads;
};

static struct queue_load *find_row(struct rows *rows, const char *queue)
{
    struct queue_load *items = rows->items;
    for (size_t i = 0; i < rows->count; i++) {
        if (strcmp(items[i].queue, queue) == 0)
            return &items[i];
    }
    return NULL;
}

static enum err_code read_queue_fleet(struct txn *txn, struct queues_look *look, struct err *err)
{
    struct queue_load row = {0};
    struct reading reading = {.stmt = DB_QUEUE_FLEET,
                              .args = DB_ARGS(db_text(look->tenant)),
                              .cols = DB_COLS(COL_TEXT(row.queue), COL_U32(&row.workers),
                                              COL_U32(&row.slots), COL_U32(&row.busy),
                                              COL_U32(&row.takers)),
                              .row = &row,
                              .rows = &look->rows};
    return read_rows(txn->db, &reading, err);
}

static enum err_code add_wait(struct queues_look *look, const char *queue, uint64_t jobs,
                              int64_t oldest_us, struct err *err)
{
    struct queue_load *load = find_row(&look->rows, queue);
    struct queue_load fresh = {.waiting = jobs, .waiting_us = oldest_us};
    if (load) {
        load->waiting = jobs;
        load->waiting_us = oldest_us;
        return ERR_OK;
    }
    (void)snprintf(fresh.queue, sizeof(fresh.queue), "%s", queue);
    return rows_add(&look->rows, &fresh, err);
}

static enum err_code read_queue_waits(struct txn *txn, struct queues_look *look, struct err *err)
{
    char queue[QUEUE_NAME_SIZE];
    uint64_t jobs = 0;
    uint64_t looked_at = 0;
    int64_t oldest_us = 0;
    int64_t newest_us = 0;
    int64_t until_us = 0;
    bool more = true;
    enum err_code rc = db_select(
        txn->db, DB_QUEUE_WAITS, DB_ARGS(db_text(look->tenant), db_u64(OVERVIEW_WAITS_MAX)),
        DB_COLS(COL_TEXT(queue), COL_U64(&jobs), COL_I64(&oldest_us), COL_I64(&newest_us)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc || !more)
            break;
        looked_at += jobs;
        until_us = newest_us > until_us ? newest_us : until_us;
        rc = add_wait(look, queue, jobs, oldest_us, err);
    }
    db_end(txn->db);
    look->loads.looked_until_us = looked_at >= OVERVIEW_WAITS_MAX ? until_us : 0;
    return rc;
}

static enum err_code read_queues(struct txn *txn, void *ctx, struct err *err)
{
    struct queues_look *look = ctx;
    char version[128];
    bool found = false;
    rows_clear(&look->rows);
    enum err_code rc =
        db_one(txn->db, DB_OVERVIEW_SITE, DB_NO_ARGS,
               DB_COLS(COL_TEXT(version), COL_I64(&look->loads.now_us)), &found, err);
    if (rc == ERR_OK)
        rc = read_queue_fleet(txn, look, err);
    return rc ? rc : read_queue_waits(txn, look, err);
}

enum err_code overview_store_queues(struct store *store, const char *tenant,
                                    struct queue_loads *ret_loads, struct err *err)
{
    struct queues_look look = {.tenant = tenant, .rows = ROWS_OF(struct queue_load)};
    enum err_code rc = store_once(store, read_queues, &look, err);
    if (rc == ERR_OK) {
        *ret_loads = look.loads;
        ret_loads->count = look.rows.count;
        ret_loads->items = rows_take(&look.rows);
    }
    rows_done(&look.rows);
    return rc;
}

bool queue_load_unserved(const struct queue_load *load)
{
    return load->waiting > 0 && load->takers == 0;
}

enum err_code overview_store_takers(struct store *store, struct queue_taker **ret_takers,
                                    size_t *ret_count, struct err *err)
{
    struct queue_taker row;
    struct rows rows = ROWS_OF(struct queue_taker);
    struct reading reading = {.stmt = DB_QUEUE_TAKERS,
                              .cols = DB_COLS(COL_TEXT(row.tenant), COL_TEXT(row.queue)),
                              .row = &row,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_takers = rows_take(&rows);
    return ERR_OK;
}

const struct queue_load *queue_load_find(const struct queue_loads *loads, const char *queue)
{
    for (size_t i = 0; i < loads->count; i++) {
        if (strcmp(loads->items[i].queue, queue) == 0)
            return &loads->items[i];
    }
    return NULL;
}
