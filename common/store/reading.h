/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_READING_H
#define COMMON_STORE_READING_H

/* reading: all rows of a selection, or its only one. For common/store only.
 * Threads: owner. Memory: after an error nothing is left in the rows; else they are the caller's,
 * most often by rows_take. */

#include "common/store/pool.h"
#include "common/store/rows.h"

struct reading {
    enum db_stmt_id stmt;
    struct db_args args;
    struct db_cols cols; /* of row */
    void *row;           /* what one row is read into, and copied from as an item of rows */
    /* Makes of a row what the columns alone do not tell; may be NULL. */
    enum err_code (*complete)(void *row, struct err *err);
    /* Frees what the items hold and empties rows; NULL: they hold nothing. */
    void (*clear)(struct rows *rows);
    struct rows *rows;
};

/* Adds to the rows. */
MUST_USE enum err_code read_rows(struct db *db, struct reading *reading, struct err *err);
/* The same in one go, beginning with no row. */
MUST_USE enum err_code read_all(struct store *store, struct reading *reading, struct err *err);
/* At most one row, which stays in reading->row; rows and clear are not used. */
MUST_USE enum err_code read_one(struct store *store, const struct reading *reading, bool *ret_found,
                                struct err *err);

#endif
