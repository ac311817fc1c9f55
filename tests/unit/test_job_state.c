/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/base/buf.h"
#include "common/base/fs.h"
#include "common/model/job_state.h"

static void only_final_states_have_no_way_out(void **unused)
{
    (void)unused;
    for (int from = 0; from < JOB_STATE_COUNT; from++) {
        int ways_out = 0;
        for (int to = 0; to < JOB_STATE_COUNT; to++)
            ways_out += job_state_can((enum job_state)from, (enum job_state)to);
        assert_int_equal(job_state_ends((enum job_state)from), ways_out == 0);
    }
}

static void every_name_is_read_back(void **unused)
{
    (void)unused;
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        enum job_state state = JOB_STATE_COUNT;
        assert_true(job_state_parse(sv_of(job_state_text((enum job_state)i)), &state));
        assert_int_equal(state, i);
    }
    for (int i = 0; i < JOB_CONDITION_COUNT; i++) {
        enum job_condition condition = JOB_CONDITION_COUNT;
        assert_true(
            job_condition_parse(sv_of(job_condition_text((enum job_condition)i)), &condition));
        assert_int_equal(condition, i);
    }
}

static void an_exact_condition_is_kept(void **unused)
{
    (void)unused;
    assert_int_equal(job_condition_keep(JOB_COND_TIME_LIMIT, JOB_COND_DEAD_LETTERED),
                     JOB_COND_TIME_LIMIT);
    assert_int_equal(job_condition_keep(JOB_COND_NONE, JOB_COND_COMMAND_FAILED),
                     JOB_COND_COMMAND_FAILED);
    assert_int_equal(job_condition_keep(JOB_COND_COMMAND_SIGNALLED, JOB_COND_MEMORY_LIMIT),
                     JOB_COND_MEMORY_LIMIT);
}

/* The line that the schema must hold, printed from the table. */
static void the_schema_allows_these_states_and_no_other(void **unused)
{
    (void)unused;
    struct err err = {0};
    BUF_AUTO struct buf check = BUF_INIT(2000);
    buf_add_text(&check, "CHECK (status IN (");
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        buf_addf(&check, "%s'%s'", i ? ", " : "", job_state_text((enum job_state)i));
    buf_add_text(&check, "))");
    FD_AUTO int root = -1;
    BUF_AUTO struct buf sql = BUF_INIT(1000000);
    assert_ok(fs_open_dir(SLUICE_SOURCE_DIR, false, &root, &err));
    assert_ok(fs_read(root, "sql/001_jobs.sql", &sql, &err));
    if (!strstr(buf_text(&sql), buf_text(&check)))
        fail_msg("sql/001_jobs.sql lacks: %s", buf_text(&check));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_final_states_have_no_way_out),
        TEST(every_name_is_read_back),
        TEST(an_exact_condition_is_kept),
        TEST(the_schema_allows_these_states_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
