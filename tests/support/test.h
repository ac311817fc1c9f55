/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

/* test: cmocka after the headers that it needs, and a few words that our tests share. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/err.h"

#define TEST(function) cmocka_unit_test(function)
#define TEST_SETUP(function, setup) cmocka_unit_test_setup(function, setup)

/* The call succeeded; its text is printed if not. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        enum err_code code_ = (call);                                                              \
        if (code_ != ERR_OK)                                                                       \
            fail_msg("%s: %s: %s", #call, err_name(code_), err.text);                              \
    } while (0)

#define assert_code(call, wanted)                                                                  \
    do {                                                                                           \
        enum err_code code_ = (call);                                                              \
        if (code_ != (wanted))                                                                     \
            fail_msg("%s: %s, not %s: %s", #call, err_name(code_), err_name(wanted), err.text);    \
    } while (0)

#endif
