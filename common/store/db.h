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
 * Errors: ERR_DB_AWAY when the connection is lost, ERR_DUPLICATE, ERR_DB. */

#include "common/base/uuid.h"
#include "common/store/store.h"

struct db;

enum db_stmt_id {
#define DB_STMT(name, params, columns, text) DB_##name,
#include "common/store/db_stmt.def"
#undef DB_STMT
    DB_STMT_COUNT
};

#define DB_PARAMS_MAX 272
#define DB_COLUMNS_MAX 40

/* ---- arguments --------------------------------------------------------------------------- */

struct db_arg {
    enum {
        DB_ARG_NULL,
        DB_ARG_UNSIGNED,
        DB_ARG_SIGNED,
        DB_ARG_DOUBLE,
        DB_ARG_TEXT,
        DB_ARG_BYTES
    } type;
    union {
        uint64_t u;
        int64_t i;
        double d;
    };
    const void *ptr;
    size_t len;
};

struct db_args {
    const struct db_arg *items;
    size_t count;
};
#define DB_ARGS(...)                                                                               \
    ((struct db_args){(const struct db_arg[]){__VA_ARGS__},                                        \
                      ARRAY_LEN(((const struct db_arg[]){__VA_ARGS__}))})
#define DB_NO_ARGS ((struct db_args){NULL, 0})

static inline struct db_arg db_null(void)
{
    return (struct db_arg){.type = DB_ARG_NULL};
}

static inline struct db_arg db_u64(uint64_t value)
{
    return (struct db_arg){.type = DB_ARG_UNSIGNED, .u = value};
}

static inline struct db_arg db_i64(int64_t value)
{
    return (struct db_arg){.type = DB_ARG_SIGNED, .i = value};
}

static inline struct db_arg db_double(double value)
{
    return (struct db_arg){.type = DB_ARG_DOUBLE, .d = value};
}

static inline struct db_arg db_sv(struct sv text)
{
    return (struct db_arg){.type = DB_ARG_TEXT, .ptr = text.ptr, .len = text.len};
}

static inline struct db_arg db_text(const char *text) /* NULL is SQL's NULL */
{
    return text ? db_sv(sv_of(text)) : db_null();
}

static inline struct db_arg db_text_or_null(const char *text) /* "" is SQL's NULL as well */
{
    return text && *text ? db_sv(sv_of(text)) : db_null();
}

static inline struct db_arg db_bytes(const void *ptr, size_t len)
{
    return (struct db_arg){.type = DB_ARG_BYTES, .ptr = ptr, .len = len};
}

static inline struct db_arg db_uuid(const struct uuid *id) /* NULL is SQL's NULL */
{
    return id ? db_bytes(id->bytes, sizeof(id->bytes)) : db_null();
}

/* ---- columns: where the values of a row go ------------------------------------------------- */

/* SQL's NULL becomes 0, "" or a NULL pointer; *has (may be NULL) tells it apart. */
struct db_col {
    enum {
        DB_COL_BOOL,
        DB_COL_U32,
        DB_COL_U64,
        DB_COL_I32,
        DB_COL_I64,
        DB_COL_TEXT,
        DB_COL_BYTES,
        DB_COL_HEAP
    } type;
    void *to;
    size_t size; /* of the buffer behind to */
    bool *has;
};

struct db_cols {
    const struct db_col *items;
    size_t count;
};
#define DB_COLS(...)                                                                               \
    ((struct db_cols){(const struct db_col[]){__VA_ARGS__},                                        \
                      ARRAY_LEN(((const struct db_col[]){__VA_ARGS__}))})

#define COL_BOOL(ptr) ((struct db_col){DB_COL_BOOL, (ptr), sizeof(bool), NULL})
#define COL_U32(ptr) ((struct db_col){DB_COL_U32, (ptr), sizeof(uint32_t), NULL})
#define COL_U64(ptr) ((struct db_col){DB_COL_U64, (ptr), sizeof(uint64_t), NULL})
#define COL_I32(ptr) ((struct db_col){DB_COL_I32, (ptr), sizeof(int32_t), NULL})
#define COL_I64(ptr) ((struct db_col){DB_COL_I64, (ptr), sizeof(int64_t), NULL})
#define COL_I32_OR(ptr, has) ((struct db_col){DB_COL_I32, (ptr), sizeof(int32_t), (has)})
/* A char array. */
#define COL_TEXT(array) ((struct db_col){DB_COL_TEXT, (array), sizeof(array), NULL})
#define COL_TEXT_OR(array, has) ((struct db_col){DB_COL_TEXT, (array), sizeof(array), (has)})
#define COL_UUID(ptr) ((struct db_col){DB_COL_BYTES, (ptr)->bytes, sizeof((ptr)->bytes), NULL})
#define COL_UUID_OR(ptr, has)                                                                      \
    ((struct db_col){DB_COL_BYTES, (ptr)->bytes, sizeof((ptr)->bytes), (has)})
/* Exactly sizeof(array) bytes. */
#define COL_BYTES(array) ((struct db_col){DB_COL_BYTES, (array), sizeof(array), NULL})
/* A char * that is made for each row and belongs to the caller (freed if it held something). */
#define COL_HEAP(ptr) ((struct db_col){DB_COL_HEAP, (ptr), sizeof(char *), NULL})

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
/* As if the connection had been lost now; for failure points. */
enum err_code db_lose(struct db *db, const char *what, struct err *err);

MUST_USE enum err_code db_prepare_all(struct db *db, struct err *err);
MUST_USE enum err_code db_begin(struct db *db, struct err *err);
MUST_USE enum err_code db_commit(struct db *db, struct err *err);
void db_rollback(struct db *db); /* a failure only marks the connection as lost */
/* One statement without parameters; for migrations and for the session's settings only. */
MUST_USE enum err_code db_run_text(struct db *db, struct sv sql, struct err *err);

/* ---- statements ------------------------------------------------------------------------------ */

/* ret_rows (may be NULL): rows that the WHERE found, also if nothing in them changed. */
MUST_USE enum err_code db_exec(struct db *db, enum db_stmt_id id, struct db_args args,
                               uint64_t *ret_rows, struct err *err);
/* AUTO_INCREMENT of the first row (the others follow in steps of db_auto_step), or the value of
 * LAST_INSERT_ID(x), of the last db_exec. */
uint64_t db_insert_id(const struct db *db);
uint64_t db_auto_step(const struct db *db);

/* One selection at a time: after db_select call db_next until it says false (or fails), or db_end.
 * What the columns point to must stay until then. */
MUST_USE enum err_code db_select(struct db *db, enum db_stmt_id id, struct db_args args,
                                 struct db_cols cols, struct err *err);
/* As db_select, for the one builder of SQL: prepared for this use only. */
MUST_USE enum err_code db_select_text(struct db *db, struct sv sql, struct db_args args,
                                      struct db_cols cols, struct err *err);
MUST_USE enum err_code db_next(struct db *db, bool *ret_row, struct err *err);
void db_end(struct db *db);
/* At most one row. */
MUST_USE enum err_code db_one(struct db *db, enum db_stmt_id id, struct db_args args,
                              struct db_cols cols, bool *ret_found, struct err *err);

#endif
