/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/filter/filter.h"

static struct filter *compiled(const char *text, struct filter_report *report)
{
    struct filter *f = NULL;
    struct err err = {0};
    if (filter_compile(&filter_job_schema, sv_of(text), &f, report, &err))
        fail_msg("%s: %s", text, err.text);
    return f;
}

static void filters_that_say_nothing_are_told(void **unused)
{
    static const struct {
        const char *text;
        const char *says; /* NULL: no warning */
    } cases[] = {
        {"owner = 'a'", NULL},
        {"owner <> 'a' OR hour > 5", NULL},
        {"hour > 5 AND hour < 9", NULL},
        {"hour >= 5 AND hour <= 5", NULL},
        {"hour < 5 OR hour > 5", NULL},
        {"owner LIKE 'a%' AND owner = 'ab'", NULL},
        {"owner LIKE 'a%' AND owner <> 'ab'", NULL},
        {"owner IS NULL OR owner = 'a'", NULL},
        {"hour IN (1, 2) AND hour IN (2, 3)", NULL},
        {"TRUE", "always true"},
        {"1 = 1", "always true"},
        {"2 > 1 OR owner = 'a'", "always true"},
        {"owner IS NULL OR owner IS NOT NULL", "always true"},
        {"'abc' LIKE 'a%'", "always true"},
        {"NOT FALSE AND 'a' IN ('a', 'b')", "always true"},
        {"FALSE", "never true"},
        {"owner = 'a' AND 1 = 2", "never true"},
        {"1 / 0 = 1", "never true"},
        {"-(hour / 0) + 1 = 1", "never true"},
        {"owner = 'a' AND owner = 'b'", "never true"},
        {"owner = 'a' AND owner <> 'a'", "never true"},
        {"owner = 'a' AND NOT owner = 'a'", "never true"},
        {"owner = 'a' AND owner IS NULL", "never true"},
        {"owner IN ('a', 'b') AND owner NOT IN ('a', 'b', 'c')", "never true"},
        {"owner = 'b' AND owner LIKE 'a%'", "never true"},
        {"hour > 5 AND hour < 5", "never true"},
        {"hour > 5 AND 5 >= hour", "never true"},
        {"hour BETWEEN 1 AND 3 AND hour > 3", "never true"},
        {"hour BETWEEN 3 AND 1", "never true"},
        {"hour = 3 AND hour NOT BETWEEN 1 AND 5", "never true"},
        {"owner = 'ab' AND owner NOT LIKE 'a%'", "never true"},
        {"owner = 'ab' AND owner IS NOT NULL", NULL},
        {"owner IS NULL AND owner IS NULL", NULL},
        {"hour < hour", "never true"},
        {"created < '2026-01-01' AND created > '2026-02-01'", "never true"},
        {"(owner = 'a' OR hour = 1) AND (owner = 'a' AND owner = 'b')", "never true"},
        {"owner <> 'a' OR owner <> 'b'", "every job that has what it reads"},
        {"hour > 3 OR hour < 5", "every job that has what it reads"},
        {"hour = hour", "every job that has what it reads"},
        {"owner LIKE '%'", "every job that has what it reads"},
        {"owner = 'a' OR FALSE", "this part is never true"},
        {"owner = 'a' AND TRUE", "this part is always true"},
        {"owner = 'a' OR (hour > 5 AND hour < 4)", "this part is never true"},
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct filter_report report;
        AUTO(filter_free) struct filter *f = compiled(cases[i].text, &report);
        assert_non_null(f);
        const char *text = report.warning_count ? report.warnings[0].text : NULL;
        if (!cases[i].says != !text || (text && !strstr(text, cases[i].says)))
            fail_msg("%s -> %s, not %s", cases[i].text, text ? text : "-",
                     cases[i].says ? cases[i].says : "-");
        if (text)
            assert_int_equal(report.always_true, strstr(text, "filter is always true") != NULL);
    }
}

static void a_warning_has_a_place(void **unused)
{
    (void)unused;
    struct filter_report report;
    AUTO(filter_free) struct filter *f = compiled("owner = 'a' AND (1 = 1)", &report);
    assert_non_null(f);
    assert_int_equal(report.warnings[0].place.column, 20);
    assert_string_equal(report.warnings[0].text, "at column 20: this part is always true");
    assert_string_equal(report.picture, "");
}

static void a_filter_covers_what_it_lets_through_anyway(void **unused)
{
    static const struct {
        const char *earlier, *later;
        bool covers;
    } cases[] = {
        {"TRUE", "owner = 'a'", true},
        {"owner = 'a'", "TRUE", false},
        {"owner = 'a'", "owner  =  'a'", true},
        {"owner = 'a'", "owner = 'b'", false},
        {"owner = 'a'", "name = 'a'", false},
        {"owner = 'a'", "FALSE", true},
        {"owner = 'a'", "owner = 'a' AND hour > 5", true},
        {"owner = 'a' AND hour > 5", "owner = 'a'", false},
        {"owner = 'a' OR hour > 5", "owner = 'a'", true},
        {"owner = 'a' OR hour > 5", "hour = 6", true},
        {"owner = 'a' OR hour > 5", "hour = 6 OR owner = 'b'", false},
        {"owner = 'a' OR hour > 5", "hour > 7 OR (owner = 'a' AND name = 'x')", true},
        {"hour > 5 AND owner = 'a'", "owner = 'a' AND hour > 6", true},
        {"hour > 5", "hour > 5.5", true},
        {"hour > 5", "hour >= 5", false},
        {"hour >= 5", "hour > 5", true},
        {"hour <= 5", "5 > hour", true},
        {"hour > 5", "hour BETWEEN 6 AND 9", true},
        {"hour BETWEEN 1 AND 9", "hour BETWEEN 1 AND 9.5", false},
        {"hour BETWEEN 1 AND 9", "hour = 9", true},
        {"hour <> 5", "hour > 5", true},
        {"hour <> 5", "hour >= 5", false},
        {"owner IN ('a', 'b')", "owner = 'a'", true},
        {"owner IN ('a', 'b')", "owner IN ('b', 'a')", true},
        {"owner IN ('a', 'b')", "owner IN ('b', 'c')", false},
        {"owner NOT IN ('a')", "owner = 'b'", true},
        {"owner NOT IN ('a')", "owner LIKE 'b%'", true},
        {"owner LIKE 'a%'", "owner = 'abc'", true},
        {"owner LIKE 'a%'", "owner LIKE 'ab%'", false}, /* true, but not simple */
        {"owner IS NOT NULL", "owner = 'a'", true},
        {"owner IS NULL", "owner = 'a'", false},
        {"appId IS NULL", "appId IS NULL AND hour > 5", true},
        {"NOT hour > 5", "hour <= 5", true},
        {"env.A = 'x'", "env.A = 'x' AND env.B = 'x'", true},
        {"env.A = 'x'", "env.B = 'x'", false},
        {"'gpu' IN tags", "'gpu' IN tags AND owner = 'a'", true},
        {"'gpu' IN tags", "'cpu' IN tags", false},
        {"hour + 1 > 5", "hour + 1 > 6", true},
        {"visible", "visible AND owner = 'a'", true},
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(filter_free) struct filter *earlier = compiled(cases[i].earlier, NULL);
        AUTO(filter_free) struct filter *later = compiled(cases[i].later, NULL);
        if (filter_covers(earlier, later) != cases[i].covers)
            fail_msg("%s covers %s: not %d", cases[i].earlier, cases[i].later,
                     (int)cases[i].covers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(filters_that_say_nothing_are_told),
        TEST(a_warning_has_a_place),
        TEST(a_filter_covers_what_it_lets_through_anyway),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
