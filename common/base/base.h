/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_BASE_H
#define COMMON_BASE_BASE_H

/* base: the few macros that every file may use. */

#include "common/base/banned.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_arg, first_arg) __attribute__((format(printf, format_arg, first_arg)))
#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* AUTO(thing_free) struct thing *t = NULL; frees t when it goes out of scope; every type that is
 * used so says DEFINE_AUTO(struct thing *, thing_free) in its header. TAKE hands the value on. */
#define DEFINE_AUTO(type, fn)                                                                      \
    static inline void fn##_auto(type *slot_) /* NOLINT(bugprone-macro-parentheses) */             \
    {                                                                                              \
        if (*slot_)                                                                                \
            fn(*slot_);                                                                            \
    }
#define AUTO(fn) __attribute__((cleanup(fn##_auto)))
#define TAKE(variable)                                                                             \
    __extension__({                                                                                \
        __typeof__(variable) taken_ = (variable);                                                  \
        (variable) = NULL;                                                                         \
        taken_;                                                                                    \
    })

/* A descriptor that closes at the end of its scope: FD_AUTO int fd = -1. */
void fd_close(int *fd); /* closes *fd if it is one, sets it to -1; any thread */
#define FD_AUTO __attribute__((cleanup(fd_close)))

/* malloc'd text that frees itself: TEXT_AUTO char *s = NULL. */
void text_free(char **text);
#define TEXT_AUTO __attribute__((cleanup(text_free)))

#endif
