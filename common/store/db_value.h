/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_DB_VALUE_H
#define COMMON_STORE_DB_VALUE_H

/* db_value: what goes into a statement (arguments) and where the values of a row go (columns).
 * Threads: any. Memory: all is borrowed. */

#include "common/base/err.h"
#include "common/base/sv.h"
#include "common/base/uuid.h"

#define DB_PARAMS_MAX 272
#define DB_COLUMNS_MAX 48

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

#endif
