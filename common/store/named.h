/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_NAMED_H
#define COMMON_STORE_NAMED_H

/* named: what a tenant makes, changes and deletes by name (its systems, quotas, queues ...): rows
 * with a version that rises by one with each change and that a change may expect. A change whose
 * answer was lost finds what it did. For common/store only. Threads: owner. Memory: all is
 * borrowed. */

#include "common/store/pool.h"
#include "common/store/reading.h"

#define NAMED_KEY_MAX 3

struct named_kind {
    const char *noun;    /* as errors call it: "system" */
    const char *version; /* as they call its version */
    enum db_stmt_id get;
    enum db_stmt_id lock; /* tells the version */
    enum db_stmt_id same; /* finds the row if it is as the change would have it */
    enum db_stmt_id insert;
    enum db_stmt_id update;
    enum db_stmt_id remove;
};

struct named {
    const struct named_kind *kind;
    const char *name;                 /* as errors call it */
    const char *edition;              /* the same, where the name alone does not tell; else NULL */
    struct db_arg key[NAMED_KEY_MAX]; /* of get, lock and remove */
    size_t key_count;
};

struct named_change {
    struct named of;
    uint32_t expect;       /* a version, or EXPECT_... */
    struct db_args values; /* of same, insert and update */
    bool made;             /* written: there was none */
    uint32_t version;      /* written: of the row afterwards */
    bool done;             /* an earlier try did it: nothing is left to do */
    bool tried;
};

enum err_code named_missing(const struct named *of, struct err *err); /* ERR_NOT_FOUND */
/* The row goes where cols say. ERR_NOT_FOUND. */
MUST_USE enum err_code named_get(struct store *store, const struct named *of, struct db_cols cols,
                                 struct err *err);
/* One statement that may be repeated. ERR_NOT_FOUND if it finds no row. */
MUST_USE enum err_code named_exec(struct store *store, const struct named *of, enum db_stmt_id stmt,
                                  struct db_args args, struct err *err);
MUST_USE enum err_code named_put(struct store *store, struct named_change *change, struct err *err);
MUST_USE enum err_code named_delete(struct store *store, struct named_change *change,
                                    struct err *err);

/* ---- the same in steps, for a transaction that does more ----------------------------------- */

static inline struct db_args named_key(const struct named *of)
{
    return (struct db_args){of->key, of->key_count};
}
/* Locks the row and sets made, version and done. ERR_PRECONDITION. */
MUST_USE enum err_code named_look(struct txn *txn, struct named_change *change, struct err *err);
/* stmt: insert or update. */
MUST_USE enum err_code named_write(struct txn *txn, enum db_stmt_id stmt, struct db_args args,
                                   struct err *err);
/* Locks the row and sets done. ERR_PRECONDITION, ERR_NOT_FOUND. */
MUST_USE enum err_code named_look_last(struct txn *txn, struct named_change *change,
                                       struct err *err);

#endif
