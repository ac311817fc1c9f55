/* SPDX-License-Identifier: MIT */
#include "common/store/job_list_sql.h"

#include <assert.h>

#define PART_ARGS                                                                                  \
    13 /* of one state, beside those of the filter: tenant, place, state, limit...                 \
        */

static void add_arg(struct job_search_sql *search, struct db_arg arg)
{
    assert(search->arg_count < DB_PARAMS_MAX);
    search->args[search->arg_count++] = arg;
}

static void add_text(struct job_search_sql *search, const char *sql, const char *value)
{
    if (!value)
        return;
    buf_add_text(&search->sql, sql);
    add_arg(search, db_text(value));
}

static void add_times(struct job_search_sql *search)
{
    const struct job_query *query = search->query;
    const struct {
        const char *sql;
        int64_t at_us;
    } bounds[] = {{" AND created_at > " AT_US, query->created_after_us},
                  {" AND created_at < " AT_US, query->created_before_us},
                  {" AND ended_at > " AT_US, query->ended_after_us},
                  {" AND ended_at < " AT_US, query->ended_before_us}};
    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        if (!bounds[i].at_us)
            continue;
        buf_add_text(&search->sql, bounds[i].sql);
        add_arg(search, db_i64(bounds[i].at_us));
    }
}

static bool has_times(const struct job_query *query)
{
    return query->created_after_us || query->created_before_us || query->ended_after_us ||
           query->ended_before_us;
}

static void add_states(struct job_search_sql *search, unsigned states)
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

static void add_filter(struct job_search_sql *search)
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

bool job_search_in_stretches(const struct job_query *query)
{
    return query->stretch > 0 &&
           (query->queue || query->name || query->app_id || query->where_sql || has_times(query) ||
            (query->owner && query->states));
}

/* Its order is that of the ids, and a stretch of it is read from one end to the other. */
static const char *index_of(const struct job_query *query)
{
    if (!job_search_in_stretches(query))
        return "";
    if (query->owner)
        return " FORCE INDEX (by_owner)";
    return query->states ? " FORCE INDEX (by_status)" : " FORCE INDEX (by_tenant)";
}

static void add_place(struct job_search_sql *search)
{
    bool down = search->query->order == JOB_ORDER_CREATED_DESC;
    if (search->after) {
        buf_add_text(&search->sql, down ? " AND id < ?" : " AND id > ?");
        add_arg(search, db_uuid(search->after));
    }
    if (search->has_end) {
        buf_add_text(&search->sql, down ? " AND id >= ?" : " AND id <= ?");
        add_arg(search, db_uuid(&search->end));
    }
}

static void add_conditions(struct job_search_sql *search, unsigned states)
{
    const struct job_query *query = search->query;
    buf_addf(&search->sql, " FROM jobs%s", index_of(query));
    add_text(search, " WHERE tenant = ?", query->tenant);
    add_place(search);
    add_text(search, " AND owner = ?", query->owner);
    add_text(search, " AND queue = ?", query->queue);
    add_text(search, " AND name = ?", query->name);
    add_text(search, " AND app_id = ?", query->app_id);
    add_states(search, states);
    add_times(search);
    if (!query->hidden_too)
        buf_add_text(&search->sql, " AND visible = 1");
    add_filter(search);
}

static enum err_code check_built(const struct job_search_sql *search, struct err *err)
{
    if (search->sql.starved)
        return err_set(err, ERR_NOMEM, "no memory for the statement of a search");
    if (search->sql.failed)
        return err_set(err, ERR_TOO_LARGE, "the search makes a statement of more than %d bytes",
                       SQL_SIZE_MAX);
    return ERR_OK;
}

static void add_order(struct job_search_sql *search)
{
    bool down = search->query->order == JOB_ORDER_CREATED_DESC;
    buf_add_text(&search->sql, down ? " ORDER BY id DESC" : " ORDER BY id");
}

static void add_page(struct job_search_sql *search)
{
    add_order(search);
    buf_add_text(&search->sql, " LIMIT ?");
    /* one more tells whether there is more */
    add_arg(search, db_u64((uint64_t)search->query->limit + 1));
}

static bool takes_parts(const struct job_query *query)
{
    size_t parts = (size_t)__builtin_popcount(query->states);
    if (query->owner && job_search_in_stretches(query))
        return false; /* the index by owner has all states */
    return parts > 1 && parts * (query->param_count + PART_ARGS) < DB_PARAMS_MAX;
}

/* The index has the jobs of one state in their order, not those of several together: these would
 * all be sorted for each page. So a page of each state is found, and the page among these. */
static void add_parts(struct job_search_sql *search)
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

static void begin_text(struct job_search_sql *search)
{
    buf_clear(&search->sql);
    search->arg_count = 0;
}

enum err_code job_search_build(struct job_search_sql *search, struct err *err)
{
    begin_text(search);
    buf_add_text(&search->sql, "SELECT " JOB_LIST_COLS);
    if (takes_parts(search->query)) {
        add_parts(search);
        return check_built(search, err);
    }
    add_conditions(search, search->query->states);
    add_page(search);
    return check_built(search, err);
}

enum err_code job_search_build_count(struct job_search_sql *search, uint32_t most, struct err *err)
{
    buf_add_text(&search->sql, "SELECT COUNT(*) FROM (SELECT 1");
    add_conditions(search, search->query->states);
    buf_add_text(&search->sql, " LIMIT ?) c");
    add_arg(search, db_u64(most));
    return check_built(search, err);
}

/* The ends of the stretch of each index that is read, by the columns of the index alone. */
enum err_code job_search_build_end(struct job_search_sql *search, struct err *err)
{
    const struct job_query *query = search->query;
    unsigned states = query->owner ? 0 : query->states;
    const char *separator = "SELECT id FROM ((SELECT id FROM jobs";
    begin_text(search);
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        if (states ? !(states >> i & 1u) : i > 0)
            continue;
        buf_addf(&search->sql, "%s%s", separator, index_of(query));
        add_text(search, " WHERE tenant = ?", query->tenant);
        add_place(search);
        add_text(search, " AND owner = ?", query->owner);
        add_states(search, states & 1u << i);
        add_order(search);
        buf_addf(&search->sql, " LIMIT 1 OFFSET %u", search->stretch - 1);
        separator = ") UNION ALL (SELECT id FROM jobs";
    }
    buf_add_text(&search->sql, ")) ends");
    add_order(search); /* the nearest of them */
    buf_add_text(&search->sql, " LIMIT 1");
    return check_built(search, err);
}
