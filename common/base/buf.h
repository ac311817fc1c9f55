/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_BUF_H
#define COMMON_BASE_BUF_H

/* buf: bytes that grow up to a hard limit. A write that does not fit sets `failed` and changes
 * nothing, so a run of writes may be checked once at its end.
 * Threads: owner. Memory: buf_done() frees; buf_text() lends. */

#include "common/base/base.h"
#include "common/base/sv.h"

struct buf {
    char *ptr; /* ended by NUL once something was written */
    size_t len;
    size_t capacity;
    size_t limit; /* most bytes it may hold */
    bool failed;  /* a write was refused: over the limit, or out of memory */
    bool starved; /* it was out of memory */
};

#define BUF_INIT(limit_bytes) ((struct buf){.limit = (limit_bytes)})

void buf_done(struct buf *buf);
void buf_clear(struct buf *buf); /* empty again, memory kept */
bool buf_add(struct buf *buf, const void *bytes, size_t size_bytes);
bool buf_add_sv(struct buf *buf, struct sv text);
bool buf_add_text(struct buf *buf, const char *text);
bool buf_addf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
/* Writes text as a JSON string, quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
bool buf_add_json_string(struct buf *buf, struct sv text);
const char *buf_text(const struct buf *buf); /* never NULL */
struct sv buf_sv(const struct buf *buf);
/* Hands the bytes (ended by NUL, to be freed) over; NULL if a write failed. */
char *buf_take(struct buf *buf);

#define BUF_AUTO __attribute__((cleanup(buf_done)))

#endif
