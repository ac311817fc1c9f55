/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

/* fuzz: what the libFuzzer programs share. */

#include "common/base/base.h"
#include "common/base/sv.h"

/* Ends the program so that the input that led here is kept. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The input up to the first line feed, and *ret_rest: what comes behind it (empty if none). */
static inline struct sv first_line(const uint8_t *bytes, size_t size, struct sv *ret_rest)
{
    struct sv all = {(const char *)bytes, size};
    const char *end = size ? memchr(bytes, '\n', size) : NULL;
    *ret_rest = (struct sv){"", 0};
    if (!end)
        return all;
    size_t length = (size_t)(end - all.ptr);
    *ret_rest = (struct sv){end + 1, size - length - 1};
    return (struct sv){all.ptr, length};
}

#endif
