/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_DB_CONN_H
#define COMMON_STORE_DB_CONN_H

/* db_conn: the body of struct db; for db.c (the connection), db_stmt.c (its statements) and
 * db_txn.c (its transactions). */

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

/* A command may be sent before the answer to the one before it was read. */
#if DB_IS_MARIADB && MARIADB_PACKAGE_VERSION_ID >= 30300
#define DB_CAN_PIPE 1
#else
#define DB_CAN_PIPE 0
#endif

enum db_txn_state {
    DB_TXN_NONE,
    DB_TXN_OWED, /* it is opened together with its first statement */
    DB_TXN_OPEN,
};

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
    bool read_only; /* that is why */
    int64_t opened_ms;
    bool has_written; /* since db_begin */
    enum db_txn_state txn;
    bool denied;           /* the account may not do what the last statement does */
    bool searches;         /* the statement under way is of db_select_text */
    unsigned statement_ms; /* most that the server gives to one statement */
    bool unread_open;      /* the answer to its opening is still to be read */
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
enum err_code db_stmt_failed(struct db *db, const char *name, MYSQL_STMT *stmt, struct err *err);

/* db_stmt.c: what stands before and behind the execution of a statement. */
MUST_USE enum err_code db_prepare(struct db *db, enum db_stmt_id id, struct err *err);
MUST_USE enum err_code db_bind(struct db *db, const char *name, MYSQL_STMT *stmt,
                               struct db_args args, struct err *err);
uint64_t db_note_written(struct db *db, MYSQL_STMT *stmt); /* how many rows */
const char *db_stmt_name(enum db_stmt_id id);

/* Opens the transaction that db_begin() promised, if it is not open. */
MUST_USE enum err_code db_open_owed(struct db *db, struct err *err);

#if DB_CAN_PIPE
/* Sends a statement whose parameters are bound, behind the opening of the transaction if that is
 * owed. Every statement that was sent is received, in the same order, also behind one that failed;
 * unless the connection is lost: then none of the rest. */
MUST_USE enum err_code db_send(struct db *db, MYSQL_STMT *stmt, const char *name, struct err *err);
MUST_USE enum err_code db_receive(struct db *db, MYSQL_STMT *stmt, const char *name,
                                  struct err *err);
#endif

#endif
