/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include "common/store/job_store.h"

static struct test_db test;

static struct job_query a_query(const char *tenant)
{
    return (struct job_query){.tenant = tenant, .limit = 10};
}

static struct uuid submit_as(const char *tenant, const char *owner, const char *queue)
{
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    job.tenant = tenant;
    job.owner = owner;
    job.queue = queue;
    assert_ok(job_store_submit(test.store, &job, &done, &err));
    return done.id;
}

/* Reads all pages of the query, checks that they hold exactly ids in this order. */
static void assert_pages(struct job_query query, const struct uuid *ids, size_t count)
{
    struct err err = {0};
    struct uuid after;
    size_t seen = 0;
    bool more = true;
    while (more) {
        struct job_list list = {0};
        assert_ok(job_store_list(test.store, &query, &list, &err));
        for (size_t i = 0; i < list.count; i++) {
            assert_true(seen < count);
            assert_true(uuid_eq(&list.items[i]->id, &ids[seen]));
            after = list.items[i]->id;
            seen++;
        }
        more = list.more;
        assert_true(!more || list.count == query.limit || query.stretch > 0);
        assert_true(!more || uuid_eq(&list.last, &after) || query.stretch > 0);
        after = list.last;
        query.after = &after;
        job_list_done(&list);
    }
    assert_int_equal(seen, count);
}

static void pages_hold_every_job_once_in_both_orders(void **unused)
{
    (void)unused;
    struct uuid up[25];
    struct uuid down[25];
    for (size_t i = 0; i < ARRAY_LEN(up); i++) {
        up[i] = submit_as("pages", "ann", "default");
        down[ARRAY_LEN(up) - 1 - i] = up[i];
    }
    struct job_query query = a_query("pages");
    assert_pages(query, down, ARRAY_LEN(down));
    query.order = JOB_ORDER_CREATED_ASC;
    assert_pages(query, up, ARRAY_LEN(up));
    query.limit = 25;
    assert_pages(query, up, ARRAY_LEN(up));
    query.limit = 1;
    assert_pages(query, up, ARRAY_LEN(up));
}

static void jobs_that_arrive_meanwhile_do_not_move_the_pages(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid ids[6];
    for (int i = 5; i >= 0; i--)
        ids[i] = submit_as("stable", "ann", "default");
    struct job_query query = a_query("stable");
    struct job_list list = {0};
    query.limit = 3;
    assert_ok(job_store_list(test.store, &query, &list, &err));
    assert_true(list.more);
    struct uuid last = list.items[2]->id;
    assert_true(uuid_eq(&last, &ids[2]));
    job_list_done(&list);
    for (int i = 0; i < 4; i++)
        (void)submit_as("stable", "ann", "default");
    query.after = &last;
    assert_pages(query, ids + 3, 3);
}

static void each_field_selects(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid ann = submit_as("fields", "ann", "quick");
    struct uuid bob = submit_as("fields", "bob", "long");
    struct uuid running = submit_as("fields", "cho", "long");
    (void)test_claim(test.store, &running, JOB_RUNNING);
    struct job_query query = a_query("fields");
    query.owner = "ann";
    assert_pages(query, &ann, 1);
    query = a_query("fields");
    query.queue = "quick";
    assert_pages(query, &ann, 1);
    query = a_query("fields");
    query.states = 1u << JOB_RUNNING;
    assert_pages(query, &running, 1);
    query.states = 1u << JOB_RUNNING | 1u << JOB_PENDING;
    const struct uuid all[] = {running, bob, ann};
    assert_pages(query, all, 3);
    query.name = "no such name";
    assert_pages(query, NULL, 0);
    query = a_query("fields");
    query.app_id = "sim";
    assert_pages(query, NULL, 0);
    struct job_cancelled done;
    assert_ok(job_store_cancel(test.store, "fields", &bob, "bob", &done, &err));
    assert_ok(job_store_set_visible(test.store, "fields", &bob, false, &err));
    query = a_query("fields");
    const struct uuid shown[] = {running, ann};
    assert_pages(query, shown, 2);
    query.hidden_too = true;
    assert_pages(query, all, 3);
}

/* Every order, and every index that a stretch may be of, with stretches shorter than the gaps. */
static void a_search_in_stretches_finds_what_one_of_all_rows_does(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid wanted[5];
    struct uuid down[5];
    struct uuid running = {0};
    for (size_t i = 0; i < 60; i++) {
        struct uuid id = submit_as("stretch", i % 2 ? "ann" : "bob", i % 12 ? "long" : "rare");
        if (i % 12 == 0)
            wanted[i / 12] = id;
        if (i == 31)
            running = id;
    }
    for (size_t i = 0; i < ARRAY_LEN(down); i++)
        down[i] = wanted[ARRAY_LEN(down) - 1 - i];
    (void)test_claim(test.store, &running, JOB_RUNNING);
    struct job_query query = a_query("stretch");
    query.queue = "rare";
    for (query.stretch = 1; query.stretch < 70; query.stretch += 7) {
        for (query.limit = 1; query.limit <= 6; query.limit += 2) {
            query.order = JOB_ORDER_CREATED_DESC;
            assert_pages(query, down, ARRAY_LEN(down));
            query.owner = "bob";
            assert_pages(query, down, ARRAY_LEN(down));
            query.states = 1u << JOB_RUNNING | 1u << JOB_PENDING;
            assert_pages(query, down, ARRAY_LEN(down));
            query.owner = NULL;
            assert_pages(query, down, ARRAY_LEN(down));
            query.order = JOB_ORDER_CREATED_ASC;
            assert_pages(query, wanted, ARRAY_LEN(wanted));
            query.states = 0;
            query.look_ms = 60000;
            assert_pages(query, wanted, ARRAY_LEN(wanted));
            query.look_ms = 0;
        }
    }
    struct job_list list = {0};
    query.stretch = 7;
    query.queue = "none";
    query.look_ms = 60000;
    assert_ok(job_store_list(test.store, &query, &list, &err));
    assert_int_equal(list.count, 0);
    assert_false(list.more);
    job_list_done(&list);
    query.look_ms = 0;
    assert_ok(job_store_list(test.store, &query, &list, &err));
    assert_int_equal(list.count, 0);
    assert_true(list.more);
    job_list_done(&list);
}

static void a_condition_brings_parameters_of_every_type(void **unused)
{
    (void)unused;
    struct uuid id = submit_as("where", "o'neil \"\\", "default");
    struct job_query query = a_query("where");
    const struct store_param params[] = {
        {.type = STORE_TEXT, .text = SV("o'neil \"\\")},
        {.type = STORE_INT, .integer = 100},
        {.type = STORE_DOUBLE, .number = 1.5},
        {.type = STORE_BYTES, .text = {(const char *)id.bytes, sizeof(id.bytes)}},
    };
    query.where_sql = "owner = ? AND memory_mb = ? AND cores_per_node > ? AND id = ?";
    query.params = params;
    query.param_count = ARRAY_LEN(params);
    assert_pages(query, &id, 1);
    query.where_sql = "NOT (owner = ? AND memory_mb = ? AND cores_per_node > ? AND id = ?)";
    assert_pages(query, NULL, 0);
}

static void a_condition_that_the_server_refuses_is_an_error(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct job_list list = {0};
    struct job_query query = a_query("where");
    query.where_sql = "no_such_column = 1";
    assert_code(job_store_list(test.store, &query, &list, &err), ERR_DB);
    err_clear(&err);
    query.where_sql = NULL;
    assert_ok(job_store_list(test.store, &query, &list, &err));
    assert_int_equal(list.count, 1);
    job_list_done(&list);
}

static void another_tenants_jobs_are_never_listed(void **unused)
{
    (void)unused;
    (void)submit_as("mine", "ann", "default");
    assert_pages(a_query("theirs"), NULL, 0);
}

static void events_are_read_behind_a_number(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct uuid id = submit_as("events", "ann", "default");
    (void)test_claim(test.store, &id, JOB_RUNNING);
    struct job_event_list events = {0};
    assert_ok(
        job_store_events(test.store, "events", &id, (struct job_event_page){0, 3}, &events, &err));
    assert_int_equal(events.count, 3);
    uint64_t seq = events.items[2].seq;
    free(events.items);
    assert_ok(job_store_events(test.store, "events", &id, (struct job_event_page){seq, 100},
                               &events, &err));
    assert_int_equal(events.count, 4);
    assert_true(events.items[0].seq > seq);
    free(events.items);
    assert_ok(
        job_store_events(test.store, "other", &id, (struct job_event_page){0, 100}, &events, &err));
    assert_int_equal(events.count, 0);
    free(events.items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pages_hold_every_job_once_in_both_orders),
        TEST(jobs_that_arrive_meanwhile_do_not_move_the_pages),
        TEST(each_field_selects),
        TEST(a_search_in_stretches_finds_what_one_of_all_rows_does),
        TEST(a_condition_brings_parameters_of_every_type),
        TEST(a_condition_that_the_server_refuses_is_an_error),
        TEST(another_tenants_jobs_are_never_listed),
        TEST(events_are_read_behind_a_number),
    };
    test_db_open(&test);
    int failed = cmocka_run_group_tests_name("store_list", tests, NULL, NULL);
    test_db_close(&test);
    return failed;
}
