/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/store/app_store.h"
#include "common/store/gate_store.h"
#include "common/store/queue_store.h"
#include "common/store/system_store.h"

#include <pthread.h>

/* Systems, quotas, what is used of them, and who is let in. */

#define RIVALS 8
#define ROUNDS 10

static struct test_db test;

static struct job_system a_system(const char *id, uint32_t max_active, uint32_t per_owner)
{
    struct job_system made = {.tenant = "acme",
                              .kind = "local",
                              .max_active = max_active,
                              .max_active_per_owner = per_owner,
                              .description = "for tests"};
    (void)snprintf(made.id, sizeof(made.id), "%s", id);
    return made;
}

static void put_quota(const char *owner, uint32_t max_active)
{
    struct err err = {0};
    struct quota quota = {.tenant = "acme", .max_active = max_active};
    uint32_t version = 0;
    bool made = false;
    (void)snprintf(quota.owner, sizeof(quota.owner), "%s", owner);
    assert_ok(quota_store_put(test.store, &quota, 0, &version, &made, &err));
}

/* A job that a worker owns, in its first phase. */
static struct job_hold active_job(const char *owner, const char *on)
{
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    job.owner = owner;
    job.system_id = on;
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    return test_claim(test.store, &done.id, JOB_PROCESSING_INPUTS);
}

static struct quota_use use_of(enum quota_scope scope, const char *owner, const char *on)
{
    struct err err = {0};
    struct quota_key key = {.tenant = "acme", .scope = scope, .owner = owner, .system_id = on};
    struct quota_use use = {0};
    assert_ok(quota_store_use(test.store, &key, &use, &err));
    return use;
}

static int clear(void **unused)
{
    (void)unused;
    test_db_run(&test, "DELETE FROM jobs");
    test_db_run(&test, "DELETE FROM job_blocked");
    test_db_run(&test, "DELETE FROM job_recovery");
    test_db_run(&test, "DELETE FROM apps");
    test_db_run(&test, "DELETE FROM systems");
    test_db_run(&test, "DELETE FROM quotas");
    return 0;
}

static void a_system_is_made_changed_disabled_and_deleted(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_system made = a_system("west", 4, 0);
    struct job_system read = {0};
    struct job_system *items = NULL;
    size_t count = 0;
    uint32_t version = 0;
    bool is_new = false;
    assert_ok(system_store_put(test.store, &made, EXPECT_NONE, &version, &is_new, &err));
    assert_true(is_new);
    assert_code(system_store_put(test.store, &made, EXPECT_NONE, &version, &is_new, &err),
                ERR_PRECONDITION);
    err_clear(&err);
    made.max_active_per_owner = 2;
    assert_ok(system_store_put(test.store, &made, 1, &version, &is_new, &err));
    assert_int_equal(version, 2);
    assert_ok(system_store_enable(test.store, "acme", "west", false, &err));
    assert_ok(system_store_enable(test.store, "acme", "west", false, &err));
    assert_ok(system_store_get(test.store, "acme", "west", &read, &err));
    assert_false(read.enabled);
    assert_int_equal(read.version, 3);
    assert_int_equal(read.max_active, 4);
    assert_int_equal(read.max_active_per_owner, 2);
    assert_string_equal(read.description, "for tests");
    assert_ok(
        system_store_list(test.store, "acme", &(struct name_page){"", 9}, &items, &count, &err));
    assert_int_equal(count, 1);
    free(items);
    assert_code(system_store_delete(test.store, "acme", "west", 2, &err), ERR_PRECONDITION);
    err_clear(&err);
    assert_ok(system_store_delete(test.store, "acme", "west", 3, &err));
    assert_code(system_store_get(test.store, "acme", "west", &read, &err), ERR_NOT_FOUND);
    err_clear(&err);
    assert_code(system_store_enable(test.store, "acme", "west", true, &err), ERR_NOT_FOUND);
    err_clear(&err);
    assert_code(system_store_get(test.store, "other", "west", &read, &err), ERR_NOT_FOUND);
}

static void a_quota_is_made_changed_and_deleted(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct quota read = {0};
    struct quota *items = NULL;
    size_t count = 0;
    put_quota(QUOTA_TENANT_OWNER, 10);
    put_quota("ann", 2);
    put_quota("ann", 3);
    assert_ok(quota_store_get(test.store, "acme", "ann", &read, &err));
    assert_int_equal(read.max_active, 3);
    assert_int_equal(read.version, 2);
    assert_ok(
        quota_store_list(test.store, "acme", &(struct name_page){"", 9}, &items, &count, &err));
    assert_int_equal(count, 2);
    assert_string_equal(items[0].owner, "*");
    free(items);
    assert_code(quota_store_delete(test.store, "acme", "ann", 1, &err), ERR_PRECONDITION);
    err_clear(&err);
    assert_ok(quota_store_delete(test.store, "acme", "ann", 0, &err));
    assert_code(quota_store_delete(test.store, "acme", "ann", 0, &err), ERR_NOT_FOUND);
}

static void what_is_used_is_counted_from_the_jobs_that_a_worker_owns(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_system west = a_system("west", 3, 2);
    uint32_t version = 0;
    bool made = false;
    assert_ok(system_store_put(test.store, &west, 0, &version, &made, &err));
    put_quota(QUOTA_TENANT_OWNER, 10);
    put_quota("bob", 1);
    (void)test_submit(test.store); /* it waits: not active */
    (void)active_job("ann", "west");
    (void)active_job("ann", "west");
    (void)active_job("ann", NULL);
    (void)active_job("bob", "west");
    struct quota_use use = use_of(QUOTA_TENANT, NULL, NULL);
    assert_int_equal(use.active, 4);
    assert_int_equal(use.room, 6);
    use = use_of(QUOTA_OWNER, "ann", NULL);
    assert_int_equal(use.active, 3);
    assert_int_equal(use.limit, QUOTA_NO_LIMIT);
    assert_int_equal(use.room, QUOTA_NO_LIMIT);
    use = use_of(QUOTA_OWNER, "bob", NULL);
    assert_int_equal(use.limit, 1);
    assert_int_equal(use.room, 0);
    use = use_of(QUOTA_SYSTEM, NULL, "west");
    assert_int_equal(use.active, 3);
    assert_int_equal(use.room, 0);
    use = use_of(QUOTA_SYSTEM_OWNER, "ann", "west");
    assert_int_equal(use.active, 2);
    assert_int_equal(use.room, 0);
    use = use_of(QUOTA_SYSTEM_OWNER, "bob", "west");
    assert_int_equal(use.room, 1);
    use = use_of(QUOTA_SYSTEM, NULL, "gone");
    assert_int_equal(use.room, QUOTA_NO_LIMIT);
}

static void scopes_have_names(void **unused)
{
    (void)unused;
    for (int i = 0; i < QUOTA_SCOPE_COUNT; i++) {
        enum quota_scope scope = QUOTA_TENANT;
        assert_true(quota_scope_parse(sv_of(quota_scope_text((enum quota_scope)i)), &scope));
        assert_int_equal(scope, i);
    }
    enum quota_scope scope = QUOTA_TENANT;
    assert_false(quota_scope_parse(SV("planet"), &scope));
}

/* ---- the gate -------------------------------------------------------------------------------- */

static struct job_gate gate_of(const struct uuid *id)
{
    struct err err = {0};
    struct job_gate gate = {0};
    assert_ok(job_store_gate(test.store, id, &gate, &err));
    return gate;
}

static void a_job_needs_its_application_and_its_system(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    struct job_system west = a_system("west", 0, 0);
    char definition[] = "{}";
    struct app app = {.tenant = "acme",
                      .id = "sim",
                      .app_version = "1",
                      .enabled = true,
                      .definition = definition};
    uint32_t version = 0;
    bool made = false;
    job.app_id = "sim";
    job.app_version = "1";
    job.system_id = "west";
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    assert_true(gate_of(&done.id).app_off); /* missing */
    assert_true(gate_of(&done.id).system_off);
    assert_ok(app_store_put(test.store, &app, 0, &version, &made, &err));
    assert_ok(system_store_put(test.store, &west, 0, &version, &made, &err));
    assert_false(gate_of(&done.id).app_off);
    assert_false(gate_of(&done.id).system_off);
    assert_false(job_gate_has_limits(&(struct job_gate){0}));
    assert_ok(app_store_enable(test.store, "acme", "sim", "1", false, &err));
    assert_ok(system_store_enable(test.store, "acme", "west", false, &err));
    assert_true(gate_of(&done.id).app_off);
    assert_true(gate_of(&done.id).system_off);
    struct uuid plain = test_submit(test.store);
    struct job_gate gate = gate_of(&plain);
    assert_false(gate.app_off || gate.system_off || job_gate_has_limits(&gate));
    put_quota("ann", 7);
    gate = gate_of(&plain);
    assert_true(job_gate_has_limits(&gate));
    assert_int_equal(gate.limits[QUOTA_OWNER], 7);
    struct uuid absent = uuid_v7();
    assert_code(job_store_gate(test.store, &absent, &gate, &err), ERR_NOT_FOUND);
}

static void block_for(void *arg, const struct quota_over *over, struct job_block *ret_block)
{
    *(struct quota_over *)arg = *over;
    *ret_block = (struct job_block){.condition = JOB_COND_QUOTA_EXCEEDED,
                                    .tester = "quota",
                                    .params = "{}",
                                    .policy = "constant every=1s",
                                    .detail = "for a test"};
}

static bool admit(struct store *store, const struct job_hold *hold, const char *on,
                  struct quota_over *ret_over)
{
    struct err err = {0};
    struct uuid recovery;
    bool admitted = false;
    const struct job_admission admission = {
        .hold = hold,
        .from = JOB_PROCESSING_INPUTS,
        .whose = {.tenant = "acme", .owner = "ann", .system_id = on},
        .block = block_for,
        .arg = ret_over,
    };
    if (job_store_admit(store, &admission, &admitted, &recovery, &err)) {
        fprintf(stderr, "admit: %s\n", err.text);
        abort();
    }
    return admitted;
}

static void a_job_over_the_limit_is_blocked_and_named_by_the_narrowest_one(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_system west = a_system("west", 3, 1);
    struct quota_over over = {0};
    uint32_t version = 0;
    bool made = false;
    assert_ok(system_store_put(test.store, &west, 0, &version, &made, &err));
    put_quota(QUOTA_TENANT_OWNER, 1);
    struct job_hold first = active_job("ann", "west");
    assert_true(admit(test.store, &first, "west", &over));
    struct job_hold second = active_job("ann", "west");
    assert_false(admit(test.store, &second, "west", &over));
    assert_int_equal(over.scope, QUOTA_SYSTEM_OWNER);
    assert_int_equal(over.limit, 1);
    assert_int_equal(over.active, 1);
    assert_int_equal(test_state(test.store, &second.id), JOB_BLOCKED);
    AUTO(job_free) struct job *blocked = test_job(test.store, &second.id);
    assert_false(blocked->has_owner);
    assert_int_equal(blocked->condition, JOB_COND_QUOTA_EXCEEDED);
    assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM job_blocked b JOIN job_recovery r "
                                           "ON r.id = b.recovery_id WHERE b.resume_status = "
                                           "'PROCESSING_INPUTS' AND r.tester = 'quota'"),
                     1);
    struct job_hold elsewhere = active_job("ann", NULL);
    assert_false(admit(test.store, &elsewhere, NULL, &over));
    assert_int_equal(over.scope, QUOTA_TENANT);
}

/* ---- races ----------------------------------------------------------------------------------- */

struct rival {
    struct uuid job;
    pthread_barrier_t *start;
    bool admitted;
};

static void *compete(void *arg)
{
    struct rival *rival = arg;
    struct quota_over over;
    (void)pthread_barrier_wait(rival->start);
    struct job_hold hold = test_claim(test.store, &rival->job, JOB_PROCESSING_INPUTS);
    rival->admitted = admit(test.store, &hold, NULL, &over);
    store_thread_end();
    return NULL;
}

static unsigned compete_all(void)
{
    struct rival rivals[RIVALS];
    pthread_t threads[RIVALS];
    pthread_barrier_t start;
    unsigned admitted = 0;
    assert_int_equal(pthread_barrier_init(&start, NULL, RIVALS), 0);
    for (size_t i = 0; i < RIVALS; i++) {
        rivals[i] = (struct rival){.job = test_submit(test.store), .start = &start};
        assert_int_equal(pthread_create(&threads[i], NULL, compete, &rivals[i]), 0);
    }
    for (size_t i = 0; i < RIVALS; i++) {
        pthread_join(threads[i], NULL);
        admitted += rivals[i].admitted;
    }
    (void)pthread_barrier_destroy(&start);
    return admitted;
}

static void of_jobs_claimed_at_once_exactly_as_many_are_let_in_as_there_is_room(void **unused)
{
    (void)unused;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t room = round % 4 + 1;
        (void)clear(NULL);
        put_quota("ann", room);
        assert_int_equal(compete_all(), room);
        assert_int_equal(use_of(QUOTA_OWNER, "ann", NULL).active, room);
        assert_int_equal(test_db_number(&test, "SELECT COUNT(*) FROM job_blocked"), RIVALS - room);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_system_is_made_changed_disabled_and_deleted, clear),
        cmocka_unit_test_setup(a_quota_is_made_changed_and_deleted, clear),
        cmocka_unit_test_setup(what_is_used_is_counted_from_the_jobs_that_a_worker_owns, clear),
        TEST(scopes_have_names),
        cmocka_unit_test_setup(a_job_needs_its_application_and_its_system, clear),
        cmocka_unit_test_setup(a_job_over_the_limit_is_blocked_and_named_by_the_narrowest_one,
                               clear),
        cmocka_unit_test_setup(of_jobs_claimed_at_once_exactly_as_many_are_let_in_as_there_is_room,
                               clear),
    };
    test_db_open(&test);
    int failed = cmocka_run_group_tests_name("store_quota", tests, NULL, NULL);
    test_db_close(&test);
    return failed;
}
