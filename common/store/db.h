/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_DB_H
#define COMMON_STORE_DB_H

/* db: one connection to MySQL or MariaDB and its prepared statements (the table db_stmt.def).
 * A statement is prepared when it is first used, and its counts are compared with the table;
 * db_prepare_all() does that for all of them, so that a misspelt column stops a start, not a
 * request. It never reconnects by itself: after db_trouble() == DB_LOST it can only be freed.
 *
 * Threads: owner. Memory: the arguments of a call are borrowed for it; rows of a selection are
 * held by the client until db_end() or the last db_next().
 * Errors: ERR_DB_AWAY when the connection is lost, or of no use: the server has become read-only,
 * or has ended a statement at its limit of time; ERR_TIMEOUT for the latter in a search;
 * ERR_DUPLICATE, ERR_DB. */

#include "common/store/db_value.h"
#include "common/store/store.h"

struct db;

enum db_stmt_id {
#define DB_STMT(name, params, columns, text) DB_##name,
#include "common/store/db_stmt.def"
#undef DB_STMT
    DB_STMT_COUNT
};

/* ---- the connection ------------------------------------------------------------------------ */

MUST_USE enum err_code db_open(const struct store_config *cfg, struct db **ret_db, struct err *err);
void db_free(struct db *db);
DEFINE_AUTO(struct db *, db_free)
void db_thread_end(void); /* what the client library keeps per thread */

enum db_trouble {
    DB_FINE,
    DB_LOST,  /* the connection is gone */
    DB_AGAIN, /* a deadlock or a lock wait timeout: the whole transaction may be tried again */
};
enum db_trouble db_trouble(const struct db *db); /* of the last statement */
bool db_is_lost(const struct db *db);            /* of any statement so far */
/* Lost because the server takes no writes: it may go on answering reads that are out of date. */
bool db_is_read_only(const struct db *db);
int64_t db_opened_ms(const struct db *db); /* clock_mono_ms() */
/* As if the connection had been lost now; for failure points. */
enum err_code db_lose(struct db *db, const char *what, struct err *err);

/* But for those that this account may not use: they are of other programs (account.def). */
MUST_USE enum err_code db_prepare_all(struct db *db, struct err *err);
/* The transaction is opened with the first statement: it costs no round trip of its own. */
void db_begin(struct db *db);
MUST_USE enum err_code db_commit(struct db *db, struct err *err);
bool db_has_written(const struct db *db); /* some row was written since db_begin */
void db_rollback(struct db *db);          /* a failure only marks the connection as lost */
/* One statement without parameters; for migrations and for the session's settings only. */
MUST_USE enum err_code db_run_text(struct db *db, struct sv sql, struct err *err);

/* ---- statements ------------------------------------------------------------------------------ */

/* ret_rows (may be NULL): rows that the WHERE found, also if nothing in them changed. */
MUST_USE enum err_code db_exec(struct db *db, enum db_stmt_id id, struct db_args args,
                               uint64_t *ret_rows, struct err *err);
struct db_call {
    enum db_stmt_id id;
    struct db_args args;
    uint64_t insert_id; /* written: as db_insert_id() */
    uint64_t rows;      /* written: as by db_exec() */
};
/* Writes of one transaction (after db_begin) in one round trip where the client library can do
 * that. Told is the first failure; what stands behind it was tried as well: the transaction must
 * be rolled back then. */
MUST_USE enum err_code db_exec_all(struct db *db, struct db_call *calls, size_t count,
                                   struct err *err);
/* AUTO_INCREMENT of the first row (the others follow in steps of db_auto_step), or the value of
 * LAST_INSERT_ID(x), of the last db_exec. */
uint64_t db_insert_id(const struct db *db);
uint64_t db_auto_step(const struct db *db);

/* One selection at a time: after db_select call db_next until it says false (or fails), or db_end.
 * What the columns point to must stay until then. */
MUST_USE enum err_code db_select(struct db *db, enum db_stmt_id id, struct db_args args,
                                 struct db_cols cols, struct err *err);
/* As db_select, for the one builder of SQL: prepared for this use only. ERR_TIMEOUT: the search
 * costs more time than a statement may take; the connection stays good. */
MUST_USE enum err_code db_select_text(struct db *db, struct sv sql, struct db_args args,
                                      struct db_cols cols, struct err *err);
MUST_USE enum err_code db_next(struct db *db, bool *ret_row, struct err *err);
void db_end(struct db *db);
/* At most one row. */
MUST_USE enum err_code db_one(struct db *db, enum db_stmt_id id, struct db_args args,
                              struct db_cols cols, bool *ret_found, struct err *err);

#endif
