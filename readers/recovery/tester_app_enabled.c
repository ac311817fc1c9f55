/* SPDX-License-Identifier: MIT */
#include "common/store/app_store.h"
#include "readers/recovery/tester.h"

struct test_answer tester_app_enabled(const struct test_question *question)
{
    const char *id = test_param(question, "app");
    const char *version = test_param(question, "version");
    struct err err = {0};
    struct app app = {0};
    if (!id || !version)
        return test_lacks(id ? "version" : "app");
    enum err_code rc =
        app_store_get(question->site->store, question->tenant, id, version, &app, &err);
    bool enabled = app.enabled;
    app_done(&app);
    if (rc == ERR_NOT_FOUND)
        return test_says(TEST_NOT_YET, "there is no application %s version %s", id, version);
    if (rc)
        return test_failed(&err);
    return enabled ? test_clear(TEST_ALL_JOBS)
                   : test_says(TEST_NOT_YET, "application %s version %s is disabled", id, version);
}
