/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/store/job_row.h"
#include "common/store/migration.h"

/* What the store does without a database. */

static void statements_end_with_a_semicolon_at_the_end_of_a_line(void **unused)
{
    (void)unused;
    struct sv rest = SV("-- a comment; with a sign\n\nCREATE TABLE a (\n"
                        "    x CHAR(1) DEFAULT ';', -- not here\n    y INT\n) ;\r\n"
                        "INSERT INTO a VALUES ('--');\n   \n");
    struct sv statement = {0};
    assert_true(migration_next(&rest, &statement));
    assert_true(sv_is(statement, "CREATE TABLE a (\n    x CHAR(1) DEFAULT ';', -- not here\n"
                                 "    y INT\n)"));
    assert_true(migration_next(&rest, &statement));
    assert_true(sv_is(statement, "INSERT INTO a VALUES ('--')"));
    assert_false(migration_next(&rest, &statement));
    assert_int_equal(rest.len, 0);
}

static void a_statement_without_its_end_is_told(void **unused)
{
    (void)unused;
    struct sv rest = SV("SELECT 1;\nSELECT 2\n-- ;\n");
    struct sv statement = {0};
    assert_true(migration_next(&rest, &statement));
    assert_false(migration_next(&rest, &statement));
    assert_true(rest.len > 0);
}

static void every_file_of_sql_ends_its_statements_and_rises_in_number(void **unused)
{
    (void)unused;
    uint32_t last = 0;
    for (size_t i = 0; i < migration_count; i++) {
        struct sv rest = sv_of(migrations[i].text);
        struct sv statement = {0};
        size_t statements = 0;
        while (migration_next(&rest, &statement))
            statements++;
        assert_int_equal(rest.len, 0);
        assert_true(statements > 0);
        assert_true(migrations[i].number > last);
        last = migrations[i].number;
    }
    assert_int_equal(migrate_newest(), last);
}

static void the_schema_uses_only_what_mysql_and_mariadb_share(void **unused)
{
    (void)unused;
    /* MariaDB only; MySQL refuses them. */
    static const char *const foreign[] = {
        "IF NOT EXISTS (", "RETURNING",  "UUID NOT NULL",         "INET6",
        "SEQUENCE",        "PERSISTENT", "TEXT NOT NULL DEFAULT", "TEXT DEFAULT"};
    for (size_t i = 0; i < migration_count; i++) {
        for (size_t j = 0; j < ARRAY_LEN(foreign); j++) {
            if (strstr(migrations[i].text, foreign[j]))
                fail_msg("sql/%03u: %s", migrations[i].number, foreign[j]);
        }
    }
}

static void a_text_is_cut_between_two_characters(void **unused)
{
    (void)unused;
    char text[6];
    assert_null(text_fit(NULL, text, sizeof(text)));
    assert_string_equal(text_fit("abc", text, sizeof(text)), "abc");
    assert_string_equal(text_fit("abcdefg", text, sizeof(text)), "abcde");
    assert_string_equal(text_fit("abcd\xC3\xA4", text, sizeof(text)), "abcd");
    assert_string_equal(text_fit("abc\xC3\xA4z", text, sizeof(text)), "abc\xC3\xA4");
    assert_string_equal(text_fit("a\xFF\xC3", text, sizeof(text)), "a??");
    assert_string_equal(text_fit("\x80\x80\x80\x80\x80\x80\x80", text, sizeof(text)), "");
}

static void the_conditions_that_stay_are_those_of_no_lower_rank(void **unused)
{
    (void)unused;
    char kept[KEPT_CONDITIONS_SIZE];
    assert_string_equal(kept_conditions(JOB_COND_POISON, kept, sizeof(kept)), "POISON");
    kept_conditions(JOB_COND_DEAD_LETTERED, kept, sizeof(kept));
    assert_non_null(strstr(kept, "COMMAND_FAILED"));
    kept_conditions(JOB_COND_TIME_LIMIT, kept, sizeof(kept));
    assert_null(strstr(kept, "COMMAND_FAILED"));
    assert_non_null(strstr(kept, "TIME_LIMIT"));
}

static void the_longest_list_of_moves_is_checked_step_by_step(void **unused)
{
    (void)unused;
    struct job_move moves[] = {{.to = JOB_PROCESSING_INPUTS}, {.to = JOB_STAGING_INPUTS}};
    assert_true(moves_are_legal(JOB_PENDING, moves, 2));
    assert_false(moves_are_legal(JOB_RUNNING, moves, 2));
    assert_false(moves_are_legal(JOB_PENDING, moves, 0));
    moves[0].to = JOB_FINISHED;
    assert_false(moves_are_legal(JOB_PENDING, moves, 2));
    assert_non_null(moves_find(JOB_STAGING_INPUTS, moves, 2));
    assert_null(moves_find(JOB_RUNNING, moves, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(statements_end_with_a_semicolon_at_the_end_of_a_line),
        TEST(a_statement_without_its_end_is_told),
        TEST(every_file_of_sql_ends_its_statements_and_rises_in_number),
        TEST(the_schema_uses_only_what_mysql_and_mariadb_share),
        TEST(a_text_is_cut_between_two_characters),
        TEST(the_conditions_that_stay_are_those_of_no_lower_rank),
        TEST(the_longest_list_of_moves_is_checked_step_by_step),
    };
    return cmocka_run_group_tests_name("store_text", tests, NULL, NULL);
}
