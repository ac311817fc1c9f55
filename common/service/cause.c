/* SPDX-License-Identifier: MIT */
#include "common/service/cause.h"

#include <assert.h>

static const struct {
    const char *tester;
    size_t policy; /* offset of the setting */
} causes[JOB_CONDITION_COUNT] = {
#define CAUSE(condition, tester, setting)                                                          \
    [JOB_COND_##condition] = {tester, offsetof(struct config, recovery_##setting)},
#include "common/service/cause.def"
#undef CAUSE
};

bool cause_is_known(enum job_condition condition)
{
    return causes[condition].tester != NULL;
}

struct job_block cause_block(const struct config *cfg, enum job_condition condition,
                             const char *params, const char *detail)
{
    assert(cause_is_known(condition));
    char *policy = NULL;
    memcpy(&policy, (const char *)cfg + causes[condition].policy, sizeof(policy));
    return (struct job_block){.condition = condition,
                              .tester = causes[condition].tester,
                              .params = params,
                              .policy = policy,
                              .detail = detail,
                              .first_test_ms = cfg->recovery_first_test_ms};
}

static void wake(struct bus_publisher *pub, const char *tenant, const struct uuid *recovery,
                 const char *more)
{
    char body[100];
    char id[UUID_TEXT_SIZE];
    struct err err = {0};
    (void)snprintf(body, sizeof(body), "{\"v\":1,\"recovery\":\"%s\"%s}", uuid_text(recovery, id),
                   more);
    const struct bus_message message = {
        .exchange = BUS_RECOVERY, .routing_key = tenant, .body = sv_of(body), .transient = true};
    (void)!bus_publish(pub, &message, NULL, NULL, &err);
}

void cause_wake(struct bus_publisher *pub, const char *tenant, const struct uuid *recovery)
{
    wake(pub, tenant, recovery, "");
}

void cause_wake_now(struct bus_publisher *pub, const char *tenant, const struct uuid *recovery)
{
    wake(pub, tenant, recovery, ",\"now\":true");
}
