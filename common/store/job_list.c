/* SPDX-License-Identifier: MIT */
#include "common/store/job_list_sql.h"

#include "common/base/clock.h"

#include <assert.h>

static void clear_jobs(struct rows *rows)
{
    struct job **jobs = rows->items;
    for (size_t i = 0; i < rows->count; i++)
        job_free(jobs[i]);
    rows_clear(rows);
}

static enum err_code add_job(struct job_search_sql *search, struct job_row *row, struct err *err)
{
    struct job *job = NULL;
    enum err_code rc = job_row_take(row, &job, err);
    if (rc)
        return rc;
    rc = rows_add(&search->rows, &job, err);
    if (rc)
        job_free(job);
    return rc;
}

static enum err_code run_search(struct txn *txn, void *ctx, struct err *err)
{
    struct job_search_sql *search = ctx;
    struct job_row row = {0};
    bool more = true;
    clear_jobs(&search->rows);
    enum err_code rc =
        db_select_text(txn->db, buf_sv(&search->sql),
                       (struct db_args){search->args, search->arg_count}, JOB_ROW_COLS(&row), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = add_job(search, &row, err);
    }
    db_end(txn->db);
    job_row_done(&row);
    return rc;
}

void job_list_done(struct job_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        job_free(list->items[i]);
    free(list->items);
    *list = (struct job_list){0};
}

static enum err_code check_params(const struct job_query *query, struct err *err)
{
    if (query->param_count <= JOB_STORE_PARAMS_MAX)
        return ERR_OK;
    return err_set(err, ERR_TOO_LARGE, "a search has at most %d values; make the filter shorter",
                   JOB_STORE_PARAMS_MAX);
}

/* What is over the limit tells that there is more. */
static void give_list(struct job_search_sql *search, struct job_list *ret_list)
{
    uint32_t limit = search->query->limit;
    struct job_list list = {.count = search->rows.count};
    list.items = rows_take(&search->rows);
    list.more = list.count > limit;
    while (list.count > limit)
        job_free(list.items[--list.count]);
    if (list.more)
        list.last = list.items[list.count - 1]->id;
    *ret_list = list;
}

/* ---- stretch by stretch ---------------------------------------------------------------------- */

static enum err_code run_end(struct txn *txn, void *ctx, struct err *err)
{
    struct job_search_sql *search = ctx;
    enum err_code rc = db_select_text(txn->db, buf_sv(&search->sql),
                                      (struct db_args){search->args, search->arg_count},
                                      DB_COLS(COL_UUID(&search->end)), err);
    if (rc == ERR_OK)
        rc = db_next(txn->db, &search->has_end, err);
    db_end(txn->db);
    return rc;
}

static enum err_code search_stretch(struct store *store, struct job_search_sql *search,
                                    struct err *err)
{
    search->has_end = false;
    enum err_code rc = job_search_build_end(search, err);
    if (rc == ERR_OK)
        rc = store_once(store, run_end, search, err);
    if (rc == ERR_OK)
        rc = job_search_build(search, err);
    return rc ? rc : store_once(store, run_search, search, err);
}

/* Its jobs come behind those that were found before. */
static enum err_code take_found(struct job_search_sql *search, struct rows *found, struct err *err)
{
    struct job **jobs = search->rows.items;
    enum err_code rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < search->rows.count; i++) {
        rc = rows_add(found, &jobs[i], err);
        if (rc == ERR_OK)
            jobs[i] = NULL;
    }
    clear_jobs(&search->rows);
    return rc;
}

/* What one row costs is not known: from some bytes to a megabyte of JSON, read for each term of the
 * filter. So those that read JSON begin small, and grow while the server is quick. */
#define STRETCH_JSON 4
#define STRETCH_QUICK_MS 20
#define STRETCH_GROWTH 4

static uint32_t first_stretch(const struct job_query *query)
{
    bool reads_json = query->where_sql && strstr(query->where_sql, "JSON_");
    return reads_json && query->stretch > STRETCH_JSON ? STRETCH_JSON : query->stretch;
}

static void grow_stretch(struct job_search_sql *search, int64_t took_ms)
{
    uint32_t most = search->query->stretch;
    if (took_ms > STRETCH_QUICK_MS)
        return;
    search->stretch =
        search->stretch < most / STRETCH_GROWTH ? search->stretch * STRETCH_GROWTH : most;
}

static enum err_code find_in_stretches(struct store *store, struct job_search_sql *search,
                                       struct rows *found, struct err *err)
{
    const struct job_query *query = search->query;
    int64_t until_ms = clock_mono_ms() + query->look_ms;
    enum err_code rc = ERR_OK;
    bool goes_on = true;
    search->stretch = first_stretch(query);
    while (rc == ERR_OK && goes_on) {
        int64_t begun_ms = clock_mono_ms();
        rc = search_stretch(store, search, err);
        if (rc == ERR_TIMEOUT && search->after == &search->place) {
            /* The next page goes on there, from a small stretch. */
            err_clear(err);
            search->has_end = true;
            search->end = search->place;
            return ERR_OK;
        }
        if (rc == ERR_OK)
            rc = take_found(search, found, err);
        grow_stretch(search, clock_mono_ms() - begun_ms);
        search->place = search->end;
        search->after = &search->place;
        goes_on = search->has_end && found->count <= query->limit && clock_mono_ms() < until_ms;
    }
    return rc;
}

static enum err_code search_stretches(struct store *store, struct job_search_sql *search,
                                      struct job_list *ret_list, struct err *err)
{
    struct rows found = ROWS_OF(struct job *);
    enum err_code rc = find_in_stretches(store, search, &found, err);
    if (rc) {
        clear_jobs(&found);
        rows_done(&found);
        return rc;
    }
    rows_done(&search->rows);
    search->rows = found;
    give_list(search, ret_list);
    if (!ret_list->more && search->has_end) {
        ret_list->more = true;
        ret_list->last = search->end;
    }
    return ERR_OK;
}

static enum err_code search_all(struct store *store, struct job_search_sql *search,
                                struct job_list *ret_list, struct err *err)
{
    enum err_code rc = job_search_build(search, err);
    if (rc == ERR_OK)
        rc = store_once(store, run_search, search, err);
    if (rc == ERR_OK)
        give_list(search, ret_list);
    return rc;
}

enum err_code job_store_list(struct store *store, const struct job_query *query,
                             struct job_list *ret_list, struct err *err)
{
    assert(query->tenant && query->limit >= 1 && query->limit <= JOB_STORE_PAGE_MAX);
    struct job_search_sql search = {.query = query,
                                    .after = query->after,
                                    .sql = BUF_INIT(SQL_SIZE_MAX),
                                    .rows = ROWS_OF(struct job *)};
    enum err_code rc = check_params(query, err);
    if (rc == ERR_OK)
        rc = job_search_in_stretches(query) ? search_stretches(store, &search, ret_list, err)
                                            : search_all(store, &search, ret_list, err);
    clear_jobs(&search.rows);
    rows_done(&search.rows);
    buf_done(&search.sql);
    return rc;
}

/* ---- counting -------------------------------------------------------------------------------- */

static enum err_code run_count(struct txn *txn, void *ctx, struct err *err)
{
    struct job_search_sql *search = ctx;
    bool more = false;
    enum err_code rc = db_select_text(txn->db, buf_sv(&search->sql),
                                      (struct db_args){search->args, search->arg_count},
                                      DB_COLS(COL_U64(&search->count)), err);
    if (rc == ERR_OK)
        rc = db_next(txn->db, &more, err);
    db_end(txn->db);
    return rc;
}

enum err_code job_store_count(struct store *store, const struct job_query *query, uint32_t most,
                              uint64_t *ret_count, struct err *err)
{
    struct job_search_sql search = {
        .query = query, .after = query->after, .sql = BUF_INIT(SQL_SIZE_MAX)};
    enum err_code rc = check_params(query, err);
    if (rc == ERR_OK)
        rc = job_search_build_count(&search, most, err);
    if (rc == ERR_OK)
        rc = store_once(store, run_count, &search, err);
    if (rc == ERR_OK)
        *ret_count = search.count;
    buf_done(&search.sql);
    return rc;
}
