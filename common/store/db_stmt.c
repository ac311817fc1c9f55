/* SPDX-License-Identifier: MIT */
#include "common/store/db_conn.h"

#include "common/store/db.h"

#include <assert.h>

static const struct {
    const char *name;
    const char *text;
    unsigned params;
    unsigned columns;
} stmt_table[DB_STMT_COUNT] = {
#define DB_STMT(name, params, columns, text) [DB_##name] = {#name, text, params, columns},
#include "common/store/db_stmt.def"
#undef DB_STMT
};

enum err_code db_stmt_failed(struct db *db, const char *name, MYSQL_STMT *stmt, struct err *err)
{
    char what[60];
    (void)snprintf(what, sizeof(what), "statement %s", name);
    return db_failed(db, what, mysql_stmt_errno(stmt), mysql_stmt_error(stmt), err);
}

static enum err_code prepare(struct db *db, const char *name, struct sv text, MYSQL_STMT **ret_stmt,
                             struct err *err)
{
    MYSQL_STMT *stmt = mysql_stmt_init(db->conn);
    if (!stmt)
        return err_set(err, ERR_NOMEM, "no memory for statement %s", name);
    if (mysql_stmt_prepare(stmt, text.ptr, (unsigned long)text.len) != 0) {
        enum err_code rc = db_stmt_failed(db, name, stmt, err);
        (void)mysql_stmt_close(stmt);
        return rc;
    }
    *ret_stmt = stmt;
    return ERR_OK;
}

enum err_code db_prepare(struct db *db, enum db_stmt_id id, struct err *err)
{
    MYSQL_STMT *stmt = NULL;
    const char *name = stmt_table[id].name;
    db->trouble = DB_FINE;
    if (db->stmts[id])
        return ERR_OK;
    enum err_code rc = prepare(db, name, sv_of(stmt_table[id].text), &stmt, err);
    if (rc)
        return rc;
    unsigned long params = mysql_stmt_param_count(stmt);
    unsigned columns = mysql_stmt_field_count(stmt);
    if (params != stmt_table[id].params || columns != stmt_table[id].columns) {
        (void)mysql_stmt_close(stmt);
        return err_set(err, ERR_DB,
                       "statement %s has %lu parameters and %u columns, the table "
                       "says %u and %u",
                       name, params, columns, stmt_table[id].params, stmt_table[id].columns);
    }
    db->stmts[id] = stmt;
    return ERR_OK;
}

const char *db_stmt_name(enum db_stmt_id id)
{
    return stmt_table[id].name;
}

enum err_code db_prepare_all(struct db *db, struct err *err)
{
    for (int i = 0; i < DB_STMT_COUNT; i++) {
        struct err refused = {0};
        enum err_code rc = db_prepare(db, (enum db_stmt_id)i, &refused);
        if (rc && !(rc == ERR_DB && db->denied)) { /* denied: it is another program's */
            *err = refused;
            return rc;
        }
    }
    return ERR_OK;
}

/* MYSQL_BIND has no const for what is only read. */
static void *unconst(const void *ptr)
{
    return (void *)(uintptr_t)ptr;
}

static void bind_arg(MYSQL_BIND *bind, const struct db_arg *arg)
{
    *bind = (MYSQL_BIND){0};
    switch (arg->type) {
    case DB_ARG_NULL:
        bind->buffer_type = MYSQL_TYPE_NULL;
        return;
    case DB_ARG_UNSIGNED:
    case DB_ARG_SIGNED:
        bind->buffer_type = MYSQL_TYPE_LONGLONG;
        bind->buffer = unconst(&arg->u);
        bind->is_unsigned = arg->type == DB_ARG_UNSIGNED;
        return;
    case DB_ARG_DOUBLE:
        bind->buffer_type = MYSQL_TYPE_DOUBLE;
        bind->buffer = unconst(&arg->d);
        return;
    case DB_ARG_TEXT:
    case DB_ARG_BYTES:
        bind->buffer_type = arg->type == DB_ARG_TEXT ? MYSQL_TYPE_STRING : MYSQL_TYPE_BLOB;
        bind->buffer = arg->ptr ? unconst(arg->ptr) : unconst("");
        bind->buffer_length = (unsigned long)arg->len;
        return;
    }
}

enum err_code db_bind(struct db *db, const char *name, MYSQL_STMT *stmt, struct db_args args,
                      struct err *err)
{
    assert(args.count == mysql_stmt_param_count(stmt) && args.count <= DB_PARAMS_MAX);
    assert(!db->selected);
    db->trouble = DB_FINE;
    for (size_t i = 0; i < args.count; i++)
        bind_arg(&db->params[i], &args.items[i]);
    if (args.count > 0 && mysql_stmt_bind_param(stmt, db->params) != 0)
        return db_stmt_failed(db, name, stmt, err);
    return ERR_OK;
}

static enum err_code run(struct db *db, const char *name, MYSQL_STMT *stmt, struct db_args args,
                         struct err *err)
{
    enum err_code rc = db_bind(db, name, stmt, args, err);
    if (rc)
        return rc;
#if DB_CAN_PIPE
    if (db->txn == DB_TXN_OWED) {
        rc = db_send(db, stmt, name, err);
        return rc ? rc : db_receive(db, stmt, name, err);
    }
#endif
    rc = db_open_owed(db, err);
    if (rc == ERR_OK && mysql_stmt_execute(stmt) != 0)
        rc = db_stmt_failed(db, name, stmt, err);
    return rc;
}

uint64_t db_note_written(struct db *db, MYSQL_STMT *stmt)
{
    uint64_t rows = mysql_stmt_affected_rows(stmt);
    db->insert_id = mysql_stmt_insert_id(stmt);
    db->has_written = db->has_written || (rows > 0 && rows != UINT64_MAX);
    return rows;
}

enum err_code db_exec(struct db *db, enum db_stmt_id id, struct db_args args, uint64_t *ret_rows,
                      struct err *err)
{
    enum err_code rc = db_prepare(db, id, err);
    if (rc)
        return rc;
    rc = run(db, stmt_table[id].name, db->stmts[id], args, err);
    if (rc)
        return rc;
    uint64_t rows = db_note_written(db, db->stmts[id]);
    if (ret_rows)
        *ret_rows = rows;
    return ERR_OK;
}

/* ---- selections ------------------------------------------------------------------------------ */

static void bind_col(MYSQL_BIND *bind, struct db_slot *slot, const struct db_col *col)
{
    *bind = (MYSQL_BIND){.length = &slot->length, .is_null = &slot->is_null, .error = &slot->cut};
    *slot = (struct db_slot){0};
    switch (col->type) {
    case DB_COL_BOOL:
    case DB_COL_U32:
    case DB_COL_U64:
    case DB_COL_I32:
    case DB_COL_I64:
        bind->buffer_type = MYSQL_TYPE_LONGLONG;
        bind->buffer = &slot->u;
        bind->is_unsigned = col->type == DB_COL_U32 || col->type == DB_COL_U64;
        return;
    case DB_COL_TEXT:
        bind->buffer_type = MYSQL_TYPE_STRING;
        bind->buffer = col->to;
        bind->buffer_length = (unsigned long)col->size - 1;
        return;
    case DB_COL_BYTES:
        bind->buffer_type = MYSQL_TYPE_BLOB;
        bind->buffer = col->to;
        bind->buffer_length = (unsigned long)col->size;
        return;
    case DB_COL_HEAP: /* its length is known after the fetch; then it is fetched alone */
        bind->buffer_type = MYSQL_TYPE_STRING;
        return;
    }
}

static enum err_code begin_rows(struct db *db, const char *name, MYSQL_STMT *stmt,
                                struct db_cols cols, struct err *err)
{
    assert(cols.count == mysql_stmt_field_count(stmt) && cols.count <= DB_COLUMNS_MAX);
    for (size_t i = 0; i < cols.count; i++)
        bind_col(&db->columns[i], &db->slots[i], &cols.items[i]);
    if (mysql_stmt_bind_result(stmt, db->columns) != 0 || mysql_stmt_store_result(stmt) != 0) {
        enum err_code rc = db_stmt_failed(db, name, stmt, err);
        (void)mysql_stmt_free_result(stmt);
        return rc;
    }
    memcpy(db->cols, cols.items, cols.count * sizeof(*cols.items));
    db->col_count = cols.count;
    db->selected = stmt;
    return ERR_OK;
}

enum err_code db_select(struct db *db, enum db_stmt_id id, struct db_args args, struct db_cols cols,
                        struct err *err)
{
    enum err_code rc = db_prepare(db, id, err);
    if (rc)
        return rc;
    rc = run(db, stmt_table[id].name, db->stmts[id], args, err);
    if (rc)
        return rc;
    return begin_rows(db, stmt_table[id].name, db->stmts[id], cols, err);
}

enum err_code db_select_text(struct db *db, struct sv sql, struct db_args args, struct db_cols cols,
                             struct err *err)
{
    MYSQL_STMT *stmt = NULL;
    db->trouble = DB_FINE;
    enum err_code rc = prepare(db, "of a search", sql, &stmt, err);
    if (rc)
        return rc;
    db->searches = true;
    rc = run(db, "of a search", stmt, args, err);
    if (rc == ERR_OK)
        rc = begin_rows(db, "of a search", stmt, cols, err);
    db->searches = false;
    if (rc) {
        (void)mysql_stmt_close(stmt);
        return rc;
    }
    db->own = stmt;
    return ERR_OK;
}

static enum err_code fetch_heap(struct db *db, unsigned column, struct err *err)
{
    struct db_slot *slot = &db->slots[column];
    char **to = db->cols[column].to;
    text_free(to);
    if (slot->is_null)
        return ERR_OK;
    unsigned long length = slot->length;
    TEXT_AUTO char *text = calloc(1, length + 1);
    if (!text)
        return err_set(err, ERR_NOMEM, "no memory for %lu bytes of column %u", length, column);
    MYSQL_BIND bind = {.buffer_type = MYSQL_TYPE_STRING,
                       .buffer = text,
                       .buffer_length = length,
                       .length = &slot->length,
                       .is_null = &slot->is_null,
                       .error = &slot->cut};
    if (length > 0 && mysql_stmt_fetch_column(db->selected, &bind, column, 0) != 0)
        return db_stmt_failed(db, "of a long column", db->selected, err);
    *to = TAKE(text);
    return ERR_OK;
}

static enum err_code store_number(const struct db_slot *slot, const struct db_col *col)
{
    uint64_t u = slot->is_null ? 0 : slot->u;
    int64_t i = slot->is_null ? 0 : slot->i;
    if (col->type == DB_COL_BOOL)
        *(bool *)col->to = u != 0;
    else if (col->type == DB_COL_U64)
        *(uint64_t *)col->to = u;
    else if (col->type == DB_COL_I64)
        *(int64_t *)col->to = i;
    else if (col->type == DB_COL_U32 && u <= UINT32_MAX)
        *(uint32_t *)col->to = (uint32_t)u;
    else if (col->type == DB_COL_I32 && i >= INT32_MIN && i <= INT32_MAX)
        *(int32_t *)col->to = (int32_t)i;
    else
        return ERR_DB;
    return ERR_OK;
}

static enum err_code store_value(struct db *db, unsigned column, struct err *err)
{
    const struct db_col *col = &db->cols[column];
    const struct db_slot *slot = &db->slots[column];
    enum err_code rc = ERR_OK;
    if (col->has)
        *col->has = !slot->is_null;
    if (col->type == DB_COL_HEAP)
        return fetch_heap(db, column, err);
    if (col->type == DB_COL_TEXT) {
        size_t length = slot->is_null ? 0 : slot->length;
        rc = length < col->size ? ERR_OK : ERR_DB;
        ((char *)col->to)[rc ? 0 : length] = 0;
    } else if (col->type == DB_COL_BYTES) {
        if (slot->is_null)
            memset(col->to, 0, col->size);
        else if (slot->length != col->size)
            rc = ERR_DB;
    } else {
        rc = store_number(slot, col);
    }
    return rc ? err_set(err, rc, "column %u (%lu bytes) is larger than allowed", column + 1,
                        slot->length)
              : ERR_OK;
}

enum err_code db_next(struct db *db, bool *ret_row, struct err *err)
{
    assert(db->selected);
    int status = mysql_stmt_fetch(db->selected);
    if (status == MYSQL_NO_DATA) {
        db_end(db);
        *ret_row = false;
        return ERR_OK;
    }
    if (status != 0 && status != MYSQL_DATA_TRUNCATED) {
        enum err_code rc = db_stmt_failed(db, "fetch", db->selected, err);
        db_end(db);
        return rc;
    }
    for (unsigned i = 0; i < db->col_count; i++) {
        enum err_code rc = store_value(db, i, err);
        if (rc) {
            db_end(db);
            return rc;
        }
    }
    *ret_row = true;
    return ERR_OK;
}

void db_end(struct db *db)
{
    if (db->selected)
        (void)mysql_stmt_free_result(db->selected);
    if (db->own)
        (void)mysql_stmt_close(db->own);
    db->selected = NULL;
    db->own = NULL;
}

enum err_code db_one(struct db *db, enum db_stmt_id id, struct db_args args, struct db_cols cols,
                     bool *ret_found, struct err *err)
{
    enum err_code rc = db_select(db, id, args, cols, err);
    if (rc)
        return rc;
    bool found = false;
    rc = db_next(db, &found, err);
    if (rc)
        return rc;
    db_end(db);
    *ret_found = found;
    return ERR_OK;
}
