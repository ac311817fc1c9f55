/* SPDX-License-Identifier: MIT */
#include "common/store/system_store.h"
#include "readers/recovery/tester.h"

struct test_answer tester_system_enabled(const struct test_question *question)
{
    const char *id = test_param(question, "system");
    struct err err = {0};
    struct job_system found = {0};
    if (!id)
        return test_lacks("system");
    enum err_code rc = system_store_get(question->site->store, question->tenant, id, &found, &err);
    if (rc == ERR_NOT_FOUND)
        return test_says(TEST_NOT_YET, "there is no system %s", id);
    if (rc)
        return test_failed(&err);
    return found.enabled ? test_clear(TEST_ALL_JOBS)
                         : test_says(TEST_NOT_YET, "system %s is disabled", id);
}
