/* SPDX-License-Identifier: MIT */
#include "common/store/quota_store.h"
#include "readers/recovery/tester.h"

/* As many jobs may go on as there is room for. Those that another job was faster than are
 * blocked again, which stops the ramp. */
struct test_answer tester_quota(const struct test_question *question)
{
    const char *scope = test_param(question, "scope");
    struct quota_key key = {.tenant = question->tenant,
                            .owner = test_param(question, "owner"),
                            .system_id = test_param(question, "system")};
    struct quota_use use = {0};
    struct err err = {0};
    if (!scope || !quota_scope_parse(sv_of(scope), &key.scope))
        return test_lacks("scope");
    if (!key.owner && (key.scope == QUOTA_OWNER || key.scope == QUOTA_SYSTEM_OWNER))
        return test_lacks("owner");
    if (!key.system_id && (key.scope == QUOTA_SYSTEM || key.scope == QUOTA_SYSTEM_OWNER))
        return test_lacks("system");
    if (quota_store_use(question->site->store, &key, &use, &err))
        return test_failed(&err);
    if (use.room == QUOTA_NO_LIMIT)
        return test_clear(TEST_ALL_JOBS);
    return use.room > 0
               ? test_clear(use.room)
               : test_says(TEST_NOT_YET, "%u of %u jobs are active", use.active, use.limit);
}
