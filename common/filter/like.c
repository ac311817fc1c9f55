/* SPDX-License-Identifier: MIT */
#include "common/filter/like.h"

/* A pattern is pieces between LIKE_ANYs. The first is fixed to the start of the text, the last to
 * its end, each other takes the leftmost place where it fits: later places could not match more.
 * So nothing is ever tried again, however many % there are. */

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Bytes of the character at the start of text, which is not empty. */
static size_t character(struct sv text)
{
    size_t length = 1;
    while (length < 4 && length < text.len && is_continuation(text.ptr[length]))
        length++;
    return length;
}

/* The piece fits at the start of text; *ret_used bytes of it. */
static bool fits_start(struct sv piece, struct sv text, size_t *ret_used)
{
    size_t used = 0;
    for (size_t i = 0; i < piece.len; i++) {
        if (used == text.len)
            return false;
        if (piece.ptr[i] == LIKE_ONE)
            used += character((struct sv){text.ptr + used, text.len - used});
        else if (piece.ptr[i] == text.ptr[used])
            used++;
        else
            return false;
    }
    *ret_used = used;
    return true;
}

/* The piece fits at the end of text, read backwards. */
static bool fits_end(struct sv piece, struct sv text)
{
    size_t left = text.len;
    for (size_t i = piece.len; i > 0; i--) {
        if (left == 0)
            return false;
        left--;
        if (piece.ptr[i - 1] == LIKE_ONE) {
            for (int more = 0; more < 3 && left > 0 && is_continuation(text.ptr[left]); more++)
                left--;
        } else if (piece.ptr[i - 1] != text.ptr[left]) {
            return false;
        }
    }
    return true;
}

/* The leftmost place where the piece fits; *ret_end is behind it. */
static bool find(struct sv piece, struct sv text, size_t *ret_end)
{
    if (!memchr(piece.ptr, LIKE_ONE, piece.len)) {
        const char *place = memmem(text.ptr, text.len, piece.ptr, piece.len);
        if (place)
            *ret_end = (size_t)(place - text.ptr) + piece.len;
        return place != NULL;
    }
    for (size_t at = 0; at < text.len; at += character((struct sv){text.ptr + at, text.len - at})) {
        size_t used = 0;
        if (fits_start(piece, (struct sv){text.ptr + at, text.len - at}, &used)) {
            *ret_end = at + used;
            return true;
        }
    }
    return false;
}

static struct sv skip(struct sv view, size_t bytes)
{
    return (struct sv){view.ptr + bytes, view.len - bytes};
}

/* Takes the pattern up to its next LIKE_ANY, and that too; false: there is none. */
static bool take_piece(struct sv *pattern, struct sv *ret_piece)
{
    const char *any = pattern->len > 0 ? memchr(pattern->ptr, LIKE_ANY, pattern->len) : NULL;
    if (!any)
        return false;
    *ret_piece = (struct sv){pattern->ptr, (size_t)(any - pattern->ptr)};
    *pattern = skip(*pattern, ret_piece->len + 1);
    return true;
}

bool like_match(struct sv pattern, struct sv text)
{
    struct sv piece = {0};
    size_t used = 0;
    if (!take_piece(&pattern, &piece))
        return fits_start(pattern, text, &used) && used == text.len;
    if (!fits_start(piece, text, &used))
        return false;
    text = skip(text, used);
    while (take_piece(&pattern, &piece)) {
        if (piece.len == 0)
            continue;
        if (!find(piece, text, &used))
            return false;
        text = skip(text, used);
    }
    return fits_end(pattern, text);
}
