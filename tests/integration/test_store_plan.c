/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/store/db.h"
#include "common/store/job_store.h"

/* Every statement of the hot paths finds its rows by an index, on a table that is large enough for
 * a scan to cost something. */

#define JOBS 4000
#define AT_ONCE 200

static struct test_db test;
static struct uuid an_id; /* of the last job */

static const char *const texts[] = {
#define DB_STMT(name, params, columns, text) [DB_##name] = text,
#include "common/store/db_stmt.def"
#undef DB_STMT
};

#define B_16 "bbbbbbbbbbbbbbbb"
#define B_64 B_16 B_16 B_16 B_16

static const struct {
    enum db_stmt_id id;
    const char *params; /* b: 16 bytes, t: text, u: a number; one letter each */
    const char *key;    /* this index is used; NULL: any, but no table is scanned */
} hot[] = {
    {DB_JOB_GET, "bt", "PRIMARY"},
    {DB_JOB_STATES_16, "bbbbbbbbbbbbbbbb", "PRIMARY"},
    {DB_JOB_COUNTS, "", "by_status"},
    {DB_JOB_EVENTS, "butu", "by_job"},
    {DB_JOB_CLAIM, "butubutbbu", "PRIMARY"},
    {DB_JOB_MOVE, "tuuuubbut", "PRIMARY"},
    {DB_JOB_HAND_BACK, "bbut", "PRIMARY"},
    {DB_JOB_OWNER, "b", "PRIMARY"},
    {DB_JOB_CANCEL_REQUESTS, "b", "by_worker"},
    {DB_JOB_OWNED, "b", "by_worker"},
    {DB_EVENT_THERE, "ub", "PRIMARY"},
    {DB_EVENT_OF_HOLD, "bubt", "by_job"},
    {DB_JOB_LOCK, "bt", "PRIMARY"},
    {DB_JOB_VISIBLE, "ubtu", "PRIMARY"},
    {DB_IDEM_GET, "ttt", NULL},
    {DB_TENANT_GET, "t", NULL},
    {DB_TENANT_LIST_BUSY, "", "by_status"},
    {DB_VERSION_GET, "", NULL},
    {DB_QUEUE_LIST, "t", NULL},
    {DB_QUEUE_JOBS, "tt", "by_status"},
    {DB_JOB_GATE, "b", "PRIMARY"},
    {DB_CAUSES_LIKE, "tttttt", NULL},
    {DB_SYSTEM_LIMITS_LOCK, "tt", NULL},
    {DB_QUOTA_LIMIT_LOCK, "tt", NULL},
    {DB_ACTIVE_COUNTS, "tttttb", "by_status"},
    {DB_OUTBOX_READ, "uuu", "PRIMARY"},
    {DB_OUTBOX_DELETE_16, "uuuuuuuuuuuuuuuu", "PRIMARY"},
    {DB_DEAD_LIST, "tbu", "by_tenant"},
    {DB_DEAD_LIST_STATE, "ttbu", "by_state"},
    {DB_DEAD_COUNT_OPEN, "", "by_state"},
    {DB_JOB_DEAD_LETTER, "tttbuutb", "PRIMARY"},
    {DB_WORKER_BEAT, "uub", "PRIMARY"},
    {DB_WORKER_BEATS, "", "by_state"},
    {DB_JOBS_LOOK_4, "bbbb", "PRIMARY"},
    {DB_JOBS_CLAIM_4, "butubbuutbuutbuutbuut", "PRIMARY"},
    {DB_JOBS_END_4, "tububububububububuttuutubububububububububububububububububbuutbuutbuutbuut",
     "PRIMARY"},
    {DB_WORKER_FORMER, "b", "by_home"},
    {DB_WHY_SINCE, "tb", "by_job"},
    {DB_WHY_AHEAD, "ttbu", "by_status"},
    {DB_WHY_QUEUE, "tt", NULL},
    {DB_WHY_FLEET, "uuuuutt", "by_queue"},
    {DB_WHY_LOSSES, "bu", "by_job"},
    {DB_WHY_ROUTED, "b", "by_job"},
    {DB_WORKER_OF_QUEUE, "tt", "by_queue"},
    {DB_WHY_BLOCKED, "b", "PRIMARY"},
    {DB_CAUSE_SHARE, "ttttt", "by_cause"},
    {DB_LEADER_CHECK, "tub", "PRIMARY"},
    {DB_RECOVERY_LIST, "t", "by_cause"},
    {DB_RECOVERY_PAGE, "tbu", "by_cause"},
    {DB_RECOVERY_USER, "b", "by_recovery"},
    {DB_RECOVERY_JOBS, "btbu", "by_recovery"},
    {DB_BATCH_IDS, "buuuu", "by_recovery"},
    {DB_BATCH_LOCK, B_64, "PRIMARY"},
    {DB_RELEASE_EVENTS, "tt" B_64, "PRIMARY"},
    {DB_RELEASE_OUTBOX, B_64, "PRIMARY"},
    {DB_RELEASE_JOBS, B_64, "PRIMARY"},
    {DB_GIVE_UP_JOBS, "t" B_64, "PRIMARY"},
    {DB_BLOCKED_DELETE_64, B_64 "b", NULL},
    {DB_RETENTION_LOCK, B_64 "u", "PRIMARY"},
    {DB_RETENTION_MARK, B_64, NULL},
    {DB_RETENTION_EVENTS, B_64 "u", "by_job"},
    {DB_RETENTION_JOBS, B_64 "u", "PRIMARY"},
    {DB_RETENTION_UNTOLD, B_64, "by_job"},
    {DB_RETENTION_AUDIT, "buu", "PRIMARY"},
    {DB_STRAY_BLOCKED, "tu", "by_status"},
    {DB_STRAY_ROWS, "tu", "by_tenant"},
    {DB_STRAY_OWNED, "tuuu", "by_worker"},
    {DB_LOST_HEAD, "tuu", "by_tenant"},
    {DB_LOST_QUEUES, "ttuutt", "by_status"},
    {DB_LOST_FIND, "ttuuu", "by_status"},
    {DB_LOST_LOCK, B_64 "u", "PRIMARY"},
    {DB_LOST_RESEND, B_64, "PRIMARY"},
    {DB_LOST_EVENTS, B_64, "PRIMARY"},
    {DB_LOST_OUTBOX, B_64, "PRIMARY"},
    {DB_HOOK_FAN_OUT, "uuuuu", NULL},
    {DB_DELIVERY_LIST, "tbbttu", "by_tenant"},
    {DB_DELIVERY_LIST_JOB, "tbbbttu", "by_job"},
    {DB_DELIVERY_END, "tbu", "by_tenant"},
    {DB_DELIVERY_CHAIN, "bb", "by_chain"},
    {DB_DELIVERY_CHAIN_DUE, "bb", "by_chain"},
    {DB_DELIVERY_NEXT, "bb", "by_chain"},
    {DB_DELIVERY_LANES, "bu", "by_lane"},
    {DB_DELIVERY_DUE, "bu", "by_lane"},
    {DB_DELIVERY_RECORD, "tutuubu", "PRIMARY"},
    {DB_DELIVERY_OLD, "uu", "by_end"},
    {DB_HOOK_DROP, "tbu", "by_lane"},
    {DB_DELIVERY_LATE, "uu", "by_lane"},
    {DB_HOOK_OLD, "uubu", "by_job"},
};

static void fill(void)
{
    static struct job_new jobs[AT_ONCE];
    static struct job_submitted done[AT_ONCE];
    struct err err = {0};
    for (int i = 0; i < JOBS; i++) {
        jobs[i % AT_ONCE] = test_job_new();
        jobs[i % AT_ONCE].tenant = i % 4 == 0 ? "acme" : "other";
        jobs[i % AT_ONCE].owner = i % 40 == 0 ? "ann" : "bob";
        an_id = jobs[i % AT_ONCE].id;
        if (i % AT_ONCE == AT_ONCE - 1)
            assert_ok(job_store_submit_many(test.store, jobs, AT_ONCE, done, &err));
    }
    test_db_run(&test,
                "UPDATE jobs SET status = 'FINISHED', ended_at = NOW(6) WHERE owner = 'bob'");
    test_db_run(&test, "INSERT INTO workers (id, tenant, queue, name, host, boot_id, pid, version, "
                       "slots, state, started_at, beat_at) SELECT id, 'acme', 'default', HEX(id), "
                       "'here', 'b', 1, '1', 1, IF(owner = 'ann', 'live', 'dead'), NOW(6), NOW(6) "
                       "FROM jobs LIMIT 1000");
    test_db_run(&test, "INSERT INTO tenants (name, created_at) VALUES ('acme', NOW(6))");
    test_db_run(&test, "INSERT INTO job_queues (tenant, name, priority, created_at, updated_at) "
                       "SELECT HEX(id), 'default', 0, NOW(6), NOW(6) FROM jobs LIMIT 200");
    test_db_run(&test, "INSERT INTO job_recovery (id, tenant, cause_hash, job_condition, tester, "
                       "params, policy, first_at, next_at) SELECT id, "
                       "IF(owner = 'ann', 'acme', HEX(id)), UNHEX(SHA2(HEX(id), 256)), "
                       "'CONNECTION_FAILED', 'tcp_connect', HEX(id), "
                       "'', NOW(6), NOW(6) FROM jobs ORDER BY id LIMIT 500");
    test_db_run(&test, "INSERT INTO job_blocked (job_id, recovery_id, tenant, resume_status, "
                       "blocked_at) SELECT id, id, tenant, 'PENDING', NOW(6) FROM jobs LIMIT 2000");
    test_db_run(&test, "INSERT INTO recovery_leader (role, fencing, holder, renewed_at) SELECT "
                       "HEX(id), 1, id, NOW(6) FROM jobs LIMIT 500");
    test_db_run(&test, "INSERT INTO subscriptions (id, tenant, job_id, owner, url, states, lane, "
                       "after_seq, created_at, updated_at) SELECT id, tenant, id, owner, 'u', "
                       "'FINISHED', id, 0, NOW(6), NOW(6) FROM jobs LIMIT 2000");
    test_db_run(&test, "INSERT INTO webhook_deliveries (id, subscription_id, tenant, job_id, seq, "
                       "event, lane, state, body, created_at, since, next_at, ended_at) SELECT id, "
                       "id, tenant, id, 1, 'FINISHED', id, IF(owner = 'ann', 'due', 'delivered'), "
                       "'{}', NOW(6), NOW(6), NOW(6), IF(owner = 'ann', NULL, NOW(6)) FROM jobs");
    test_db_run(&test, "ANALYZE TABLE subscriptions, webhook_deliveries, jobs, job_events, "
                       "workers, outbox, job_queues, job_recovery, "
                       "job_blocked, recovery_leader");
}

/* The server's plan as JSON; free() it. */
static char *plan_of(const char *sql, const struct db_arg *args, size_t count)
{
    struct err err = {0};
    char *plan = NULL;
    char text[8000];
    bool row = false;
    AUTO(db_free) struct db *db = NULL;
    assert_ok(db_open(&test.cfg, &db, &err));
    (void)snprintf(text, sizeof(text), "EXPLAIN FORMAT=JSON %s", sql);
    assert_ok(db_select_text(db, sv_of(text), (struct db_args){args, count},
                             DB_COLS(COL_HEAP(&plan)), &err));
    assert_ok(db_next(db, &row, &err));
    assert_true(row);
    db_end(db);
    return plan;
}

static void assert_indexed(const char *name, const char *plan, const char *key)
{
    char wanted[80];
    (void)snprintf(wanted, sizeof(wanted), "\"key\": \"%s\"", key ? key : "");
    /* One row by its key, read while planning: no plan is left to print. */
    if (strstr(plan, "const table"))
        return;
    if (key && !strstr(plan, wanted))
        fail_msg("%s does not use %s: %s", name, key, plan);
    /* The counts go through all tenants and the list of states on purpose, the place in the queue,
     * the losses of a job, a page of groups and the search for lost messages through the few rows
     * that they have selected, and the latter through the outbox, whose rows live for a moment. */
    if (strcmp(name, "JOB_COUNTS") != 0 && strcmp(name, "WHY_AHEAD") != 0 &&
        strcmp(name, "WHY_LOSSES") != 0 && strcmp(name, "RECOVERY_PAGE") != 0 &&
        strcmp(name, "LOST_HEAD") != 0 && strcmp(name, "LOST_QUEUES") != 0 &&
        strstr(plan, "\"access_type\": \"ALL\""))
        fail_msg("%s scans a table: %s", name, plan);
}

static size_t make_args(const char *params, struct db_arg *ret_args)
{
    size_t count = 0;
    for (; params[count]; count++) {
        if (params[count] == 'b')
            ret_args[count] = db_uuid(&an_id);
        else if (params[count] == 't')
            ret_args[count] = db_text("acme");
        else
            ret_args[count] = db_u64(5);
    }
    return count;
}

static const char *name_of(enum db_stmt_id id)
{
    static const char *const names[] = {
#define DB_STMT(name, params, columns, text) [DB_##name] = #name,
#include "common/store/db_stmt.def"
#undef DB_STMT
    };
    return names[id];
}

static void every_hot_statement_uses_an_index(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(hot); i++) {
        struct db_arg args[DB_PARAMS_MAX];
        size_t count = make_args(hot[i].params, args);
        TEXT_AUTO char *plan = plan_of(texts[hot[i].id], args, count);
        assert_indexed(name_of(hot[i].id), plan, hot[i].key);
    }
}

static void a_page_of_a_search_reads_no_more_than_an_index_range(void **unused)
{
    (void)unused;
    static const struct {
        const char *sql;
        const char *params;
        const char *key;
    } searches[] = {
        {"SELECT name FROM jobs WHERE tenant = ? ORDER BY id DESC LIMIT ?", "tu", "by_tenant"},
        {"SELECT name FROM jobs WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?", "tbu", NULL},
        {"SELECT name FROM jobs WHERE tenant = ? AND owner = ? ORDER BY id DESC LIMIT ?", "ttu",
         "by_owner"},
        {"SELECT name FROM jobs WHERE tenant = ? AND status IN (?) ORDER BY id DESC LIMIT ?", "ttu",
         "by_status"},
    };
    for (size_t i = 0; i < ARRAY_LEN(searches); i++) {
        struct db_arg args[8];
        size_t count = make_args(searches[i].params, args);
        TEXT_AUTO char *plan = plan_of(searches[i].sql, args, count);
        assert_indexed(searches[i].sql, plan, searches[i].key);
        assert_null(strstr(plan, "filesort"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_hot_statement_uses_an_index),
        TEST(a_page_of_a_search_reads_no_more_than_an_index_range),
    };
    test_db_open(&test);
    fill();
    int failed = cmocka_run_group_tests_name("store_plan", tests, NULL, NULL);
    test_db_close(&test);
    return failed;
}
