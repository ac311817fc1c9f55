/* SPDX-License-Identifier: MIT */
#include "tests/support/test_db.h"

#include "common/base/uuid.h"
#include "common/store/db.h"
#include "common/store/migrate.h"

#include <inttypes.h>

static void check(enum err_code rc, const struct err *err)
{
    if (rc == ERR_OK)
        return;
    fprintf(stderr, "test_db: %s: %s\n", err_name(rc), err->text);
    abort();
}

static const char *setting(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
    if (!value) {
        fprintf(stderr, "%s is not set; run this by tests/support/with_servers\n", name);
        exit(1);
    }
    return value;
}

static struct db *connect_to(const struct store_config *cfg, const char *schema)
{
    struct err err = {0};
    struct db *db = NULL;
    struct store_config own = *cfg;
    own.name = schema;
    check(db_open(&own, &db, &err), &err);
    return db;
}

void test_db_open(struct test_db *ret_db)
{
    struct err err = {0};
    char sql[160];
    uint32_t applied = 0;
    uint64_t port = 0;
    uint64_t unique = 0;
    if (!sv_u64(sv_of(setting("SLUICE_TEST_DB_PORT")), UINT16_MAX, &port))
        abort();
    *ret_db = (struct test_db){.cfg = {.host = setting("SLUICE_TEST_DB_HOST"),
                                       .user = setting("SLUICE_TEST_DB_USER"),
                                       .password = setting("SLUICE_TEST_DB_PASSWORD"),
                                       .tls_ca = "",
                                       .port = (uint16_t)port,
                                       .pool_size = 8,
                                       .connect_timeout_ms = 5000,
                                       .query_timeout_ms = 20000,
                                       .acquire_timeout_ms = 10000}};
    random_bytes(&unique, sizeof(unique));
    (void)snprintf(ret_db->schema, sizeof(ret_db->schema), "sluice_test_%016" PRIx64, unique);
    (void)snprintf(sql, sizeof(sql), "CREATE DATABASE %s CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
                   ret_db->schema);
    AUTO(db_free) struct db *db = connect_to(&ret_db->cfg, setting("SLUICE_TEST_DB_NAME"));
    check(db_run_text(db, sv_of(sql), &err), &err);
    ret_db->cfg.name = ret_db->schema;
    check(migrate_run(&ret_db->cfg, &applied, NULL, &err), &err);
    check(store_open(&ret_db->cfg, &ret_db->store, &err), &err);
}

void test_db_close(struct test_db *db)
{
    char sql[80];
    store_free(db->store);
    (void)snprintf(sql, sizeof(sql), "DROP DATABASE %s", db->schema);
    test_db_run(db, sql);
    store_thread_end();
}

void test_db_run(const struct test_db *test, const char *sql)
{
    struct err err = {0};
    AUTO(db_free) struct db *db = connect_to(&test->cfg, test->schema);
    check(db_run_text(db, sv_of(sql), &err), &err);
}

uint64_t test_db_number(const struct test_db *test, const char *sql)
{
    struct err err = {0};
    uint64_t number = 0;
    bool row = false;
    AUTO(db_free) struct db *db = connect_to(&test->cfg, test->schema);
    check(db_select_text(db, sv_of(sql), DB_NO_ARGS, DB_COLS(COL_U64(&number)), &err), &err);
    check(db_next(db, &row, &err), &err);
    db_end(db);
    if (!row)
        abort();
    return number;
}

void test_db_kill_connections(const struct test_db *test)
{
    char sql[160];
    struct err err = {0};
    uint64_t ids[64];
    size_t count = 0;
    bool row = true;
    AUTO(db_free) struct db *db = connect_to(&test->cfg, test->schema);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT id FROM information_schema.processlist WHERE db = '%s' AND id <> "
                   "CONNECTION_ID()",
                   test->schema);
    check(db_select_text(db, sv_of(sql), DB_NO_ARGS, DB_COLS(COL_U64(&ids[63])), &err), &err);
    while (row && count < 63) {
        check(db_next(db, &row, &err), &err);
        if (row)
            ids[count++] = ids[63];
    }
    db_end(db);
    for (size_t i = 0; i < count; i++) {
        struct err gone = {0}; /* it may have ended by itself */
        (void)snprintf(sql, sizeof(sql), "KILL %" PRIu64, ids[i]);
        (void)!db_run_text(db, sv_of(sql), &gone);
    }
}
