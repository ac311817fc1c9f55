/* SPDX-License-Identifier: MIT */
#include "common/store/rows.h"

enum err_code rows_add(struct rows *rows, const void *item, struct err *err)
{
    if (rows->count == rows->room) {
        size_t room = rows->room ? rows->room * 2 : 16;
        void *items = reallocarray(rows->items, room, rows->item_size);
        if (!items)
            return err_set(err, ERR_NOMEM, "no memory for %zu rows", room);
        rows->items = items;
        rows->room = room;
    }
    memcpy((char *)rows->items + rows->count * rows->item_size, item, rows->item_size);
    rows->count++;
    return ERR_OK;
}

void rows_clear(struct rows *rows)
{
    rows->count = 0;
}

void rows_done(struct rows *rows)
{
    free(rows->items);
    *rows = (struct rows){.item_size = rows->item_size};
}

void *rows_take(struct rows *rows)
{
    void *items = rows->items;
    *rows = (struct rows){.item_size = rows->item_size};
    return items;
}
