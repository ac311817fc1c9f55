/* SPDX-License-Identifier: MIT */
#include "webapp/job_search.h"

#include "common/base/clock.h"

#include "webapp/cursor.h"
#include "webapp/web.h"

#define LIMIT_DEFAULT 50
#define SQL_LIMIT ((size_t)100000)
#define NAME_LIMIT ((size_t)16384)

#define WORKER_HEX "HEX(owner_worker)"
#define WORKER_PART(from, length) "SUBSTR(" WORKER_HEX ", " from ", " length ")"

/* NOLINTBEGIN(bugprone-suspicious-missing-comma): parts of one expression each */
static const char *const columns[FILTER_JOB_ATTR_COUNT] = {
    [FILTER_ATTR_NAME] = "name",
    [FILTER_ATTR_OWNER] = "owner",
    [FILTER_ATTR_TENANT] = "tenant",
    [FILTER_ATTR_APP_ID] = "app_id",
    [FILTER_ATTR_APP_VERSION] = "app_version",
    [FILTER_ATTR_SYSTEM_ID] = "system_id",
    [FILTER_ATTR_NODE_COUNT] = "node_count",
    [FILTER_ATTR_CORES] = "cores_per_node",
    [FILTER_ATTR_MEMORY_MB] = "memory_mb",
    [FILTER_ATTR_MAX_MINUTES] = "((max_seconds + 59) DIV 60)",
    [FILTER_ATTR_TAGS] = "tags",
    [FILTER_ATTR_HOUR] = "HOUR(created_at)",
    [FILTER_ATTR_WEEKDAY] = "(WEEKDAY(created_at) + 1)",
    [FILTER_ATTR_ATTEMPT] = "(attempts + 1)",
    [FILTER_ATTR_ARCHIVE_MODE] =
        "CONVERT(COALESCE(JSON_UNQUOTE(JSON_EXTRACT(request, '$.archive.mode')), 'always') "
        "USING utf8mb4) COLLATE utf8mb4_bin",
    [FILTER_ATTR_STATUS] = "status",
    [FILTER_ATTR_CONDITION] = "job_condition",
    [FILTER_ATTR_QUEUE] = "queue",
    [FILTER_ATTR_VISIBLE] = "visible",
    [FILTER_ATTR_EXIT_CODE] = "exit_code",
    [FILTER_ATTR_CREATED] = "created_at",
    [FILTER_ATTR_UPDATED] = "updated_at",
    [FILTER_ATTR_STARTED] = "started_at",
    [FILTER_ATTR_ENDED] = "ended_at",
    [FILTER_ATTR_EPOCH] = "epoch",
    [FILTER_ATTR_LOSSES] = "losses",
    /* the text of a UUID; neither server has a function for it that the other has */
    [FILTER_ATTR_WORKER] = "CONVERT(LOWER(CONCAT(" WORKER_PART("1", "8") ", '-', " WORKER_PART(
        "9",
        "4") ", '-', " WORKER_PART("13",
                                   "4") ", '-', " WORKER_PART("17",
                                                              "4") ", '-', " WORKER_PART("21",
                                                                                         "12") ")) "
                                                                                               "USI"
                                                                                               "NG "
                                                                                               "utf"
                                                                                               "8mb"
                                                                                               "4) "
                                                                                               "COL"
                                                                                               "LAT"
                                                                                               "E "
                                                                                               "utf"
                                                                                               "8mb"
                                                                                               "4_"
                                                                                               "bi"
                                                                                               "n",
};
/* NOLINTEND(bugprone-suspicious-missing-comma) */
static const struct filter_columns where_columns = {columns, "request", "$.env"};

void job_search_done(struct job_search *search)
{
    buf_done(&search->name);
    buf_done(&search->sql);
    filter_params_done(&search->values);
    free(search->params);
}

/* A parameter that is compared with a column; one that is too long for it equals nothing. */
static enum err_code read_text(const struct request *req, const char *name, char *text, size_t size,
                               const char **ret_text, struct err *err)
{
    struct sv value;
    char pointer[ERR_POINTER_MAX];
    if (!uri_query(&req->uri, name, &value))
        return ERR_OK;
    if (!sv_copy(value, text, size)) {
        (void)snprintf(pointer, sizeof(pointer), "?%s", name);
        return err_set_at(err, ERR_INVALID, pointer, "%s has at most %zu bytes", name, size - 1);
    }
    *ret_text = text;
    return ERR_OK;
}

#define JOB_STATE(name, text, ends, next) " " text
static const char all_states[] =
#include "common/model/job_state.def"
    ;
#undef JOB_STATE

/* Words for several states; 0: it is none. */
static unsigned states_of(struct sv word)
{
    bool ended = sv_is(word, "ended");
    unsigned states = 0;
    if (!ended && !sv_is(word, "active"))
        return 0;
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        states |= (unsigned)(job_state_ends((enum job_state)i) == ended) << i;
    return states;
}

/* "status=RUNNING,PENDING", and as often as one likes. */
static enum err_code read_states(const struct request *req, unsigned *states, struct err *err)
{
    struct sv list;
    for (size_t n = 0; uri_query_at(&req->uri, "status", n, &list); n++) {
        while (list.len > 0) {
            const char *comma = memchr(list.ptr, ',', list.len);
            struct sv word = {list.ptr, comma ? (size_t)(comma - list.ptr) : list.len};
            enum job_state state;
            unsigned several = states_of(word);
            if (!several && !job_state_parse(word, &state))
                return err_set_at(err, ERR_INVALID, "?status",
                                  "'%.*s' is not a state of a job; there are active ended%s",
                                  (int)(word.len < 40 ? word.len : 40), word.ptr, all_states);
            *states |= several ? several : 1u << state;
            size_t step = word.len + (comma != NULL);
            list = (struct sv){list.ptr + step, list.len - step};
        }
    }
    return ERR_OK;
}

static enum err_code read_time(const struct request *req, const char *name, int64_t *ret_us,
                               struct err *err)
{
    struct sv text;
    char pointer[32];
    if (!uri_query(&req->uri, name, &text) || (clock_parse_rfc3339(text, ret_us) && *ret_us > 0))
        return ERR_OK;
    (void)snprintf(pointer, sizeof(pointer), "?%s", name);
    return err_set_at(err, ERR_INVALID, pointer,
                      "%s is a time after 1970 such as 2026-01-31T12:00:00Z (a + in it is %%2B)",
                      name);
}

static enum err_code read_times(const struct request *req, struct job_query *query, struct err *err)
{
    enum err_code rc = read_time(req, "createdAfter", &query->created_after_us, err);
    if (rc == ERR_OK)
        rc = read_time(req, "createdBefore", &query->created_before_us, err);
    if (rc == ERR_OK)
        rc = read_time(req, "endedAfter", &query->ended_after_us, err);
    if (rc == ERR_OK)
        rc = read_time(req, "endedBefore", &query->ended_before_us, err);
    return rc;
}

static enum err_code read_order(const struct request *req, enum job_order *ret_order,
                                struct err *err)
{
    struct sv text = SV("created:desc");
    (void)uri_query(&req->uri, "orderBy", &text);
    if (sv_is(text, "created:desc"))
        *ret_order = JOB_ORDER_CREATED_DESC;
    else if (sv_is(text, "created:asc"))
        *ret_order = JOB_ORDER_CREATED_ASC;
    else
        return err_set_at(err, ERR_INVALID, "?orderBy",
                          "orderBy is created:desc (the default) or created:asc");
    return ERR_OK;
}

static struct store_param param_of(const struct filter_param *value)
{
    switch (value->kind) {
    case FILTER_PARAM_INTEGER:
        return (struct store_param){.type = STORE_INT, .integer = value->integer};
    case FILTER_PARAM_REAL:
        return (struct store_param){.type = STORE_DOUBLE, .number = value->real};
    case FILTER_PARAM_TEXT:
        break;
    }
    return (struct store_param){.type = STORE_TEXT, .text = {value->text, value->text_len}};
}

/* Patterns are matched byte by byte, and what stands in the request is found by reading all of its
 * JSON, which may have megabytes. */
static bool is_costly(const struct filter *filter)
{
    bool costly = filter_has_like(filter);
    for (size_t i = 0; i < filter_use_count(filter) && !costly; i++) {
        struct filter_use use = filter_use_at(filter, i);
        costly = use.is_env || use.attr == FILTER_ATTR_ARCHIVE_MODE;
    }
    return costly;
}

enum err_code job_search_begin(const struct request *req, const struct job_search *search,
                               struct allowance_hold *ret_hold, struct err *err)
{
    *ret_hold = (struct allowance_hold){0};
    if (!search->is_costly)
        return ERR_OK;
    return allowance_take(req->web->allowances, ALLOWANCE_SEARCHES, &req->who, 1, ret_hold, err);
}

static enum err_code read_filter(const struct request *req, struct job_search *search,
                                 struct filter_report *report, struct err *err)
{
    struct sv text;
    AUTO(filter_free) struct filter *filter = NULL;
    if (!uri_query(&req->uri, "filter", &text) || text.len == 0)
        return ERR_OK;
    enum err_code rc = filter_compile(&filter_job_schema, text, &filter, report, err);
    if (rc == ERR_OK)
        rc = filter_to_sql(filter, &where_columns, &search->sql, &search->values, err);
    if (rc) {
        (void)snprintf(err->pointer, sizeof(err->pointer), "?filter");
        return rc;
    }
    search->params = calloc(search->values.count + 1, sizeof(*search->params));
    if (!search->params)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < search->values.count; i++)
        search->params[i] = param_of(&search->values.items[i]);
    search->is_costly = is_costly(filter);
    search->query.where_sql = buf_text(&search->sql);
    search->query.params = search->params;
    search->query.param_count = search->values.count;
    return ERR_OK;
}

/* All that decides which jobs come in which order, except where the page begins. */
static bool name_query(const struct request *req, struct job_search *search)
{
    static const char *const names[] = {
        "status", "owner",   "queue",        "name",          "appId",      "hidden",
        "filter", "orderBy", "createdAfter", "createdBefore", "endedAfter", "endedBefore"};
    buf_addf(&search->name, "%s\n", req->who.tenant);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct sv value;
        for (size_t n = 0; uri_query_at(&req->uri, names[i], n, &value); n++) {
            buf_addf(&search->name, "%s %zu ", names[i], value.len);
            buf_add_sv(&search->name, value);
        }
    }
    return !search->name.failed;
}

static enum err_code read_place(const struct request *req, struct job_search *search,
                                struct err *err)
{
    struct sv cursor;
    uint64_t limit = LIMIT_DEFAULT;
    uint64_t most = req->web->cfg->limits_page_max;
    most = most < JOB_STORE_PAGE_MAX ? most : JOB_STORE_PAGE_MAX;
    limit = limit < most ? limit : most;
    enum err_code rc = request_number(req, "limit", 1, most, &limit, err);
    if (rc)
        return rc;
    search->query.limit = (uint32_t)limit;
    if (!name_query(req, search) && search->name.starved)
        return err_set(err, ERR_NOMEM, "out of memory");
    if (search->name.failed)
        return err_set(err, ERR_INVALID, "the query has more than %zu bytes", NAME_LIMIT);
    if (!uri_query(&req->uri, "cursor", &cursor))
        return ERR_OK;
    search->query.after = &search->after;
    return cursor_read(&req->web->cursor_key, buf_sv(&search->name), cursor, &search->after, err);
}

enum err_code job_search_read(const struct request *req, struct job_search *ret_search,
                              struct filter_report *report, struct err *err)
{
    struct job_search *search = ret_search;
    struct job_query *query = &search->query;
    *search = (struct job_search){.name = BUF_INIT(NAME_LIMIT), .sql = BUF_INIT(SQL_LIMIT)};
    query->tenant = req->who.tenant;
    enum err_code rc =
        read_text(req, "owner", search->owner, sizeof(search->owner), &query->owner, err);
    if (rc == ERR_OK)
        rc = read_text(req, "queue", search->queue, sizeof(search->queue), &query->queue, err);
    if (rc == ERR_OK)
        rc = read_text(req, "name", search->job_name, sizeof(search->job_name), &query->name, err);
    if (rc == ERR_OK)
        rc = read_text(req, "appId", search->app_id, sizeof(search->app_id), &query->app_id, err);
    if (rc == ERR_OK)
        rc = request_flag(req, "hidden", &query->hidden_too, err);
    if (rc == ERR_OK)
        rc = read_states(req, &query->states, err);
    if (rc == ERR_OK)
        rc = read_times(req, query, err);
    if (rc == ERR_OK)
        rc = read_order(req, &query->order, err);
    if (rc == ERR_OK)
        rc = read_filter(req, search, report, err);
    if (rc == ERR_OK)
        rc = read_place(req, search, err);
    return rc;
}
