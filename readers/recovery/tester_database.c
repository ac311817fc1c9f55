/* SPDX-License-Identifier: MIT */
#include "readers/recovery/tester.h"

struct test_answer tester_database(const struct test_question *question)
{
    struct err err = {0};
    if (store_ping(question->site->store, &err))
        return test_failed(&err); /* nothing could be written about it either */
    return test_clear(TEST_ALL_JOBS);
}
