/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_TEST_DB_H
#define TESTS_SUPPORT_TEST_DB_H

/* test_db: a schema of its own, migrated, on the server that SLUICE_TEST_DB_* names. Every failure
 * ends the test program: nothing can be tested without it. Threads: owner. */

#include "common/store/store.h"

struct test_db {
    struct store_config cfg; /* of the schema; a test may open further stores with it */
    struct store *store;
    char schema[48];
};

void test_db_open(struct test_db *ret_db);
void test_db_close(struct test_db *db); /* drops the schema */
/* One statement on a connection of its own. */
void test_db_run(const struct test_db *db, const char *sql);
/* The first column of the first row, as a number; `sql` is a whole SELECT. */
uint64_t test_db_number(const struct test_db *db, const char *sql);
/* Cuts every other connection of this schema off, as an administrator would. */
void test_db_kill_connections(const struct test_db *db);

#endif
