/* SPDX-License-Identifier: MIT */
#include "common/store/named.h"

struct title {
    char text[ERR_TEXT_MAX];
};

static const char *title_of(const struct named *of, struct title *ret_title)
{
    (void)snprintf(ret_title->text, sizeof(ret_title->text), "%s %s%s%s", of->kind->noun, of->name,
                   of->edition ? ", version " : "", of->edition ? of->edition : "");
    return ret_title->text;
}

enum err_code named_missing(const struct named *of, struct err *err)
{
    struct title title;
    return err_set(err, ERR_NOT_FOUND, "there is no %s", title_of(of, &title));
}

enum err_code named_get(struct store *store, const struct named *of, struct db_cols cols,
                        struct err *err)
{
    const struct reading reading = {.stmt = of->kind->get, .args = named_key(of), .cols = cols};
    bool found = false;
    enum err_code rc = read_one(store, &reading, &found, err);
    return rc || found ? rc : named_missing(of, err);
}

struct exec {
    const struct named *of;
    enum db_stmt_id stmt;
    struct db_args args;
};

static enum err_code exec_once(struct txn *txn, void *ctx, struct err *err)
{
    const struct exec *exec = ctx;
    uint64_t rows = 0;
    enum err_code rc = db_exec(txn->db, exec->stmt, exec->args, &rows, err);
    return rc || rows > 0 ? rc : named_missing(exec->of, err);
}

enum err_code named_exec(struct store *store, const struct named *of, enum db_stmt_id stmt,
                         struct db_args args, struct err *err)
{
    struct exec exec = {of, stmt, args};
    return store_once(store, exec_once, &exec, err);
}

/* ---- changes -------------------------------------------------------------------------------- */

/* version 0: there is no row. */
static enum err_code lock(struct txn *txn, const struct named *of, uint32_t *ret_version,
                          struct err *err)
{
    bool found = false;
    *ret_version = 0;
    return db_one(txn->db, of->kind->lock, named_key(of), DB_COLS(COL_U32(ret_version)), &found,
                  err);
}

static enum err_code check_expected(const struct named_change *change, uint32_t version,
                                    struct err *err)
{
    struct title buffer;
    const char *title = title_of(&change->of, &buffer);
    uint32_t expect = change->expect;
    if (expect == EXPECT_ANY || expect == version)
        return ERR_OK;
    if (expect == EXPECT_NONE)
        return version ? err_set(err, ERR_PRECONDITION, "%s exists already", title) : ERR_OK;
    if (version == 0)
        return err_set(err, ERR_PRECONDITION, "%s does not exist", title);
    if (expect == EXPECT_SOME)
        return ERR_OK;
    return err_set(err, ERR_PRECONDITION,
                   "%s is at %s %u, not %u: read it again before you change it", title,
                   change->of.kind->version, version, expect);
}

/* Whether an earlier try, whose answer was lost, wrote the version that is there. */
static enum err_code look_same(struct txn *txn, struct named_change *change, uint32_t version,
                               struct err *err)
{
    bool same = false;
    change->done = false;
    if (!txn->commit_unknown || version == 0 || version != change->version)
        return ERR_OK;
    return db_one(txn->db, change->of.kind->same, change->values, DB_COLS(COL_BOOL(&same)),
                  &change->done, err);
}

enum err_code named_look(struct txn *txn, struct named_change *change, struct err *err)
{
    uint32_t version = 0;
    enum err_code rc = lock(txn, &change->of, &version, err);
    if (rc == ERR_OK)
        rc = look_same(txn, change, version, err);
    if (rc || change->done)
        return rc;
    rc = check_expected(change, version, err);
    if (rc)
        return rc;
    change->made = version == 0;
    change->version = version + 1;
    return ERR_OK;
}

enum err_code named_write(struct txn *txn, enum db_stmt_id stmt, struct db_args args,
                          struct err *err)
{
    struct err failed = {0};
    enum err_code rc = db_exec(txn->db, stmt, args, NULL, &failed);
    if (rc == ERR_DUPLICATE) /* somebody else made it since we looked */
        txn->again = true;
    if (rc)
        *err = failed;
    return rc;
}

static enum err_code put(struct txn *txn, void *ctx, struct err *err)
{
    struct named_change *change = ctx;
    const struct named_kind *kind = change->of.kind;
    enum err_code rc = named_look(txn, change, err);
    if (rc || change->done)
        return rc;
    return named_write(txn, change->made ? kind->insert : kind->update, change->values, err);
}

enum err_code named_put(struct store *store, struct named_change *change, struct err *err)
{
    return store_txn(store, put, change, err);
}

enum err_code named_look_last(struct txn *txn, struct named_change *change, struct err *err)
{
    uint32_t version = 0;
    bool again = change->tried && txn->commit_unknown;
    change->tried = true;
    enum err_code rc = lock(txn, &change->of, &version, err);
    change->done = rc == ERR_OK && version == 0 && again;
    if (rc || change->done)
        return rc;
    return version ? check_expected(change, version, err) : named_missing(&change->of, err);
}

static enum err_code remove_row(struct txn *txn, void *ctx, struct err *err)
{
    struct named_change *change = ctx;
    enum err_code rc = named_look_last(txn, change, err);
    if (rc || change->done)
        return rc;
    return db_exec(txn->db, change->of.kind->remove, named_key(&change->of), NULL, err);
}

enum err_code named_delete(struct store *store, struct named_change *change, struct err *err)
{
    return store_txn(store, remove_row, change, err);
}
