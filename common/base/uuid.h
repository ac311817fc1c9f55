/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_UUID_H
#define COMMON_BASE_UUID_H

/* uuid: UUIDv7 (RFC 9562): ordered by time, so that inserts append.
 * Threads: any. */

#include "common/base/base.h"
#include "common/base/sv.h"

#define UUID_TEXT_SIZE 37 /* 36 characters and NUL */

struct uuid {
    uint8_t bytes[16];
};

/* Later ones of one process compare greater, also within a millisecond. */
struct uuid uuid_v7(void);
/* Lower-case text into ret_text (UUID_TEXT_SIZE bytes), which is returned. */
const char *uuid_text(const struct uuid *id, char *ret_text);
MUST_USE bool uuid_parse(struct sv text, struct uuid *ret_id); /* any version, any case */
bool uuid_eq(const struct uuid *a, const struct uuid *b);
bool uuid_is_nil(const struct uuid *id);
/* Random bytes from the kernel; it does not fail. At most 256 bytes at once. */
void random_bytes(void *ret_bytes, size_t size_bytes);
uint64_t random_below(uint64_t limit); /* 0 <= result < limit; limit > 0 */

#endif
