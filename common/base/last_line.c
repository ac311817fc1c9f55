/* SPDX-License-Identifier: MIT */
#include "common/base/last_line.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAIL_BYTES 4096
#define CHARACTER_MAX 4 /* bytes of one in UTF-8 */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0';
}

/* Characters that turn the direction of what is around them: U+061C, U+200E, U+200F, U+202A to
 * U+202E and U+2066 to U+2069; the two that end a line; and tags, which nobody sees: U+E0000 to
 * U+E007F. */
static bool turns(const unsigned char *at, size_t length)
{
    if (length == 2)
        return at[0] == 0xD8 && at[1] == 0x9C;
    if (length == 4)
        return at[0] == 0xF3 && at[1] == 0xA0 && (at[2] == 0x80 || at[2] == 0x81);
    if (length != 3 || at[0] != 0xE2)
        return false;
    return (at[1] == 0x80 &&
            (at[2] == 0x8E || at[2] == 0x8F || (at[2] >= 0xA8 && at[2] <= 0xAE))) ||
           (at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9);
}

/* Bytes of the character that text begins with; 0: it is none that may be shown. */
static size_t shown(struct sv text)
{
    const unsigned char *at = (const unsigned char *)text.ptr;
    if (at[0] < 0x20 || at[0] == 0x7F)
        return 0;
    for (size_t length = 1; length <= CHARACTER_MAX && length <= text.len; length++) {
        if (!sv_is_utf8((struct sv){text.ptr, length}))
            continue;
        bool control = length == 2 && at[0] == 0xC2 && at[1] < 0xA0;
        return control || turns(at, length) ? 0 : length;
    }
    return 0;
}

const char *text_quotable(struct sv text, char *ret_text, size_t size)
{
    size_t used = 0;
    size_t at = 0;
    while (at < text.len) {
        size_t length = shown((struct sv){text.ptr + at, text.len - at});
        size_t bytes = length ? length : 1;
        if (used + bytes >= size)
            break;
        if (text.ptr[at] == '"')
            ret_text[used] = '\''; /* it stands in quotation marks */
        else if (length)
            memcpy(ret_text + used, text.ptr + at, length);
        else
            ret_text[used] = '?';
        used += bytes;
        at += bytes;
    }
    ret_text[used] = 0;
    return ret_text;
}

bool last_line_of(struct sv bytes, char ret_line[LAST_LINE_SIZE])
{
    size_t end = bytes.len;
    while (end > 0 && is_blank(bytes.ptr[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && bytes.ptr[begin - 1] != '\n' && bytes.ptr[begin - 1] != '\r')
        begin--;
    while (begin < end && is_blank(bytes.ptr[begin]))
        begin++;
    if (begin == end)
        return false;
    (void)text_quotable((struct sv){bytes.ptr + begin, end - begin}, ret_line, LAST_LINE_MAX + 1);
    if (end - begin > LAST_LINE_MAX)
        memcpy(ret_line + strlen(ret_line), "...", sizeof("..."));
    return true;
}

bool last_line_read(int fd, char ret_line[LAST_LINE_SIZE])
{
    char tail[TAIL_BYTES];
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    off_t from = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;
    ssize_t got = pread(fd, tail, sizeof(tail), from);
    return got > 0 && last_line_of((struct sv){tail, (size_t)got}, ret_line);
}
