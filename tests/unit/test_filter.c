/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/filter/filter.h"

#include "tests/support/filter_row.h"

/* The linker sends the library's calls here. */
static size_t allocations;
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    allocations++;
    return __real_realloc(old, size);
}

struct verdict {
    const char *text;
    enum filter_truth truth;
};

static void check(const struct verdict *verdicts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum filter_truth truth = filter_row_eval(verdicts[i].text);
        if (truth != verdicts[i].truth)
            fail_msg("%s is %d, not %d", verdicts[i].text, (int)truth, (int)verdicts[i].truth);
    }
}

#define T FILTER_TRUE
#define F FILTER_FALSE
#define U FILTER_UNKNOWN

static void comparisons_follow_the_values(void **unused)
{
    static const struct verdict verdicts[] = {
        {"owner = 'anna'", T},
        {"owner <> 'anna'", F},
        {"owner = 'Anna'", F},
        {"owner = 'anna '", F},
        {"owner < 'anno'", T},
        {"owner >= 'ann'", T},
        {"name = 'it''s'", T},
        {"memoryMB = 2048", T},
        {"memoryMB <> 2048", F},
        {"memoryMB > 2047.5", T},
        {"memoryMB <= 2.048e3", T},
        {"2048 = memoryMB", T},
        {"memoryMB > -1", T},
        {"visible", T},
        {"visible = TRUE", T},
        {"visible <> FALSE", T},
        {"NOT visible", F},
        {"archive.mode = 'always'", T},
        {"status = queue", F},
        {"nodeCount < coresPerNode", T},
        {"(memoryMB > 1) = visible", T},
        {"env.TEAM = 'blue'", T},
        {"env.EMPTY = ''", T},
    };
    (void)unused;
    check(verdicts, ARRAY_LEN(verdicts));
}

static void null_makes_everything_but_is_null_unknown(void **unused)
{
    static const struct verdict verdicts[] = {
        {"appId = 'x'", U},
        {"appId <> 'x'", U},
        {"NOT appId = 'x'", U},
        {"appId < 'x'", U},
        {"appId LIKE '%'", U},
        {"appId NOT LIKE '%'", U},
        {"appId IN ('a', 'b')", U},
        {"appId NOT IN ('a')", U},
        {"appId = appId", U},
        {"appId IN tags", U},
        {"exitCode + 1 = 1", U},
        {"-exitCode = 1", U},
        {"exitCode BETWEEN 1 AND 2", U},
        {"memoryMB BETWEEN exitCode AND 5", F},
        {"memoryMB BETWEEN exitCode AND 5000", U},
        {"appId IS NULL", T},
        {"appId IS NOT NULL", F},
        {"owner IS NULL", F},
        {"owner IS NOT NULL", T},
        {"exitCode + 1 IS NULL", T},
        {"env.NONE IS NULL", T},
        {"env.NONE = 'x'", U},
        {"env.TEAM IS NOT NULL", T},
        {"tags IS NULL", F},
        {"(appId = 'x') IS NULL", T},
        {"(owner = 'x') IS NULL", F},
        {"1 / 0 = 1", U},
        {"memoryMB / (nodeCount - 2) = 1", U},
    };
    (void)unused;
    check(verdicts, ARRAY_LEN(verdicts));
}

static void three_valued_logic_follows_its_tables(void **unused)
{
    /* appId is NULL: appId = 'x' is the unknown of these. */
    static const struct verdict verdicts[] = {
        {"TRUE AND TRUE", T},
        {"TRUE AND FALSE", F},
        {"TRUE AND appId = 'x'", U},
        {"FALSE AND appId = 'x'", F},
        {"appId = 'x' AND FALSE", F},
        {"appId = 'x' AND TRUE", U},
        {"appId = 'x' AND appId = 'y'", U},
        {"FALSE AND FALSE", F},
        {"TRUE OR FALSE", T},
        {"FALSE OR FALSE", F},
        {"appId = 'x' OR TRUE", T},
        {"TRUE OR appId = 'x'", T},
        {"appId = 'x' OR FALSE", U},
        {"FALSE OR appId = 'x'", U},
        {"appId = 'x' OR appId = 'y'", U},
        {"NOT TRUE", F},
        {"NOT FALSE", T},
        {"NOT (appId = 'x')", U},
        {"NOT NOT TRUE", T},
        {"(appId = 'x') = TRUE", U},
    };
    (void)unused;
    check(verdicts, ARRAY_LEN(verdicts));
}

static void operators_bind_as_in_sql(void **unused)
{
    static const struct verdict verdicts[] = {
        {"TRUE OR TRUE AND FALSE", T},
        {"(TRUE OR TRUE) AND FALSE", F},
        {"NOT FALSE AND FALSE", F},
        {"NOT (FALSE AND FALSE)", T},
        {"NOT FALSE OR TRUE", T},
        {"NOT memoryMB = 1", T},
        {"1 + 2 * 3 = 7", T},
        {"(1 + 2) * 3 = 9", T},
        {"10 - 2 - 3 = 5", T},
        {"100 / 10 / 5 = 2", T},
        {"-2 * -3 = 6", T},
        {"- -2 = 2", T},
        {"+2 = 2", T},
        {"2 - -2 = 4", T},
        {"-memoryMB = -2048", T},
        {"-(1 + 2) = -3", T},
        {"memoryMB + 1 > 2048 AND owner = 'anna'", T},
        {"memoryMB BETWEEN 1 AND 2 OR TRUE", T},
        {"memoryMB BETWEEN 1 + 1 AND 1024 * 2 AND owner = 'anna'", T},
        {"NOT memoryMB BETWEEN 1 AND 2 AND FALSE", F},
        {"not true or TrUe", T},
        {"owner = 'x' or owner = 'anna' and 1 = 1", T},
    };
    (void)unused;
    check(verdicts, ARRAY_LEN(verdicts));
}

static void numbers_are_exact_where_they_can_be(void **unused)
{
    static const struct verdict verdicts[] = {
        {"9223372036854775807 > 9223372036854775806", T},
        {"-9223372036854775808 < -9223372036854775807", T},
        {"9007199254740993 = 9007199254740992", F},
        {"9007199254740993 = 9007199254740992.0", T},
        {"7 / 2 = 3.5", T},
        {".5 = 0.5", T},
        {"5. = 5", T},
        {"1e3 = 1000", T},
        {"1E-3 = 0.001", T},
        {"0.0 = -0.0", T},
        {"memoryMB * 1048576 = 2147483648", T},
        {"memoryMB / 1024 = 2", T},
    };
    (void)unused;
    check(verdicts, ARRAY_LEN(verdicts));
}

static void between_in_and_tags_work(void **unused)
{
    static const struct verdict verdicts[] = {
        {"memoryMB BETWEEN 2048 AND 2048", T},
        {"memoryMB BETWEEN 2049 AND 1", F},
        {"memoryMB NOT BETWEEN 1 AND 2", T},
        {"owner BETWEEN 'a' AND 'b'", T},
        {"owner IN ('bob', 'anna')", T},
        {"owner IN ('bob')", F},
        {"owner NOT IN ('bob')", T},
        {"memoryMB IN (1, 2048)", T},
        {"memoryMB IN (1.5, 2048)", T},
        {"memoryMB NOT IN (-1, +2)", T},
        {"'gpu' IN tags", T},
        {"'GPU' IN tags", F},
        {"'x' NOT IN tags", T},
        {"NOT 'gpu' IN tags", F},
        {"env.TEAM IN tags", T},
        {"owner IN tags", F},
        {"'' IN tags", F},
        {"5 BETWEEN 1 AND 9", T},
    };
    (void)unused;
    check(verdicts, ARRAY_LEN(verdicts));
}

static void times_compare_as_moments(void **unused)
{
    /* created is 2026-01-31T12:00:00.5Z, ended is NULL */
    static const struct verdict verdicts[] = {
        {"created = '2026-01-31T12:00:00.5Z'", T},
        {"created = '2026-01-31T14:00:00.500+02:00'", T},
        {"created > '2026-01-31'", T},
        {"'2026-02-01' > created", T},
        {"created BETWEEN '2026-01-31' AND '2026-02-01'", T},
        {"created IN ('2026-01-31', '2026-01-31T12:00:00.500000Z')", T},
        {"ended > created", U},
        {"started > created", T},
    };
    (void)unused;
    check(verdicts, ARRAY_LEN(verdicts));
}

static void values_of_another_type_count_as_null(void **unused)
{
    (void)unused;
    AUTO(filter_free) struct filter *f = NULL;
    struct err err = {0};
    struct filter_value values[FILTER_QUEUE_ATTR_COUNT] = {0};
    struct filter_row row = {.values = values};
    values[FILTER_ATTR_OWNER] = (struct filter_value){.type = FILTER_NUMBER, .integer = 5};
    assert_ok(filter_compile(&filter_queue_schema, SV("owner = '5'"), &f, NULL, &err));
    assert_int_equal(filter_eval(f, &row), FILTER_UNKNOWN);
}

static void what_a_filter_reads_is_told_once_in_order(void **unused)
{
    (void)unused;
    AUTO(filter_free) struct filter *f = NULL;
    struct err err = {0};
    struct filter_row row = filter_row_sample();
    assert_ok(filter_compile(&filter_job_schema,
                             SV("owner = 'a' OR env.TEAM = 'x' OR owner = 'b' OR env.TEAM = 'y' OR "
                                "'t' IN tags"),
                             &f, NULL, &err));
    assert_int_equal(filter_use_count(f), 3);
    assert_true(sv_is(filter_use_at(f, 0).name, "owner"));
    assert_true(sv_is(filter_use_at(f, 1).name, "env.TEAM"));
    assert_true(filter_use_at(f, 1).is_env);
    assert_int_equal(filter_use_at(f, 2).attr, FILTER_ATTR_TAGS);
    assert_true(sv_is(filter_use_value(f, 0, &row).text, "anna"));
    assert_true(sv_is(filter_use_value(f, 1, &row).text, "blue"));
    assert_true(sv_is(filter_text(f), "owner = 'a' OR env.TEAM = 'x' OR owner = 'b' OR env.TEAM = "
                                      "'y' OR 't' IN tags"));
}

static void evaluation_allocates_nothing(void **unused)
{
    static const char text[] =
        "owner LIKE '%n_a%' AND memoryMB / 1024 + 1 BETWEEN 1 AND 5 AND env.TEAM IN ('red', "
        "'blue') "
        "AND NOT 'x' IN tags AND created > '2026-01-01' AND (appId IS NULL OR visible = FALSE)";
    (void)unused;
    AUTO(filter_free) struct filter *f = NULL;
    struct err err = {0};
    struct filter_row row = filter_row_sample();
    allocations = 0;
    assert_ok(filter_compile(&filter_job_schema, sv_of(text), &f, NULL, &err));
    assert_true(allocations > 0);
    allocations = 0;
    assert_int_equal(filter_eval(f, &row), FILTER_TRUE);
    assert_int_equal(allocations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(comparisons_follow_the_values),
        TEST(null_makes_everything_but_is_null_unknown),
        TEST(three_valued_logic_follows_its_tables),
        TEST(operators_bind_as_in_sql),
        TEST(numbers_are_exact_where_they_can_be),
        TEST(between_in_and_tags_work),
        TEST(times_compare_as_moments),
        TEST(values_of_another_type_count_as_null),
        TEST(what_a_filter_reads_is_told_once_in_order),
        TEST(evaluation_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
