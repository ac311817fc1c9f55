/* SPDX-License-Identifier: MIT */
#include "common/base/buf.h"

#include <stdarg.h>

void buf_done(struct buf *buf)
{
    free(buf->ptr);
    *buf = (struct buf){.limit = buf->limit};
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->failed = buf->starved = false;
    if (buf->ptr)
        buf->ptr[0] = 0;
}

static bool reserve(struct buf *buf, size_t more)
{
    if (buf->failed || more > buf->limit || buf->len > buf->limit - more) {
        buf->failed = true;
        return false;
    }
    size_t need = buf->len + more + 1;
    if (need <= buf->capacity)
        return true;
    size_t capacity = buf->capacity ? buf->capacity * 2 : 256;
    if (capacity < need)
        capacity = need;
    char *grown = realloc(buf->ptr, capacity);
    if (!grown) {
        buf->failed = buf->starved = true;
        return false;
    }
    buf->ptr = grown;
    buf->capacity = capacity;
    return true;
}

bool buf_add(struct buf *buf, const void *bytes, size_t size_bytes)
{
    if (!reserve(buf, size_bytes))
        return false;
    if (size_bytes > 0)
        memcpy(buf->ptr + buf->len, bytes, size_bytes);
    buf->len += size_bytes;
    buf->ptr[buf->len] = 0;
    return true;
}

bool buf_add_sv(struct buf *buf, struct sv text)
{
    return buf_add(buf, text.ptr, text.len);
}

bool buf_add_text(struct buf *buf, const char *text)
{
    return buf_add(buf, text, strlen(text));
}

bool buf_addf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (need < 0 || !reserve(buf, (size_t)need))
        return false;
    va_start(args, format);
    (void)vsnprintf(buf->ptr + buf->len, (size_t)need + 1, format, args);
    va_end(args);
    buf->len += (size_t)need;
    return true;
}

static void add_json_byte(struct buf *buf, unsigned char byte)
{
    switch (byte) {
    case '"':
        buf_add_text(buf, "\\\"");
        return;
    case '\\':
        buf_add_text(buf, "\\\\");
        return;
    case '\n':
        buf_add_text(buf, "\\n");
        return;
    case '\r':
        buf_add_text(buf, "\\r");
        return;
    case '\t':
        buf_add_text(buf, "\\t");
        return;
    default:
        if (byte < 0x20 || byte == 0x7F)
            buf_addf(buf, "\\u%04x", byte);
        else
            buf_add(buf, &byte, 1);
    }
}

/* Length of the valid UTF-8 sequence at the start of text, 0 if there is none. */
static size_t valid_sequence(struct sv text)
{
    for (size_t length = 1; length <= 4 && length <= text.len; length++) {
        if (sv_is_utf8((struct sv){text.ptr, length}))
            return length;
    }
    return 0;
}

bool buf_add_json_string(struct buf *buf, struct sv text)
{
    buf_add_text(buf, "\"");
    while (text.len > 0) {
        size_t length = valid_sequence(text);
        if (length == 0)
            buf_add_text(buf, "\\ufffd");
        else if (length == 1)
            add_json_byte(buf, (unsigned char)text.ptr[0]);
        else
            buf_add(buf, text.ptr, length);
        size_t step = length ? length : 1;
        text = (struct sv){text.ptr + step, text.len - step};
    }
    return buf_add_text(buf, "\"");
}

const char *buf_text(const struct buf *buf)
{
    return buf->ptr ? buf->ptr : "";
}

struct sv buf_sv(const struct buf *buf)
{
    return (struct sv){buf_text(buf), buf->len};
}

char *buf_take(struct buf *buf)
{
    char *bytes = NULL;
    if (!buf->failed)
        bytes = buf->ptr ? buf->ptr : calloc(1, 1);
    if (bytes)
        buf->ptr = NULL;
    buf_done(buf);
    return bytes;
}
