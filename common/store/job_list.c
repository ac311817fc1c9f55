/* SPDX-License-Identifier: MIT */
#include "common/store/job_row.h"

#include "common/base/buf.h"
#include "common/store/rows.h"

#include <assert.h>

/* The one builder of SQL. Its text comes from literals here and from filter_to_sql, which writes
 * column names of ours and placeholders only; every value is a parameter. */

#define SQL_SIZE_MAX 200000
#define PART_ARGS 8 /* of one state, beside those of the filter: tenant, place, state, limit... */

struct search {
    const struct job_query *query;
    struct buf sql;
    struct db_arg args[DB_PARAMS_MAX];
    size_t arg_count;
    struct rows rows; /* struct job * */
    uint64_t count;
};

static void add_arg(struct search *search, struct db_arg arg)
{
    assert(search->arg_count < DB_PARAMS_MAX);
    search->args[search->arg_count++] = arg;
}

static void add_text(struct search *search, const char *sql, const char *value)
{
    if (!value)
        return;
    buf_add_text(&search->sql, sql);
    add_arg(search, db_text(value));
}

static void add_states(struct search *search, unsigned states)
{
    const char *separator = " AND status IN (";
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        if (!(states >> i & 1u))
            continue;
        buf_addf(&search->sql, "%s?", separator);
        add_arg(search, db_text(job_state_text((enum job_state)i)));
        separator = ", ";
    }
    if (states)
        buf_add_text(&search->sql, ")");
}

static struct db_arg arg_of(const struct store_param *param)
{
    switch (param->type) {
    case STORE_INT:
        return db_i64(param->integer);
    case STORE_DOUBLE:
        return db_double(param->number);
    case STORE_BYTES:
        return db_bytes(param->text.ptr, param->text.len);
    case STORE_TEXT:
        break;
    }
    return db_sv(param->text);
}

static void add_filter(struct search *search)
{
    const struct job_query *query = search->query;
    if (!query->where_sql)
        return;
    buf_add_text(&search->sql, " AND (");
    buf_add_text(&search->sql, query->where_sql);
    buf_add_text(&search->sql, ")");
    for (size_t i = 0; i < query->param_count; i++)
        add_arg(search, arg_of(&query->params[i]));
}

static void add_conditions(struct search *search, unsigned states)
{
    const struct job_query *query = search->query;
    bool down = query->order == JOB_ORDER_CREATED_DESC;
    add_text(search, " FROM jobs WHERE tenant = ?", query->tenant);
    if (query->after) {
        buf_add_text(&search->sql, down ? " AND id < ?" : " AND id > ?");
        add_arg(search, db_uuid(query->after));
    }
    add_text(search, " AND owner = ?", query->owner);
    add_text(search, " AND queue = ?", query->queue);
    add_text(search, " AND name = ?", query->name);
    add_text(search, " AND app_id = ?", query->app_id);
    add_states(search, states);
    if (!query->hidden_too)
        buf_add_text(&search->sql, " AND visible = 1");
    add_filter(search);
}

static enum err_code check_built(const struct search *search, struct err *err)
{
    if (search->sql.failed)
        return err_set(err, ERR_TOO_LARGE, "the search makes a statement of more than %d bytes",
                       SQL_SIZE_MAX);
    return ERR_OK;
}

static void add_order(struct search *search)
{
    bool down = search->query->order == JOB_ORDER_CREATED_DESC;
    buf_add_text(&search->sql, down ? " ORDER BY id DESC" : " ORDER BY id");
}

static void add_page(struct search *search)
{
    add_order(search);
    buf_add_text(&search->sql, " LIMIT ?");
    /* one more tells whether there is more */
    add_arg(search, db_u64((uint64_t)search->query->limit + 1));
}

static bool takes_parts(const struct job_query *query)
{
    size_t parts = (size_t)__builtin_popcount(query->states);
    return parts > 1 && parts * (query->param_count + PART_ARGS) < DB_PARAMS_MAX;
}

/* The index has the jobs of one state in their order, not those of several together: these would
 * all be sorted for each page. So a page of each state is found, and the page among these. */
static void add_parts(struct search *search)
{
    const char *separator = " FROM jobs JOIN ((SELECT id";
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        if (!(search->query->states >> i & 1u))
            continue;
        buf_add_text(&search->sql, separator);
        add_conditions(search, 1u << i);
        add_page(search);
        separator = ") UNION ALL (SELECT id";
    }
    buf_add_text(&search->sql, ")");
    add_page(search);
    buf_add_text(&search->sql, ") page USING (id)");
    add_order(search);
}

static enum err_code build(struct search *search, struct err *err)
{
    buf_add_text(&search->sql, "SELECT " JOB_COLS);
    if (takes_parts(search->query)) {
        add_parts(search);
        return check_built(search, err);
    }
    add_conditions(search, search->query->states);
    add_page(search);
    return check_built(search, err);
}

static enum err_code build_count(struct search *search, uint32_t most, struct err *err)
{
    buf_add_text(&search->sql, "SELECT COUNT(*) FROM (SELECT 1");
    add_conditions(search, search->query->states);
    buf_add_text(&search->sql, " LIMIT ?) c");
    add_arg(search, db_u64(most));
    return check_built(search, err);
}
static void clear_jobs(struct rows *rows)
{
    struct job **jobs = rows->items;
    for (size_t i = 0; i < rows->count; i++)
        job_free(jobs[i]);
    rows_clear(rows);
}

static enum err_code add_job(struct search *search, struct job_row *row, struct err *err)
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
    struct search *search = ctx;
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

enum err_code job_store_list(struct store *store, const struct job_query *query,
                             struct job_list *ret_list, struct err *err)
{
    assert(query->tenant && query->limit >= 1 && query->limit <= JOB_STORE_PAGE_MAX);
    struct search search = {
        .query = query, .sql = BUF_INIT(SQL_SIZE_MAX), .rows = ROWS_OF(struct job *)};
    enum err_code rc = check_params(query, err);
    if (rc == ERR_OK)
        rc = build(&search, err);
    if (rc == ERR_OK)
        rc = store_once(store, run_search, &search, err);
    if (rc == ERR_OK) {
        struct job_list list = {.count = search.rows.count};
        list.items = rows_take(&search.rows);
        list.more = list.count > query->limit;
        if (list.more)
            job_free(list.items[--list.count]);
        *ret_list = list;
    }
    clear_jobs(&search.rows);
    rows_done(&search.rows);
    buf_done(&search.sql);
    return rc;
}

/* ---- counting -------------------------------------------------------------------------------- */

static enum err_code run_count(struct txn *txn, void *ctx, struct err *err)
{
    struct search *search = ctx;
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
    struct search search = {.query = query, .sql = BUF_INIT(SQL_SIZE_MAX)};
    enum err_code rc = check_params(query, err);
    if (rc == ERR_OK)
        rc = build_count(&search, most, err);
    if (rc == ERR_OK)
        rc = store_once(store, run_count, &search, err);
    if (rc == ERR_OK)
        *ret_count = search.count;
    buf_done(&search.sql);
    return rc;
}
