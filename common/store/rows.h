/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_ROWS_H
#define COMMON_STORE_ROWS_H

/* rows: an array that grows while a selection is read. Threads: owner. Memory: the caller frees
 * items, or hands them on. */

#include "common/base/err.h"

struct rows {
    size_t item_size;
    void *items;
    size_t count;
    size_t room;
};

#define ROWS_OF(type) ((struct rows){.item_size = sizeof(type)})
#define ROWS_AUTO __attribute__((cleanup(rows_done)))

/* Copies the item behind the others. */
MUST_USE enum err_code rows_add(struct rows *rows, const void *item, struct err *err);
void rows_clear(struct rows *rows); /* empty again, memory kept */
void rows_done(struct rows *rows);
void *rows_take(struct rows *rows); /* may be NULL if it is empty */

#endif
