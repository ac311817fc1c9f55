/* SPDX-License-Identifier: MIT */
#include "common/store/db_conn.h"

#include "common/store/db.h"

/* A transaction is opened and ended by autocommit, not by BEGIN and COMMIT: a deadlock ends the
 * transaction, and of statements that travel together those behind it would each be committed
 * alone. With autocommit off they are rolled back with the rest. Turning it on again commits, and
 * fails as a COMMIT does. */
static enum err_code end_txn(struct db *db, struct err *err)
{
    db_end(db); /* a selection that a failure left open */
    return db_exec(db, DB_END_TXN, DB_NO_ARGS, NULL, err);
}

void db_begin(struct db *db)
{
    db->has_written = false;
    db->txn = DB_TXN_OWED;
}

enum err_code db_open_owed(struct db *db, struct err *err)
{
    if (db->txn != DB_TXN_OWED)
        return ERR_OK;
    db->txn = DB_TXN_OPEN;
    return db_exec(db, DB_BEGIN_TXN, DB_NO_ARGS, NULL, err);
}

bool db_has_written(const struct db *db)
{
    return db->has_written;
}

enum err_code db_commit(struct db *db, struct err *err)
{
    if (db->txn == DB_TXN_OPEN) {
        enum err_code rc = end_txn(db, err);
        if (rc)
            return rc;
    }
    db->txn = DB_TXN_NONE;
    return ERR_OK;
}

void db_rollback(struct db *db)
{
    enum db_trouble trouble = db->trouble;
    enum db_txn_state was = db->txn;
    struct err ignored = {0};
    db->txn = DB_TXN_NONE;
    if (!db->lost && was != DB_TXN_OWED && db_run_text(db, SV("ROLLBACK"), &ignored) != ERR_OK)
        db->lost = true;
    if (!db->lost && was == DB_TXN_OPEN && end_txn(db, &ignored) != ERR_OK)
        db->lost = true;
    db->trouble = trouble;
}
