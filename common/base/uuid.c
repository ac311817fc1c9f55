/* SPDX-License-Identifier: MIT */
#include "common/base/uuid.h"

#include "common/base/clock.h"

#include <assert.h>
#include <pthread.h>
#include <sys/random.h>

void random_bytes(void *ret_bytes, size_t size_bytes)
{
    assert(size_bytes <= 256); /* up to 256 bytes the call neither fails nor is cut short */
    while (getrandom(ret_bytes, size_bytes, 0) != (ssize_t)size_bytes)
        continue;
}

uint64_t random_below(uint64_t limit)
{
    uint64_t value = 0;
    uint64_t fair = UINT64_MAX - UINT64_MAX % limit;
    do {
        random_bytes(&value, sizeof(value));
    } while (value >= fair);
    return value % limit;
}

/* Milliseconds and a 12-bit counter in one number that only rises (RFC 9562, 6.2 method 1). */
static uint64_t next_stamp(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t last;
    uint64_t now = (uint64_t)(clock_wall_us() / 1000) << 12;
    pthread_mutex_lock(&mutex);
    last = now > last ? now : last + 1;
    uint64_t stamp = last;
    pthread_mutex_unlock(&mutex);
    return stamp;
}

struct uuid uuid_v7(void)
{
    struct uuid id;
    uint64_t stamp = next_stamp();
    uint64_t ms = stamp >> 12;
    random_bytes(id.bytes, sizeof(id.bytes));
    for (int i = 0; i < 6; i++)
        id.bytes[i] = (uint8_t)(ms >> (40 - 8 * i));
    id.bytes[6] = (uint8_t)(0x70 | (stamp >> 8 & 0x0F));
    id.bytes[7] = (uint8_t)(stamp & 0xFF);
    id.bytes[8] = (uint8_t)(0x80 | (id.bytes[8] & 0x3F));
    return id;
}

const char *uuid_text(const struct uuid *id, char *ret_text)
{
    static const char hex[] = "0123456789abcdef";
    char *to = ret_text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = hex[id->bytes[i] >> 4];
        *to++ = hex[id->bytes[i] & 15];
    }
    *to = 0;
    return ret_text;
}

bool uuid_parse(struct sv text, struct uuid *ret_id)
{
    struct uuid id;
    size_t at = 0;
    if (text.len != UUID_TEXT_SIZE - 1)
        return false;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            if (text.ptr[at++] != '-')
                return false;
        }
        int high = sv_hex(text.ptr[at]);
        int low = sv_hex(text.ptr[at + 1]);
        if (high < 0 || low < 0)
            return false;
        id.bytes[i] = (uint8_t)(high << 4 | low);
        at += 2;
    }
    *ret_id = id;
    return true;
}

bool uuid_eq(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool uuid_is_nil(const struct uuid *id)
{
    static const struct uuid nil;
    return uuid_eq(id, &nil);
}
