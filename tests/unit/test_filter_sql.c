/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/filter/filter_sql.h"

static const char *const columns[FILTER_JOB_ATTR_COUNT] = {
    [FILTER_ATTR_OWNER] = "t.owner",         [FILTER_ATTR_NAME] = "t.name",
    [FILTER_ATTR_MEMORY_MB] = "t.memory",    [FILTER_ATTR_TAGS] = "t.tags",
    [FILTER_ATTR_VISIBLE] = "t.visible",     [FILTER_ATTR_CREATED] = "t.created",
    [FILTER_ATTR_EXIT_CODE] = "t.exit_code",
};
static const struct filter_columns job_columns = {columns, "t.request", "$.env"};

static enum err_code translate(const char *text, struct buf *sql, struct filter_params *params,
                               struct err *err)
{
    AUTO(filter_free) struct filter *f = NULL;
    enum err_code rc = filter_compile(&filter_job_schema, sv_of(text), &f, NULL, err);
    return rc ? rc : filter_to_sql(f, &job_columns, sql, params, err);
}

static void add_shown(struct buf *shown, const struct filter_param *p)
{
    if (p->kind == FILTER_PARAM_TEXT)
        buf_addf(shown, "[%.*s]", (int)p->text_len, p->text);
    else if (p->kind == FILTER_PARAM_INTEGER)
        buf_addf(shown, "[%lld]", (long long)p->integer);
    else
        buf_addf(shown, "[%g real]", p->real);
}

static void conditions_become_sql_with_placeholders(void **unused)
{
    static const struct {
        const char *text;
        const char *sql;
        const char *params;
    } cases[] = {
        {"owner = 'a''b; --'", "(t.owner = ? AND CAST(t.owner AS BINARY) = CAST(? AS BINARY))",
         "[a'b; --][a'b; --]"},
        {"owner <> name", "(CAST(t.owner AS BINARY) <> CAST(t.name AS BINARY))", ""},
        {"memoryMB > 5", "(t.memory > ?)", "[5]"},
        {"memoryMB > 2 * 2.5", "(t.memory > ?)", "[5 real]"},
        {"memoryMB / 1024 >= 1", "(((t.memory + 0e0) / ?) >= ?)", "[1024 real][1]"},
        {"-memoryMB = 1", "((0e0 - (t.memory + 0e0)) = ?)", "[1]"},
        {"memoryMB BETWEEN 1 AND 2.5", "((t.memory >= ?) AND (t.memory <= ?))", "[1][2.5 real]"},
        {"memoryMB IN (1, 2.5)", "(t.memory IN (?, ?))", "[1 real][2.5 real]"},
        {"owner IN ('a')", "(t.owner IN (?) AND CAST(t.owner AS BINARY) IN (CAST(? AS BINARY)))",
         "[a][a]"},
        {"'x' NOT IN tags", "(NOT (JSON_CONTAINS(t.tags, JSON_QUOTE(?)) = 1))", "[x]"},
        {"owner LIKE 'a|_!_%' ESCAPE '!'", "(t.owner LIKE ? ESCAPE '|')", "[a||_|_%]"},
        {"env.TEAM IS NULL", "(JSON_UNQUOTE(JSON_EXTRACT(t.request, ?)) IS NULL)",
         "[$.env.\"TEAM\"]"},
        {"visible AND NOT visible = FALSE",
         "((t.visible <> 0) AND (NOT ((t.visible <> 0) = FALSE)))", ""},
        {"created >= '2026-01-31T14:00:00.25+02:00'", "(t.created >= CAST(? AS DATETIME(6)))",
         "[2026-01-31 12:00:00.250000]"},
        {"2 < +memoryMB", "(? < t.memory)", "[2]"},
        {"+memoryMB - 1 > 2", "(((0e0 + (t.memory + 0e0)) - ?) > ?)", "[1 real][2]"},
        {"'a' = owner", "(? = t.owner AND CAST(? AS BINARY) = CAST(t.owner AS BINARY))", "[a][a]"},
        {"TRUE OR 1 / 0 = 1", "(TRUE)", ""},
        {"1 / 0 = 1 AND visible", "((NULL) AND (t.visible <> 0))", ""},
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        BUF_AUTO struct buf sql = BUF_INIT(1000);
        BUF_AUTO struct buf shown = BUF_INIT(1000);
        FILTER_PARAMS_AUTO struct filter_params params = {0};
        struct err err = {0};
        assert_ok(translate(cases[i].text, &sql, &params, &err));
        for (size_t p = 0; p < params.count; p++)
            add_shown(&shown, &params.items[p]);
        assert_string_equal(buf_text(&sql), cases[i].sql);
        assert_string_equal(buf_text(&shown), cases[i].params);
    }
}

static void what_has_no_column_is_refused_by_name(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf sql = BUF_INIT(1000);
    FILTER_PARAMS_AUTO struct filter_params params = {0};
    struct err err = {0};
    assert_code(translate("owner = 'a' AND worker = 'w'", &sql, &params, &err), ERR_FILTER);
    assert_string_equal(err.text, "at column 17: 'worker' cannot be searched for");
}

static void a_statement_that_does_not_fit_is_refused(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf sql = BUF_INIT(20);
    FILTER_PARAMS_AUTO struct filter_params params = {0};
    struct err err = {0};
    assert_code(translate("owner = 'a' AND name = 'b'", &sql, &params, &err), ERR_FILTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(conditions_become_sql_with_placeholders),
        TEST(what_has_no_column_is_refused_by_name),
        TEST(a_statement_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
