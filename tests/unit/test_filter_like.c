/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/filter/like.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "tests/support/filter_row.h"

#define LONG_TEXT 200000
#define TOO_SLOW_MS 5000 /* backtracking would take years */

static const struct {
    const char *text, *like;
    bool matches;
} like_cases[] = {
    {"", "''", true},
    {"", "'%'", true},
    {"", "'_'", false},
    {"a", "''", false},
    {"a", "'_'", true},
    {"a", "'%%%'", true},
    {"a", "'a%'", true},
    {"a", "'%a'", true},
    {"a", "'a_'", false},
    {"A", "'a'", false},
    {"abc", "'abc'", true},
    {"abc", "'ab'", false},
    {"abc", "'bc'", false},
    {"abc", "'%b%'", true},
    {"abc", "'a%c'", true},
    {"abc", "'a%b'", false},
    {"abc", "'%_%_%_%'", true},
    {"abc", "'%_%_%_%_%'", false},
    {"aab", "'a%ab'", true},
    {"ab", "'ab%ab'", false},
    {"abab", "'ab%ab'", true},
    {"aba", "'ab%ba'", false},
    {"abcabd", "'%ab_'", true},
    {"abcabd", "'%b_%d'", true},
    {"xayaz", "'%a_'", true},
    {"xayazz", "'%a_'", false},
    {"ab", "'%_b'", true},
    {"b", "'%_b'", false},
    {"mississippi", "'m%iss%ip%i'", true},
    {"mississippi", "'m%iss%ix%i'", false},
    {"a%b", "'a!%b' ESCAPE '!'", true},
    {"axb", "'a!%b' ESCAPE '!'", false},
    {"a_b", "'a!_b' ESCAPE '!'", true},
    {"axb", "'a!_b' ESCAPE '!'", false},
    {"a!b", "'a!!b' ESCAPE '!'", true},
    {"a\\b", "'a\\b'", true},
    {"a%", "'a\\%' ESCAPE '\\'", true},
    {"100%", "'100%%' ESCAPE '%'", true},
    {"a'b", "'a''b'", true},
    {"a%", "'a\xc3\xa4%' ESCAPE '\xc3\xa4'", true},
    {"a\xc3\xa4", "'a\xc3\xa4\xc3\xa4' ESCAPE '\xc3\xa4'", true},
    {"\xc3\xa4", "'_'", true},
    {"\xc3\xa4", "'__'", false},
    {"x\xf0\x9f\x98\x80y", "'x_y'", true},
    {"\xc3\xa4z", "'%_z'", true},
    {"z\xc3\xa4", "'z%_'", true},
    {"a\nb", "'a_b'", true},
    {"a ", "'a'", false},
};

static void patterns_match_whole_texts(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(like_cases); i++) {
        BUF_AUTO struct buf text = BUF_INIT(1000);
        AUTO(filter_free) struct filter *f = NULL;
        struct filter_value values[FILTER_QUEUE_ATTR_COUNT] = {0};
        struct filter_row row = {.values = values};
        struct err err = {0};
        values[FILTER_ATTR_OWNER] = filter_row_text(like_cases[i].text);
        buf_addf(&text, "owner LIKE %s", like_cases[i].like);
        assert_ok(filter_compile(&filter_queue_schema, buf_sv(&text), &f, NULL, &err));
        if (filter_eval(f, &row) != (like_cases[i].matches ? FILTER_TRUE : FILTER_FALSE))
            fail_msg("'%s' LIKE %s", like_cases[i].text, like_cases[i].like);
    }
}

static void many_wildcards_do_not_explode(void **unused)
{
    static const char *const parts[] = {"\xff"
                                        "a",
                                        "\xff\xfe",
                                        "\xff"
                                        "a\xfe",
                                        "a\xff\xfe"
                                        "a"};
    (void)unused;
    TEXT_AUTO char *text = calloc(LONG_TEXT + 1, 1);
    assert_non_null(text);
    memset(text, 'a', LONG_TEXT);
    int64_t start_ms = clock_mono_ms();
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        BUF_AUTO struct buf pattern = BUF_INIT(1000);
        while (pattern.len < FILTER_LIKE_MAX - 4)
            buf_add_text(&pattern, parts[i]);
        buf_add_text(&pattern, "b");
        assert_false(like_match(buf_sv(&pattern), (struct sv){text, LONG_TEXT}));
        buf_add_text(&pattern, "\xff");
        assert_false(like_match(buf_sv(&pattern), (struct sv){text, LONG_TEXT}));
    }
    assert_true(clock_mono_ms() - start_ms < TOO_SLOW_MS);
}

static void broken_utf8_in_a_value_does_no_harm(void **unused)
{
    static const struct sv texts[] = {{"\x80", 1},
                                      {"\x80\x80\x80\x80\x80", 5},
                                      {"\xf0\x9f", 2},
                                      {"a\xff\xfe"
                                       "b",
                                       4}};
    static const struct sv patterns[] = {{"\xfe", 1},
                                         {"\xff\xfe\xff", 3},
                                         {"\xff\xfe\xfe", 3},
                                         {"\xfe\xfe\xfe", 3},
                                         {"a\xff"
                                          "b",
                                          3}};
    (void)unused;
    for (size_t t = 0; t < ARRAY_LEN(texts); t++) {
        for (size_t p = 0; p < ARRAY_LEN(patterns); p++)
            (void)like_match(patterns[p], texts[t]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(patterns_match_whole_texts),
        TEST(many_wildcards_do_not_explode),
        TEST(broken_utf8_in_a_value_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
