/* SPDX-License-Identifier: MIT */
#include "common/auth/base64url.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int value_of(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

bool base64url_decode(struct sv text, struct buf *buf)
{
    uint32_t bits = 0;
    unsigned held = 0;
    if (text.len % 4 == 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int value = value_of(text.ptr[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        unsigned char byte = (unsigned char)(bits >> held);
        bits &= (1u << held) - 1;
        if (!buf_add(buf, &byte, 1))
            return false;
    }
    return bits == 0;
}

bool base64url_encode(struct sv bytes, struct buf *buf)
{
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        bits = (bits << 8 | (unsigned char)bytes.ptr[i]) & 0xFFFFu;
        held += 8;
        for (; held >= 6; held -= 6)
            buf_add(buf, &alphabet[bits >> (held - 6) & 63u], 1);
    }
    if (held > 0)
        buf_add(buf, &alphabet[bits << (6 - held) & 63u], 1);
    return !buf->failed;
}
