/* SPDX-License-Identifier: MIT */
#include "common/store/recovery_store.h"

#include "common/store/job_row.h"

/* ---- writing, within the leader's transaction ------------------------------------------------ */

enum err_code recovery_test_keep(struct txn *txn, const struct uuid *id, struct err *err)
{
    enum err_code rc = db_exec(txn->db, DB_RECOVERY_TEST_ADD, DB_ARGS(db_uuid(id)), NULL, err);
    if (rc)
        return rc;
    return db_exec(txn->db, DB_RECOVERY_TEST_FORGET,
                   DB_ARGS(db_uuid(id), db_u64(RECOVERY_HISTORY_MAX), db_uuid(id)), NULL, err);
}

enum err_code recovery_drop(struct txn *txn, const struct uuid *id, bool *ret_gone, struct err *err)
{
    uint64_t rows = 0;
    enum err_code rc =
        db_exec(txn->db, DB_RECOVERY_DROP, DB_ARGS(db_uuid(id), db_uuid(id)), &rows, err);
    if (rc == ERR_OK && rows > 0)
        rc = db_exec(txn->db, DB_RECOVERY_TESTS_DROP, DB_ARGS(db_uuid(id)), NULL, err);
    *ret_gone = rows > 0;
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct look {
    const struct recovery *recovery;
    struct recovery_test *tests;
    size_t count;
};

static enum err_code read_tests(struct txn *txn, void *ctx, struct err *err)
{
    struct look *look = ctx;
    struct recovery_test test;
    bool more = true;
    look->count = 0;
    enum err_code rc =
        db_select(txn->db, DB_RECOVERY_TESTS,
                  DB_ARGS(db_uuid(&look->recovery->id), db_text(look->recovery->tenant),
                          db_u64(RECOVERY_HISTORY_MAX)),
                  DB_COLS(COL_U32(&test.number), COL_I64(&test.at_us), COL_TEXT(test.result),
                          COL_TEXT(test.detail)),
                  err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more && look->count < RECOVERY_HISTORY_MAX)
            look->tests[look->count++] = test;
    }
    db_end(txn->db);
    return rc;
}

enum err_code recovery_store_tests(struct store *store, const struct recovery *recovery,
                                   struct recovery_test *ret_tests, size_t *ret_count,
                                   struct err *err)
{
    struct look look = {.recovery = recovery, .tests = ret_tests};
    enum err_code rc = store_once(store, read_tests, &look, err);
    if (rc == ERR_OK)
        *ret_count = look.count;
    return rc;
}
