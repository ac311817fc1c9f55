/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_DB_CONN_H
#define COMMON_STORE_DB_CONN_H

/* db_conn: the body of struct db; for db.c (the connection) and db_stmt.c (its statements). */

/* First: its macros use words that banned.h takes away. */
#include <mysql.h>

#include "common/store/db.h"

/* MySQL 8 took my_bool away; MariaDB's connector kept it. */
#if defined(MARIADB_BASE_VERSION) || defined(MARIADB_PACKAGE_VERSION)
#define DB_IS_MARIADB 1
typedef my_bool db_flag;
#else
#define DB_IS_MARIADB 0
typedef bool db_flag;
#endif

struct db_slot { /* one column of the current row */
    union {
        uint64_t u;
        int64_t i;
    };
    unsigned long length;
    db_flag is_null;
    db_flag cut;
};

struct db {
    MYSQL *conn;
    enum db_trouble trouble;
    bool lost;
    bool has_written; /* since db_begin */
    uint64_t insert_id;
    uint64_t auto_step;
    MYSQL_STMT *stmts[DB_STMT_COUNT]; /* NULL until first used */
    /* The selection under way. */
    MYSQL_STMT *selected; /* NULL: none */
    MYSQL_STMT *own;      /* the same, if it is to be closed at the end */
    struct db_col cols[DB_COLUMNS_MAX];
    size_t col_count;
    struct db_slot slots[DB_COLUMNS_MAX];
    MYSQL_BIND columns[DB_COLUMNS_MAX];
    MYSQL_BIND params[DB_PARAMS_MAX];
};

/* Sets err and the trouble from the server's or client's error number. what: for people. */
enum err_code db_failed(struct db *db, const char *what, unsigned number, const char *text,
                        struct err *err);

#endif
