/* SPDX-License-Identifier: MIT */
#include "common/base/sv.h"

bool sv_u64(struct sv text, uint64_t max, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (text.len == 0 || text.len > 20)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)(unsigned char)text.ptr[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (value > max)
        return false;
    *ret_value = value;
    return true;
}

/* Length of the sequence that starts with lead, and the least code point it may stand for. */
static size_t utf8_length(unsigned char lead, uint32_t *ret_least, uint32_t *ret_bits)
{
    if (lead < 0x80) {
        *ret_least = 0;
        *ret_bits = lead;
        return 1;
    }
    if ((lead & 0xE0) == 0xC0) {
        *ret_least = 0x80;
        *ret_bits = lead & 0x1Fu;
        return 2;
    }
    if ((lead & 0xF0) == 0xE0) {
        *ret_least = 0x800;
        *ret_bits = lead & 0x0Fu;
        return 3;
    }
    if ((lead & 0xF8) == 0xF0) {
        *ret_least = 0x10000;
        *ret_bits = lead & 0x07u;
        return 4;
    }
    return 0;
}

bool sv_is_utf8(struct sv text)
{
    size_t at = 0;
    while (at < text.len) {
        uint32_t least = 0;
        uint32_t code = 0;
        size_t length = utf8_length((unsigned char)text.ptr[at], &least, &code);
        if (length == 0 || at + length > text.len)
            return false;
        for (size_t i = 1; i < length; i++) {
            unsigned char next = (unsigned char)text.ptr[at + i];
            if ((next & 0xC0) != 0x80)
                return false;
            code = code << 6 | (next & 0x3Fu);
        }
        if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
            return false;
        at += length;
    }
    return true;
}

bool sv_copy(struct sv text, char *ret_text, size_t size)
{
    if (text.len >= size || (text.len > 0 && memchr(text.ptr, 0, text.len)))
        return false;
    if (text.len > 0)
        memcpy(ret_text, text.ptr, text.len);
    ret_text[text.len] = 0;
    return true;
}

int sv_hex(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

static bool same_letter(char a, char b)
{
    a = (char)(a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a);
    b = (char)(b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b);
    return a == b;
}

size_t sv_distance(struct sv a, struct sv b)
{
    size_t row[SV_DISTANCE_MAX + 1];
    if (a.len > SV_DISTANCE_MAX || b.len > SV_DISTANCE_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t best = diagonal + (same_letter(a.ptr[i - 1], b.ptr[j - 1]) ? 0 : 1);
            diagonal = row[j];
            size_t least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = best < least ? best : least;
        }
    }
    return row[b.len];
}
