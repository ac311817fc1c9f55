/* SPDX-License-Identifier: MIT */
#include "common/store/site_store.h"

#include "common/store/db.h"
#include "common/store/pool.h"
#include "common/store/reading.h"

enum err_code site_store_look(const struct store_config *cfg, struct site_look *ret_look,
                              struct err *err)
{
    AUTO(db_free) struct db *db = NULL;
    struct site_look look = {0};
    struct err missing = {0};
    uint32_t read_only = 0;
    bool found = false;
    enum err_code rc = db_open(cfg, &db, err);
    if (rc == ERR_OK)
        rc = db_one(db, DB_SITE_LOOK, DB_NO_ARGS,
                    DB_COLS(COL_TEXT(look.version), COL_I64(&look.now_us), COL_U32(&look.flush),
                            COL_U32(&read_only)),
                    &found, err);
    if (rc)
        return rc;
    rc = db_one(db, DB_SCHEMA_NEWEST, DB_NO_ARGS, DB_COLS(COL_U32(&look.schema)), &look.has_schema,
                &missing);
    if (rc == ERR_DB) /* no such table: nothing was ever applied */
        rc = ERR_OK;
    if (rc) {
        *err = missing;
        return rc;
    }
    look.read_only = read_only != 0;
    *ret_look = look;
    return ERR_OK;
}

struct outbox_look {
    uint64_t rows;
    int64_t age_us;
};

static enum err_code look_at_outbox(struct txn *txn, void *ctx, struct err *err)
{
    struct outbox_look *look = ctx;
    bool found = false;
    return db_one(txn->db, DB_SITE_OUTBOX, DB_NO_ARGS,
                  DB_COLS(COL_U64(&look->rows), COL_I64(&look->age_us)), &found, err);
}

enum err_code site_store_outbox(struct store *store, uint64_t *ret_rows, int64_t *ret_age_us,
                                struct err *err)
{
    struct outbox_look look = {0};
    enum err_code rc = store_once(store, look_at_outbox, &look, err);
    if (rc == ERR_OK) {
        *ret_rows = look.rows;
        *ret_age_us = look.age_us;
    }
    return rc;
}

enum err_code site_store_outputs(struct store *store, struct site_output **ret_rows,
                                 size_t *ret_count, struct err *err)
{
    struct site_output row = {0};
    struct rows rows = ROWS_OF(struct site_output);
    struct reading reading = {.stmt = DB_JOB_NEWEST_KEPT,
                              .args = DB_NO_ARGS,
                              .cols = DB_COLS(COL_TEXT(row.tenant), COL_UUID(&row.job)),
                              .row = &row,
                              .rows = &rows};
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    *ret_count = rows.count;
    *ret_rows = rows_take(&rows);
    return ERR_OK;
}

struct secret {
    const char *name;
    uint8_t bytes[SITE_SECRET_SIZE];
    bool found;
};

static enum err_code read_secret(struct txn *txn, void *ctx, struct err *err)
{
    struct secret *secret = ctx;
    return db_one(txn->db, DB_SITE_SECRET, DB_ARGS(db_text(secret->name)),
                  DB_COLS(COL_BYTES(secret->bytes)), &secret->found, err);
}

enum err_code site_store_secret(struct store *store, const char *name,
                                uint8_t ret_secret[SITE_SECRET_SIZE], struct err *err)
{
    struct secret secret = {.name = name};
    enum err_code rc = store_once(store, read_secret, &secret, err);
    if (rc == ERR_OK && !secret.found)
        rc = err_set(err, ERR_NOT_FOUND, "the table site_secrets has no row '%s'", name);
    if (rc == ERR_OK)
        memcpy(ret_secret, secret.bytes, sizeof(secret.bytes));
    return rc;
}
