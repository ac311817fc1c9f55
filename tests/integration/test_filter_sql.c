/* SPDX-License-Identifier: MIT */
#include <mysql.h> /* before our headers: its macros use calls that they ban */

#include "tests/support/test.h"

#include "common/base/buf.h"
#include "common/filter/filter_sql.h"
#include "tests/support/filter_random.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The database and filter_eval() must say the same of every row: TRUE, FALSE or NULL. */

#define ROWS 60
#define FILTERS 4000
#define SQL_MAX 300000
#define PARAMS_MAX 3000
#define CREATED_US 1769860800500000 /* 2026-01-31T12:00:00.5Z */

struct sample {
    struct filter_value values[FILTER_JOB_ATTR_COUNT];
    struct sv tags[3];
    const char *env[2];
};

static struct sample samples[ROWS];
static MYSQL *db;
static char schema[64];

static const char *const columns[FILTER_JOB_ATTR_COUNT] = {
    [FILTER_ATTR_NAME] = "t.name",        [FILTER_ATTR_OWNER] = "t.owner",
    [FILTER_ATTR_APP_ID] = "t.app",       [FILTER_ATTR_MEMORY_MB] = "t.memory",
    [FILTER_ATTR_NODE_COUNT] = "t.nodes", [FILTER_ATTR_MAX_MINUTES] = "t.minutes",
    [FILTER_ATTR_TAGS] = "t.tags",        [FILTER_ATTR_VISIBLE] = "t.visible",
    [FILTER_ATTR_CREATED] = "t.created",  [FILTER_ATTR_ENDED] = "t.ended",
};
static const struct filter_columns job_columns = {columns, "t.request", "$.env"};

static void run(const char *sql)
{
    if (mysql_query(db, sql))
        fail_msg("%s: %s", sql, mysql_error(db));
}

static int connect_to_database(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf sql = BUF_INIT(1000);
    const char *port = getenv("SLUICE_TEST_DB_PORT");
    uint64_t number = 0;
    if (!port || !sv_u64(sv_of(port), 65535, &number))
        return -1;
    db = mysql_init(NULL);
    if (!db || mysql_options(db, MYSQL_SET_CHARSET_NAME, "utf8mb4"))
        return -1;
    if (!mysql_real_connect(db, getenv("SLUICE_TEST_DB_HOST"), getenv("SLUICE_TEST_DB_USER"),
                            getenv("SLUICE_TEST_DB_PASSWORD"), NULL, (unsigned)number, NULL, 0)) {
        (void)fprintf(stderr, "%s\n", mysql_error(db));
        return -1;
    }
    (void)snprintf(schema, sizeof(schema), "sluice_filter_%d", (int)getpid());
    buf_addf(&sql, "CREATE DATABASE %s", schema);
    run(buf_text(&sql));
    return mysql_select_db(db, schema);
}

static int drop_database(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf sql = BUF_INIT(1000);
    buf_addf(&sql, "DROP DATABASE %s", schema);
    run(buf_text(&sql));
    mysql_close(db);
    mysql_library_end();
    return 0;
}

/* A text as an SQL literal, for the sample rows. */
static void add_literal(struct buf *sql, const char *text)
{
    char escaped[500];
    if (text)
        (void)mysql_real_escape_string(db, escaped, text, strlen(text));
    buf_addf(sql, text ? ", '%s'" : ", NULL", text ? escaped : "");
}

static const char *add_text(struct buf *sql, struct filter_value *value, bool maybe_null)
{
    const char *text = maybe_null && any_below(3) == 0 ? NULL : ANY_OF(random_texts);
    add_literal(sql, text);
    if (text && value)
        *value = (struct filter_value){.type = FILTER_STRING, .text = sv_of(text)};
    return text;
}

static void add_number(struct buf *sql, struct filter_value *value, int64_t number)
{
    if (any_below(4) == 0) {
        buf_add_text(sql, ", NULL");
        return;
    }
    buf_addf(sql, ", %lld", (long long)number);
    *value = (struct filter_value){.type = FILTER_NUMBER, .integer = number};
}

static void add_tags(struct buf *sql, struct sample *s)
{
    BUF_AUTO struct buf json = BUF_INIT(2000);
    size_t count = any_below(ARRAY_LEN(s->tags) + 1);
    if (any_below(5) == 0) {
        buf_add_text(sql, ", NULL");
        return;
    }
    buf_add_text(&json, "[");
    for (size_t i = 0; i < count; i++) {
        s->tags[i] = sv_of(ANY_OF(random_texts));
        buf_add_text(&json, i ? "," : "");
        buf_add_json_string(&json, s->tags[i]);
    }
    buf_add_text(&json, "]");
    add_literal(sql, buf_text(&json));
    s->values[FILTER_ATTR_TAGS] =
        (struct filter_value){.type = FILTER_LIST, .list = {s->tags, count}};
}

static void add_created(struct buf *sql, struct filter_value *value, bool maybe_null)
{
    static const char *const texts[] = {"2026-01-31 12:00:00.500000", "2026-01-31 12:00:00.500001"};
    unsigned later = any_below(2);
    bool null = maybe_null && any_below(3) == 0;
    add_literal(sql, null ? NULL : texts[later]);
    if (!null)
        *value = (struct filter_value){.type = FILTER_TIME, .integer = CREATED_US + later};
}

static void add_request(struct buf *sql, struct sample *s)
{
    BUF_AUTO struct buf json = BUF_INIT(2000);
    const char *comma = "";
    buf_add_text(&json, "{\"name\":\"x\",\"env\":{");
    for (size_t i = 0; i < ARRAY_LEN(s->env); i++) {
        s->env[i] = any_below(3) ? ANY_OF(random_texts) : NULL;
        if (!s->env[i])
            continue;
        buf_addf(&json, "%s\"%c\":", comma, "AB"[i]);
        buf_add_json_string(&json, sv_of(s->env[i]));
        comma = ",";
    }
    buf_add_text(&json, "}}");
    add_literal(sql, buf_text(&json));
}

static void insert_samples(void)
{
    run("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(99), owner VARCHAR(99) NOT NULL,"
        " app VARCHAR(99), memory BIGINT, nodes INT UNSIGNED, minutes INT, tags JSON,"
        " visible TINYINT NOT NULL, created DATETIME(6) NOT NULL, ended DATETIME(6),"
        " request MEDIUMTEXT NOT NULL, KEY (owner)) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
    for (int i = 0; i < ROWS; i++) {
        BUF_AUTO struct buf sql = BUF_INIT(10000);
        struct sample *s = &samples[i];
        struct filter_value *v = s->values;
        bool visible = any_below(2);
        buf_addf(&sql, "INSERT INTO t VALUES (%d", i);
        (void)add_text(&sql, &v[FILTER_ATTR_NAME], true);
        (void)add_text(&sql, &v[FILTER_ATTR_OWNER], false);
        (void)add_text(&sql, &v[FILTER_ATTR_APP_ID], true);
        add_number(&sql, &v[FILTER_ATTR_MEMORY_MB], ANY_OF(random_numbers));
        add_number(&sql, &v[FILTER_ATTR_NODE_COUNT], any_below(5));
        add_number(&sql, &v[FILTER_ATTR_MAX_MINUTES], (int64_t)any_below(200) - 100);
        add_tags(&sql, s);
        buf_addf(&sql, ", %d", (int)visible);
        v[FILTER_ATTR_VISIBLE] = (struct filter_value){.type = FILTER_BOOL, .truth = visible};
        add_created(&sql, &v[FILTER_ATTR_CREATED], false);
        add_created(&sql, &v[FILTER_ATTR_ENDED], true);
        add_request(&sql, s);
        buf_add_text(&sql, ")");
        run(buf_text(&sql));
    }
}

static bool sample_env(void *ctx, struct sv name, struct sv *ret_value)
{
    const struct sample *s = ctx;
    const char *value = sv_is(name, "A") ? s->env[0] : sv_is(name, "B") ? s->env[1] : NULL;
    *ret_value = sv_of(value);
    return value != NULL;
}

static void bind(MYSQL_STMT *st, const struct filter_params *params)
{
    static MYSQL_BIND binds[PARAMS_MAX];
    static const enum enum_field_types types[] = {
        [FILTER_PARAM_TEXT] = MYSQL_TYPE_STRING,
        [FILTER_PARAM_INTEGER] = MYSQL_TYPE_LONGLONG,
        [FILTER_PARAM_REAL] = MYSQL_TYPE_DOUBLE,
    };
    memset(binds, 0, sizeof(binds));
    assert_int_equal(mysql_stmt_param_count(st), params->count);
    assert_true(params->count <= PARAMS_MAX);
    for (size_t i = 0; i < params->count; i++) {
        struct filter_param *p = &params->items[i];
        binds[i].buffer_type = types[p->kind];
        binds[i].buffer = p->kind == FILTER_PARAM_TEXT      ? (void *)p->text
                          : p->kind == FILTER_PARAM_INTEGER ? (void *)&p->integer
                                                            : (void *)&p->real;
        binds[i].buffer_length = p->text_len;
    }
    if (params->count > 0)
        assert_int_equal(mysql_stmt_bind_param(st, binds), 0);
}

/* The database's result for each sample. */
static void ask(const char *sql, const struct filter_params *params, enum filter_truth *ret_truths)
{
    MYSQL_STMT *st = mysql_stmt_init(db);
    MYSQL_BIND results[2] = {0};
    int id = 0;
    int truth = 0;
    __typeof__(*results->is_null) null = 0;
    results[0].buffer_type = results[1].buffer_type = MYSQL_TYPE_LONG;
    results[0].buffer = &id;
    results[1].buffer = &truth;
    results[1].is_null = &null;
    assert_non_null(st);
    if (mysql_stmt_prepare(st, sql, strlen(sql)))
        fail_msg("%s\n%s", sql, mysql_stmt_error(st));
    bind(st, params);
    if (mysql_stmt_execute(st) || mysql_stmt_bind_result(st, results))
        fail_msg("%s\n%s", sql, mysql_stmt_error(st));
    int rows = 0;
    for (; mysql_stmt_fetch(st) == 0; rows++)
        ret_truths[id] = null ? FILTER_UNKNOWN : truth ? FILTER_TRUE : FILTER_FALSE;
    assert_int_equal(rows, ROWS);
    (void)mysql_stmt_close(st);
}

static void compare(struct sv text)
{
    AUTO(filter_free) struct filter *f = NULL;
    BUF_AUTO struct buf sql = BUF_INIT(SQL_MAX);
    FILTER_PARAMS_AUTO struct filter_params params = {0};
    struct filter_report report;
    struct err err = {0};
    enum filter_truth truths[ROWS];
    if (filter_compile(&filter_job_schema, text, &f, &report, &err)) {
        assert_true(text.len > FILTER_TEXT_MAX || strstr(err.text, "more than"));
        return;
    }
    buf_add_text(&sql, "SELECT t.id, ");
    assert_ok(filter_to_sql(f, &job_columns, &sql, &params, &err));
    buf_add_text(&sql, " FROM t");
    ask(buf_text(&sql), &params, truths);
    for (int i = 0; i < ROWS; i++) {
        struct filter_row row = {samples[i].values, sample_env, &samples[i]};
        enum filter_truth truth = filter_eval(f, &row);
        if (truth != truths[i])
            fail_msg("row %d: %.*s\nis %d here, %d in\n%s", i, SV_ARG(text), (int)truth,
                     (int)truths[i], buf_text(&sql));
        if ((report.always_true && truth != FILTER_TRUE) ||
            (report.never_true && truth == FILTER_TRUE))
            fail_msg("row %d: %.*s is %d against its warning", i, SV_ARG(text), (int)truth);
    }
}

static void the_database_judges_as_we_do(void **unused)
{
    (void)unused;
    insert_samples();
    for (int i = 0; i < FILTERS; i++) {
        BUF_AUTO struct buf text = BUF_INIT(100000);
        random_condition(&text, 0);
        compare(buf_sv(&text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_database_judges_as_we_do),
    };
    return cmocka_run_group_tests(tests, connect_to_database, drop_database);
}
