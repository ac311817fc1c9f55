/* SPDX-License-Identifier: MIT */
#include "webapp/cursor.h"

#include "common/base/buf.h"
#include "tests/fuzz/fuzz.h"

/* Input: a cursor, a line feed and the query that it is used with. None is right unless it is the
 * one that was made for this query: what is taken is written again as it was read. */

static struct cursor_key key = {.bytes = {7, 1, 9}};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct sv query;
    struct sv text = first_line(bytes, size, &query);
    struct uuid after = {{0}};
    struct err err = {0};
    char made[CURSOR_TEXT_SIZE];
    if (cursor_read(&key, query, text, &after, &err) == ERR_OK) {
        cursor_write(&key, query, &after, made);
        MUST(sv_is(text, made));
    } else {
        MUST(err.code == ERR_CURSOR && strcmp(err.pointer, "?cursor") == 0);
    }
    /* One that was made is taken, and not with a query that is one byte longer. */
    BUF_AUTO struct buf other = BUF_INIT(size + 2);
    memcpy(after.bytes, bytes, size < sizeof(after.bytes) ? size : sizeof(after.bytes));
    cursor_write(&key, query, &after, made);
    buf_add_sv(&other, query);
    buf_add_text(&other, "x");
    struct uuid back = {{0}};
    struct err refused = {0};
    struct err none = {0};
    MUST(cursor_read(&key, query, sv_of(made), &back, &none) == ERR_OK && uuid_eq(&back, &after));
    MUST(cursor_read(&key, buf_sv(&other), sv_of(made), &back, &refused) == ERR_CURSOR);
    return 0;
}
