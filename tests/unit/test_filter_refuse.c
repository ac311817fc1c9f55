/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/base/buf.h"
#include "common/filter/filter.h"

/* Repeats `part` after `first`; the caller frees it. */
static char *repeated(const char *first, const char *part, int times, const char *last)
{
    BUF_AUTO struct buf text = BUF_INIT(100000);
    buf_add_text(&text, first);
    for (int i = 0; i < times; i++)
        buf_add_text(&text, part);
    buf_add_text(&text, last);
    return buf_take(&text);
}

static enum err_code compile(const char *text, struct filter_report *report, struct err *err)
{
    AUTO(filter_free) struct filter *f = NULL;
    return filter_compile(&filter_queue_schema, sv_of(text), &f, report, err);
}

static const struct {
    const char *text;
    unsigned column;
    const char *says;
} refused[] = {
    {"", 1, "the filter is empty"},
    {"   ", 1, "the filter is empty"},
    {"ownr = 'a'", 1, "unknown attribute 'ownr'; did you mean 'owner'?"},
    {"Owner = 'a'", 1, "did you mean 'owner'?"},
    {"memorymb > 1", 1, "did you mean 'memoryMB'?"},
    {"TRUE AND zzz = 'a'", 10, "unknown attribute 'zzz'; there are name, owner, "},
    {"status = 'RUNNING'", 1, "unknown attribute 'status'"},
    {"UPPER(owner) = 'A'", 1, "filters have no functions"},
    {"env.a.b = 'x'", 1, "a variable's name has no point in it"},
    {"env = 'x'", 1, "unknown attribute 'env'"},
    {"owner = 'a", 9, "has no closing quote"},
    {"owner = \"a\"", 9, "strings stand in single quotes"},
    {"owner == 'a'", 8, "one = tests for equality"},
    {"owner != 'a'", 7, "write <> for unequal"},
    {"owner = 'a' && TRUE", 13, "write AND"},
    {"owner = 'a' || TRUE", 13, "write OR"},
    {"owner = 'a' 'b'", 13, "expected AND, OR or the end of the filter, not 'b'"},
    {"owner =", 8, "the filter ends where a name, a value or ( should follow"},
    {"owner = AND", 9, "expected a name, a value or (, not AND"},
    {"(owner = 'a'", 1, "this ( is never closed"},
    {"owner = 'a')", 12, "this ) closes nothing"},
    {"(owner = 'a' owner)", 14, "expected an operator or ), not owner"},
    {"owner = NULL", 9, "NULL stands only in IS NULL"},
    {"owner IS 'a'", 10, "expected NULL or NOT NULL behind IS"},
    {"owner IS NOT 'a'", 14, "expected NULL behind IS NOT"},
    {"owner NOT = 'a'", 11, "one = tests"},
    {"owner NOT 'a'", 11, "expected BETWEEN, IN or LIKE behind NOT"},
    {"1 < hour < 5", 10, "comparisons do not chain"},
    {"hour = 1 IS NULL", 10, "comparisons do not chain"},
    {"hour BETWEEN 1 OR 2", 16, "expected AND and the upper bound of BETWEEN"},
    {"owner IN ()", 11, "expected a name, a value or (, not )"},
    {"owner IN ('a' 'b')", 15, "expected a comma or )"},
    {"owner IN (tags)", 11, "IN (...) takes values"},
    {"owner IN 'a'", 10, "expected a list in parentheses or a list attribute"},
    {"owner IN name", 10, "IN takes a list attribute or values in parentheses, not a string"},
    {"5 IN tags", 1, "a number can never be in it"},
    {"owner LIKE 5", 12, "expected the pattern of LIKE, a string"},
    {"owner LIKE name", 12, "expected the pattern of LIKE, a string"},
    {"hour LIKE '5%'", 1, "LIKE takes strings, not a number"},
    {"tags LIKE '5%'", 1, "LIKE takes strings, not a list"},
    {"owner LIKE 'a' ESCAPE 'ab'", 23, "ESCAPE takes one character"},
    {"owner LIKE 'a' ESCAPE 5", 23, "expected the escape character, a string"},
    {"hour\xc3\xa4 = 1", 5, "unexpected \xc3\xa4"},
    {"NOT (hour BETWEEN 1 AND", 24, "the filter ends where a name, a value or ("},
    {"owner LIKE 'a' ESCAPE ''", 23, "ESCAPE takes one character"},
    {"owner LIKE 'a!b' ESCAPE '!'", 12, "may stand only before %, _ or itself"},
    {"owner LIKE 'a!' ESCAPE '!'", 12, "may stand only before %, _ or itself"},
    {"owner = 5", 7, "a string is compared with a number, which can never match"},
    {"hour = '5'", 6, "a number is compared with a string, which can never match"},
    {"hour BETWEEN 1 AND 'x'", 20, "a number is compared with a string"},
    {"owner IN ('a', 5)", 16, "a string is compared with a number"},
    {"owner = TRUE", 7, "a string is compared with a condition"},
    {"env.X = 5", 7, "a string is compared with a number"},
    {"archive.mode = 'onsuccess'", 16, "never has this value; did you mean 'onSuccess'?"},
    {"archive.mode IN ('always', 'x')", 28, "it is one of never, onSuccess, always"},
    {"'neber' <> archive.mode", 1, "did you mean 'never'?"},
    {"weekday IN (1, 0)", 16, "weekday never has this value; it is from 1 to 7"},
    {"24 = hour", 1, "hour never has this value; it is from 0 to 23"},
    {"tags = 'a'", 6, "write 'x' IN tags"},
    {"tags = tags", 6, "write 'x' IN tags"},
    {"tags BETWEEN 'a' AND 'b'", 14, "write 'x' IN tags"},
    {"TRUE < FALSE", 6, "conditions have no order"},
    {"TRUE IN ('a')", 6, "a condition has no place before IN"},
    {"owner + 1 = 2", 1, "arithmetic takes numbers, not a string"},
    {"-owner = 2", 2, "arithmetic takes numbers, not a string"},
    {"hour = 1 AND nodeCount", 14, "AND joins conditions, not a number"},
    {"NOT owner", 5, "NOT takes a condition, not a string"},
    {"owner", 1, "a filter is a condition, this is a string"},
    {"1 + 1", 3, "a filter is a condition, this is a number"},
    {"hour = 9223372036854775808", 8, "9223372036854775808 is out of range"},
    {"hour = 1e999", 8, "1e999 is out of range"},
    {"hour = 12abc", 8, "'12abc' is neither a number nor a name"},
    {"hour = 1e", 8, "'1e' is neither"},
    {"hour = 1.2.3", 8, "'1.2.3' is neither"},
    {"memoryMB * 1e300 > 1", 10, "could pass 1e+300 and overflow"},
    {"1 / (hour * 1e-200 * 1e-200) > 1", 3, "could pass 1e+300 and overflow"},
    {"owner = 'a' ; DROP", 13, "unexpected ;"},
    {"owner = 'a' \xc3\xa4", 13, "unexpected \xc3\xa4"},
};

static void mistakes_are_refused_with_place_and_cure(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct filter_report report;
        struct err err = {0};
        assert_code(compile(refused[i].text, &report, &err), ERR_FILTER);
        if (!strstr(err.text, refused[i].says) || report.place.column != refused[i].column)
            fail_msg("%s\n-> %s (column %u)\nnot column %u: %s", refused[i].text, err.text,
                     report.place.column, refused[i].column, refused[i].says);
    }
}

static void values_that_never_occur_are_refused(void **unused)
{
    static const char *const texts[] = {
        "created > 'yesterday'",
        "created > '2026-13-01'",
        "created > '2026-02-30'",
        "created > '1969-12-31'",
        "created > 5",
        "created LIKE '2026%'",
        "created > owner",
        "created + 1 > created",
        "created > '9999-12-31T23:00:00-09:00'",
        "created IN ('2026-01-01', 'x')",
        "status = 'RUNING'",
        "condition = 'NOBODY_KNOWS'",
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO(filter_free) struct filter *f = NULL;
        struct err err = {0};
        assert_code(filter_compile(&filter_job_schema, sv_of(texts[i]), &f, NULL, &err),
                    ERR_FILTER);
        assert_null(f);
    }
}

static void the_caret_points_at_the_mistake(void **unused)
{
    (void)unused;
    struct filter_report report;
    struct err err = {0};
    assert_code(compile("hour > 5\n  AND\t'\xc3\xa4' = ownr", &report, &err), ERR_FILTER);
    assert_int_equal(report.place.position, 22);
    assert_int_equal(report.place.line, 2);
    assert_int_equal(report.place.column, 13);
    assert_string_equal(report.picture, "  AND '\xc3\xa4' = ownr\n            ^");
    assert_non_null(strstr(err.text, "at line 2, column 13: unknown attribute 'ownr'"));
}

static void the_picture_of_a_long_line_is_cut_around_the_mistake(void **unused)
{
    (void)unused;
    struct filter_report report;
    struct err err = {0};
    TEXT_AUTO char *text = repeated("", "'\xe6\x97\xa5' = '\xe6\x97\xa5' AND ", 100, "x = 1 AND ");
    assert_code(compile(text, &report, &err), ERR_FILTER);
    const char *line_end = strchr(report.picture, '\n');
    assert_non_null(line_end);
    assert_true(sv_is_utf8(sv_of(report.picture)));
    assert_string_equal(strchr(report.picture, 'x'),
                        "x = 1 AND \n"
                        "                                                            ^");
}

static void limits_are_told_with_their_value(void **unused)
{
    static const struct {
        const char *first, *part;
        int times;
        const char *last, *says;
    } cases[] = {
        {"TRUE", " ", FILTER_TEXT_MAX, "", "the filter has 4100 bytes; at most 4096"},
        {"", "(", FILTER_DEPTH_MAX + 1, "", "nested more than 32 deep"},
        {"", "NOT ", FILTER_DEPTH_MAX + 1, "TRUE", "nested more than 32 deep"},
        {"hour = ", "-", FILTER_DEPTH_MAX + 2, "hour", "nested more than 32 deep"},
        {"0 < hour", " + hour", FILTER_DEPTH_MAX, "", "nested more than 32 deep"},
        {"TRUE", " OR TRUE", FILTER_NODES_MAX - 1, "", "more than 512 names, values and operators"},
        {"owner LIKE '", "a", FILTER_LIKE_MAX + 1, "'", "the pattern has 257 bytes; at most 256"},
        {"hour = ", "1", 100, "", "a number of 100 characters; at most 62"},
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        TEXT_AUTO char *text =
            repeated(cases[i].first, cases[i].part, cases[i].times, cases[i].last);
        assert_code(compile(text, NULL, &err), ERR_FILTER);
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s -> %s", cases[i].says, err.text);
    }
}

static void what_just_fits_is_taken(void **unused)
{
    (void)unused;
    struct err err = {0};
    TEXT_AUTO char *spaces = repeated("TRUE", " ", FILTER_TEXT_MAX - 4, "");
    assert_ok(compile(spaces, NULL, &err));
    TEXT_AUTO char *nested = repeated("", "NOT ", FILTER_DEPTH_MAX - 1, "owner = 'a'");
    assert_code(compile(nested, NULL, &err), ERR_FILTER); /* the comparison has a depth as well */
    err_clear(&err);
    TEXT_AUTO char *less = repeated("", "NOT ", FILTER_DEPTH_MAX - 2, "owner = 'a'");
    assert_ok(compile(less, NULL, &err));
    TEXT_AUTO char *wide = repeated("TRUE", " OR TRUE", FILTER_NODES_MAX - 2, "");
    assert_ok(compile(wide, NULL, &err));
    TEXT_AUTO char *pattern = repeated("owner LIKE '", "a", FILTER_LIKE_MAX, "'");
    assert_ok(compile(pattern, NULL, &err));
}

static void bytes_that_are_no_text_are_refused(void **unused)
{
    (void)unused;
    static const struct sv texts[] = {
        {"owner = '\xff'", 11}, {"owner = '\0'", 11}, {"owner = '\x1b'", 11}, {"\xed\xa0\x80", 3}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO(filter_free) struct filter *f = NULL;
        struct err err = {0};
        assert_code(filter_compile(&filter_queue_schema, texts[i], &f, NULL, &err), ERR_FILTER);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(mistakes_are_refused_with_place_and_cure),
        TEST(values_that_never_occur_are_refused),
        TEST(the_caret_points_at_the_mistake),
        TEST(the_picture_of_a_long_line_is_cut_around_the_mistake),
        TEST(limits_are_told_with_their_value),
        TEST(what_just_fits_is_taken),
        TEST(bytes_that_are_no_text_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
