/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/store/app_store.h"
#include "common/store/outbox_store.h"
#include "common/store/queue_store.h"
#include "common/store/worker_store.h"

#include <pthread.h>

/* What a site has besides jobs: tenants, queues, applications, workers. */

static struct test_db test;

/* ---- tenants and queues ---------------------------------------------------------------------- */

static struct job_queue a_queue(const char *name, int32_t priority, char *filter)
{
    struct job_queue queue = {
        .priority = priority, .filter = filter, .queue_type = "quorum", .enabled = true};
    (void)snprintf(queue.tenant, sizeof(queue.tenant), "acme");
    (void)snprintf(queue.name, sizeof(queue.name), "%s", name);
    return queue;
}

static void *ensure(void *result)
{
    struct err err = {0};
    *(enum err_code *)result = tenant_store_ensure(test.store, "acme", &err);
    store_thread_end();
    return NULL;
}

static void many_first_tokens_at_once_make_one_tenant_with_a_default_queue(void **unused)
{
    (void)unused;
    struct err err = {0};
    pthread_t threads[8];
    enum err_code results[8];
    struct job_queue_list list = {0};
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ensure, &results[i]), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(results[i], ERR_OK);
    assert_ok(queue_store_list(test.store, "acme", &list, &err));
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].name, QUEUE_DEFAULT);
    assert_null(list.items[0].filter);
    assert_true(list.items[0].enabled);
    assert_int_equal(list.items[0].version, 1);
    job_queue_list_done(&list);
}

static void a_queue_is_written_read_and_listed_by_priority(void **unused)
{
    (void)unused;
    struct err err = {0};
    char filter[] = "owner = 'ann'";
    struct job_queue quick = a_queue("quick", 50, filter);
    struct job_queue slow = a_queue("slow", 20, filter);
    struct job_queue read = {0};
    struct job_queue_list list = {0};
    uint32_t version = 0;
    uint64_t before = 0;
    uint64_t after = 0;
    bool made = false;
    slow.max_seconds = 60;
    assert_ok(queue_store_version(test.store, &before, &err));
    assert_ok(queue_store_put(test.store, &slow, EXPECT_NONE, &version, &made, &err));
    assert_ok(queue_store_put(test.store, &quick, 0, &version, &made, &err));
    assert_true(made);
    assert_int_equal(version, 1);
    assert_ok(queue_store_version(test.store, &after, &err));
    assert_true(after > before);
    assert_ok(queue_store_get(test.store, "acme", "slow", &read, &err));
    assert_string_equal(read.filter, filter);
    assert_int_equal(read.max_seconds, 60);
    assert_true(read.created_us > 0);
    job_queue_done(&read);
    assert_ok(queue_store_list(test.store, "acme", &list, &err));
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0].name, "quick");
    assert_string_equal(list.items[2].name, QUEUE_DEFAULT);
    job_queue_list_done(&list);
    assert_code(queue_store_get(test.store, "other", "slow", &read, &err), ERR_NOT_FOUND);
}

static void a_change_needs_the_version_that_was_read(void **unused)
{
    (void)unused;
    struct err err = {0};
    char filter[] = "owner = 'bob'";
    struct job_queue quick = a_queue("quick", 50, filter);
    uint32_t version = 0;
    bool made = true;
    assert_code(queue_store_put(test.store, &quick, EXPECT_NONE, &version, &made, &err),
                ERR_PRECONDITION);
    err_clear(&err);
    assert_code(queue_store_put(test.store, &quick, 9, &version, &made, &err), ERR_PRECONDITION);
    err_clear(&err);
    assert_ok(queue_store_put(test.store, &quick, 1, &version, &made, &err));
    assert_int_equal(version, 2);
    assert_false(made);
    struct job_queue absent = a_queue("absent", 77, NULL);
    assert_code(queue_store_put(test.store, &absent, 1, &version, &made, &err), ERR_PRECONDITION);
}

static void a_priority_belongs_to_one_queue(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_queue rival = a_queue("rival", 50, NULL);
    uint32_t version = 0;
    bool made = false;
    assert_code(queue_store_put(test.store, &rival, 0, &version, &made, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.text, "quick"));
}

static void a_queue_in_use_and_the_default_queue_stay(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_submitted done;
    struct job_cancelled cancelled;
    struct job_new job = test_job_new();
    job.queue = "slow";
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    assert_code(queue_store_delete(test.store, "acme", "slow", 0, &err), ERR_IN_USE);
    err_clear(&err);
    assert_code(queue_store_delete(test.store, "acme", QUEUE_DEFAULT, 0, &err), ERR_IN_USE);
    err_clear(&err);
    assert_ok(job_store_cancel(test.store, "acme", &job.id, "ann", &cancelled, &err));
    assert_code(queue_store_delete(test.store, "acme", "slow", 7, &err), ERR_PRECONDITION);
    err_clear(&err);
    assert_ok(queue_store_delete(test.store, "acme", "slow", 1, &err));
    assert_code(queue_store_delete(test.store, "acme", "slow", 0, &err), ERR_NOT_FOUND);
}

/* ---- applications ---------------------------------------------------------------------------- */

static void an_application_is_made_changed_disabled_and_deleted(void **unused)
{
    (void)unused;
    struct err err = {0};
    char definition[] = "{\"command\":[\"sim\"]}";
    struct app app = {.tenant = "acme",
                      .id = "sim",
                      .app_version = "1.0",
                      .enabled = true,
                      .definition = definition};
    struct app read = {0};
    struct app_list list = {0};
    uint32_t version = 0;
    bool made = false;
    assert_ok(app_store_put(test.store, &app, 0, &version, &made, &err));
    assert_true(made);
    assert_code(app_store_put(test.store, &app, EXPECT_NONE, &version, &made, &err),
                ERR_PRECONDITION);
    err_clear(&err);
    assert_ok(app_store_put(test.store, &app, 1, &version, &made, &err));
    assert_int_equal(version, 2);
    assert_ok(app_store_enable(test.store, "acme", "sim", "1.0", false, &err));
    assert_ok(app_store_enable(test.store, "acme", "sim", "1.0", false, &err));
    assert_ok(app_store_get(test.store, "acme", "sim", "1.0", &read, &err));
    assert_false(read.enabled);
    assert_int_equal(read.version, 3);
    assert_string_equal(read.definition, definition);
    app_done(&read);
    assert_ok(app_store_list(test.store, "acme", &(struct app_page){"", "", 9}, &list, &err));
    assert_int_equal(list.count, 1);
    app_list_done(&list);
    assert_code(app_store_delete(test.store, "acme", "sim", "1.0", 2, &err), ERR_PRECONDITION);
    err_clear(&err);
    assert_ok(app_store_delete(test.store, "acme", "sim", "1.0", 3, &err));
    assert_code(app_store_get(test.store, "acme", "sim", "1.0", &read, &err), ERR_NOT_FOUND);
    err_clear(&err);
    assert_code(app_store_enable(test.store, "acme", "sim", "1.0", true, &err), ERR_NOT_FOUND);
}

/* ---- workers --------------------------------------------------------------------------------- */

static struct uuid last_home;

static struct uuid register_worker(const char *name)
{
    struct err err = {0};
    struct worker_row row = {.id = uuid_v7(),
                             .tenant = "acme",
                             .queue = "default",
                             .host = "here",
                             .home = uuid_v7(),
                             .boot_id = "b",
                             .pid = 42,
                             .version = "0.1",
                             .slots = 8,
                             .lease_ms = 30000,
                             .runner = "boot 7 99"};
    (void)snprintf(row.name, sizeof(row.name), "%s", name);
    assert_ok(worker_store_register(test.store, &row, &err));
    last_home = row.home;
    return row.id;
}

static uint64_t beat_of(const struct uuid *id)
{
    struct err err = {0};
    struct worker_beat *beats = NULL;
    size_t count = 0;
    uint64_t beat = UINT64_MAX;
    assert_ok(worker_store_beats(test.store, &beats, &count, &err));
    for (size_t i = 0; i < count; i++) {
        if (uuid_eq(&beats[i].id, id))
            beat = beats[i].beat;
    }
    free(beats);
    return beat;
}

static void a_beat_rises_until_the_worker_is_declared_dead(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = register_worker("w1");
    struct worker_row row;
    struct beat *beat = NULL;
    assert_ok(beat_open(&test.cfg, &id, &beat, &err));
    assert_ok(beat_write(beat, 3, &err));
    assert_ok(beat_write(beat, 4, &err));
    assert_int_equal(beat_of(&id), 2);
    assert_code(worker_store_declare_dead(test.store, &id, 1, &err), ERR_CONFLICT);
    err_clear(&err);
    assert_ok(worker_store_get(test.store, "acme", &id, &row, &err));
    assert_int_equal(row.state, WORKER_LIVE);
    assert_int_equal(row.busy, 4);
    assert_int_equal(row.slots, 8);
    assert_ok(worker_store_declare_dead(test.store, &id, 2, &err));
    assert_code(beat_write(beat, 4, &err), ERR_FENCED);
    err_clear(&err);
    assert_code(worker_store_end(test.store, &id, WORKER_STOPPED, &err), ERR_CONFLICT);
    assert_int_equal(beat_of(&id), UINT64_MAX);
    beat_free(beat);
}

/* The answer to the commit was lost for longer than the store tries by itself. */
static void a_worker_that_registers_again_is_registered(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct worker_row row = {.id = uuid_v7(), .tenant = "twice", .queue = "q", .name = "w"};
    struct worker_row *rows = NULL;
    size_t count = 0;
    assert_ok(worker_store_register(test.store, &row, &err));
    assert_ok(worker_store_register(test.store, &row, &err));
    assert_ok(worker_store_list(test.store, "twice", &rows, &count, &err));
    assert_int_equal(count, 1);
    free(rows);
    test_db_run(&test, "DELETE FROM workers WHERE tenant = 'twice'");
}

static uint32_t lease_of(const struct uuid *id)
{
    struct err err = {0};
    struct worker_beat *beats = NULL;
    size_t count = 0;
    uint32_t lease_ms = 0;
    assert_ok(worker_store_beats(test.store, &beats, &count, &err));
    for (size_t i = 0; i < count; i++) {
        if (uuid_eq(&beats[i].id, id))
            lease_ms = beats[i].lease_ms;
    }
    free(beats);
    return lease_ms;
}

static void a_former_incarnation_is_kept_alive_with_the_larger_lease(void **unused)
{
    (void)unused;
    struct err err = {0};
    bool shares = true;
    struct uuid former = register_worker("w4");
    const struct uuid home = last_home;
    struct uuid id = register_worker("w4");
    struct beat *beat = NULL;
    assert_int_equal(lease_of(&former), 30000);
    assert_ok(beat_open(&test.cfg, &id, &beat, &err));
    assert_ok(beat_write_former(beat, &former, 20000, &err));
    assert_int_equal(lease_of(&former), 30000);
    assert_ok(beat_write_former(beat, &former, 50000, &err));
    assert_int_equal(lease_of(&former), 50000);
    assert_int_equal(beat_of(&former), 2);
    test_db_run(&test, "UPDATE workers SET lease_ms = NULL WHERE beat = 2 AND name = 'w4'");
    assert_ok(beat_write_former(beat, &former, 50000, &err));
    assert_int_equal(lease_of(&former), WORKER_LEASE_UNKNOWN_MS);
    assert_ok(worker_store_shares_runner(test.store, &former, &home, "boot 7 99", &shares, &err));
    assert_true(shares);
    assert_ok(worker_store_shares_runner(test.store, &former, &home, "boot 7 98", &shares, &err));
    assert_false(shares);
    assert_ok(
        worker_store_shares_runner(test.store, &former, &last_home, "boot 7 99", &shares, &err));
    assert_false(shares);
    assert_ok(worker_store_end(test.store, &former, WORKER_REPLACED, &err));
    assert_code(beat_write_former(beat, &former, 50000, &err), ERR_FENCED);
    err_clear(&err);
    test_db_run(&test, "DELETE FROM workers WHERE name = 'w4'");
    beat_free(beat);
}

static void a_beat_survives_the_loss_of_its_connection(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = register_worker("w2");
    struct beat *beat = NULL;
    assert_ok(beat_open(&test.cfg, &id, &beat, &err));
    assert_ok(beat_write(beat, 0, &err));
    test_db_kill_connections(&test);
    assert_ok(beat_write(beat, 0, &err));
    assert_int_equal(beat_of(&id), 2);
    beat_free(beat);
}

static void former_incarnations_are_found_and_replaced(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid old = register_worker("w3");
    const struct uuid home = last_home;
    struct uuid other = register_worker("w3"); /* of the same name and host, in another folder */
    struct worker_row *rows = NULL;
    enum worker_state state = WORKER_LIVE;
    size_t count = 0;
    assert_ok(worker_store_former(test.store, &home, &rows, &count, &err));
    assert_int_equal(count, 1);
    assert_true(uuid_eq(&rows[0].id, &old));
    free(rows);
    assert_ok(worker_store_end(test.store, &old, WORKER_REPLACED, &err));
    assert_ok(worker_store_end(test.store, &old, WORKER_REPLACED, &err));
    assert_ok(worker_store_state(test.store, &old, &state, &err));
    assert_int_equal(state, WORKER_REPLACED);
    assert_ok(worker_store_former(test.store, &home, &rows, &count, &err));
    assert_int_equal(count, 0);
    free(rows);
    assert_ok(worker_store_list(test.store, "acme", &rows, &count, &err));
    assert_int_equal(count, 4); /* one dead, two live, one replaced just now */
    free(rows);
    assert_ok(worker_store_state(test.store, &other, &state, &err));
    assert_int_equal(state, WORKER_LIVE);
    assert_ok(worker_store_list(test.store, NULL, &rows, &count, &err));
    assert_int_equal(count, 4);
    free(rows);
    assert_ok(worker_store_list(test.store, "other", &rows, &count, &err));
    assert_int_equal(count, 0);
    free(rows);
    struct uuid nobody = uuid_v7();
    assert_code(worker_store_state(test.store, &nobody, &state, &err), ERR_NOT_FOUND);
}

/* ---- outbox ---------------------------------------------------------------------------------- */

static void young_rows_of_the_outbox_are_left_to_who_wrote_them(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct outbox_list rows = {0};
    uint64_t total = 0;
    (void)test_submit(test.store);
    assert_ok(outbox_store_count(test.store, &total, &err));
    assert_true(total > 0);
    assert_ok(outbox_store_read(test.store, 0, 3600000, 100, &rows, &err));
    assert_int_equal(rows.count, 0);
    free(rows.items);
    assert_ok(outbox_store_read(test.store, 0, 0, 100, &rows, &err));
    assert_int_equal(rows.count, total);
    free(rows.items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_first_tokens_at_once_make_one_tenant_with_a_default_queue),
        TEST(a_queue_is_written_read_and_listed_by_priority),
        TEST(a_change_needs_the_version_that_was_read),
        TEST(a_priority_belongs_to_one_queue),
        TEST(a_queue_in_use_and_the_default_queue_stay),
        TEST(an_application_is_made_changed_disabled_and_deleted),
        TEST(a_beat_rises_until_the_worker_is_declared_dead),
        TEST(a_worker_that_registers_again_is_registered),
        TEST(a_former_incarnation_is_kept_alive_with_the_larger_lease),
        TEST(a_beat_survives_the_loss_of_its_connection),
        TEST(former_incarnations_are_found_and_replaced),
        TEST(young_rows_of_the_outbox_are_left_to_who_wrote_them),
    };
    test_db_open(&test);
    int failed = cmocka_run_group_tests_name("store_site", tests, NULL, NULL);
    test_db_close(&test);
    return failed;
}
