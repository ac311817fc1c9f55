/* SPDX-License-Identifier: MIT */
#include "common/store/audit_store.h"

#include "common/model/job_state.h"
#include "common/store/pool.h"
#include "common/store/reading.h"

struct check {
    enum db_stmt_id stmt;
    const char *invariant;
    const char *rule;
};

static const struct check checks[] = {
#define AUDIT_CHECK(stmt, invariant, rule) {DB_##stmt, invariant, rule},
#include "common/store/audit.def"
#undef AUDIT_CHECK
};

struct audit {
    int64_t lease_us;
    struct rows rows;
};

static enum err_code run_check(struct txn *txn, struct audit *audit, const struct check *check,
                               struct err *err)
{
    struct audit_breach breach = {.invariant = check->invariant, .rule = check->rule};
    struct reading reading = {
        .stmt = check->stmt,
        .args = check->stmt == DB_AUDIT_OWNER_GONE
                    ? DB_ARGS(db_i64(6 * audit->lease_us), db_u64(AUDIT_CHECK_MAX))
                    : DB_ARGS(db_u64(AUDIT_CHECK_MAX)),
        .cols = DB_COLS(COL_TEXT(breach.subject), COL_TEXT(breach.detail)),
        .row = &breach,
        .rows = &audit->rows};
    return read_rows(txn->db, &reading, err);
}

/* A move to the state it is in is a note (a request to cancel, a message sent again). */
static bool is_legal(const char *from, const char *to)
{
    enum job_state a;
    enum job_state b;
    return job_state_parse(sv_of(from), &a) && job_state_parse(sv_of(to), &b) &&
           (job_state_can(a, b) || (a == b && !job_state_ends(a)));
}

/* Every pair of states that the history knows: the table of moves is ours, not the database's. */
static enum err_code check_moves(struct txn *txn, struct audit *audit, struct err *err)
{
    struct audit_breach breach = {.invariant = "I4", .rule = "only legal moves"};
    char from[JOB_STATE_TEXT_MAX];
    char to[JOB_STATE_TEXT_MAX];
    bool more = true;
    enum err_code rc =
        db_select(txn->db, DB_AUDIT_MOVES, DB_NO_ARGS,
                  DB_COLS(COL_TEXT(from), COL_TEXT(to), COL_TEXT(breach.subject)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc || !more || is_legal(from, to))
            continue;
        (void)snprintf(breach.detail, sizeof(breach.detail), "%s to %s", from, to);
        rc = rows_add(&audit->rows, &breach, err);
    }
    db_end(txn->db);
    return rc;
}

static enum err_code run_checks(struct txn *txn, struct audit *audit, struct err *err)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(checks) && rc == ERR_OK; i++)
        rc = run_check(txn, audit, &checks[i], err);
    return rc ? rc : check_moves(txn, audit, err);
}

/* The store's own transactions read what is committed at each statement; this one must not. */
static enum err_code audit_all(struct txn *txn, void *ctx, struct err *err)
{
    struct audit *audit = ctx;
    rows_clear(&audit->rows);
    enum err_code rc =
        db_run_text(txn->db, SV("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"), err);
    if (rc == ERR_OK)
        rc = db_run_text(txn->db, SV("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"), err);
    if (rc == ERR_OK)
        rc = run_checks(txn, audit, err);
    db_rollback(txn->db);
    return rc;
}

enum err_code audit_store_run(struct store *store, int64_t lease_ms,
                              struct audit_breach **ret_items, size_t *ret_count, struct err *err)
{
    struct audit audit = {.lease_us = lease_ms * 1000, .rows = ROWS_OF(struct audit_breach)};
    enum err_code rc = store_once(store, audit_all, &audit, err);
    if (rc == ERR_OK) {
        *ret_count = audit.rows.count;
        *ret_items = rows_take(&audit.rows);
    }
    rows_done(&audit.rows);
    return rc;
}
