/* SPDX-License-Identifier: MIT */
#include "common/service/cause.h"

#include "common/base/clock.h"

#include <assert.h>
#include <jansson.h>

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

#define WAKE_WAIT_MS 1000

/* sure: until the broker has it, or cannot take it now. */
static void wake(struct bus_publisher *pub, const char *tenant, const struct uuid *recovery,
                 const char *more, bool sure)
{
    char body[100];
    char id[UUID_TEXT_SIZE];
    struct err err = {0};
    (void)snprintf(body, sizeof(body), "{\"v\":1,\"recovery\":\"%s\"%s}", uuid_text(recovery, id),
                   more);
    const struct bus_message message = {
        .exchange = BUS_RECOVERY, .routing_key = tenant, .body = sv_of(body), .transient = true};
    if (sure)
        (void)!bus_publish_wait(pub, &message, clock_mono_ms() + WAKE_WAIT_MS, &err);
    else
        (void)!bus_publish(pub, &message, NULL, NULL, &err);
}

void cause_wake(struct bus_publisher *pub, const char *tenant, const struct uuid *recovery)
{
    wake(pub, tenant, recovery, "", true);
}

void cause_wake_now(struct bus_publisher *pub, const char *tenant, const struct uuid *recovery)
{
    wake(pub, tenant, recovery, ",\"now\":true", false);
}

static bool has_owner(enum quota_scope scope)
{
    return scope == QUOTA_OWNER || scope == QUOTA_SYSTEM_OWNER;
}

static bool has_system(enum quota_scope scope)
{
    return scope == QUOTA_SYSTEM || scope == QUOTA_SYSTEM_OWNER;
}

static const char *params_text(json_t *params, char ret_params[BLOCK_PARAMS_SIZE])
{
    size_t length =
        json_dumpb(params, ret_params, BLOCK_PARAMS_SIZE - 1, JSON_COMPACT | JSON_SORT_KEYS);
    ret_params[length < BLOCK_PARAMS_SIZE ? length : 0] = 0;
    json_decref(params);
    return ret_params;
}

const char *cause_quota_params(const struct quota_key *key, char ret_params[BLOCK_PARAMS_SIZE])
{
    json_t *params = json_pack("{s:s}", "scope", quota_scope_text(key->scope));
    if (has_owner(key->scope))
        (void)json_object_set_new(params, "owner", json_string(key->owner));
    if (has_system(key->scope))
        (void)json_object_set_new(params, "system", json_string(key->system_id));
    return params_text(params, ret_params);
}

static void hasten(struct store *store, struct bus_publisher *pub, const struct hasten *what)
{
    struct uuid ids[HASTENED_MAX];
    struct err err = {0};
    size_t count = 0;
    if (job_store_hasten(store, what, ids, &count, &err) != ERR_OK)
        return; /* they are looked at when their turn comes */
    for (size_t i = 0; i < count; i++)
        cause_wake_now(pub, what->tenant, &ids[i]);
}

void cause_tell_room(struct store *store, struct bus_publisher *pub, const struct quota_key *whose)
{
    _Static_assert(QUOTA_SCOPE_COUNT <= HASTEN_PARAMS, "one text per scope");
    char texts[QUOTA_SCOPE_COUNT][BLOCK_PARAMS_SIZE];
    struct hasten what = {.tenant = whose->tenant,
                          .tester = causes[JOB_COND_QUOTA_EXCEEDED].tester};
    struct quota_key key = *whose;
    for (int i = 0; i < QUOTA_SCOPE_COUNT; i++) {
        key.scope = (enum quota_scope)i;
        bool owner_lacks = has_owner(key.scope) && (!key.owner || !*key.owner);
        bool system_lacks = has_system(key.scope) && (!key.system_id || !*key.system_id);
        if (!owner_lacks && !system_lacks)
            what.params[i] = cause_quota_params(&key, texts[i]);
    }
    hasten(store, pub, &what);
}

const char *cause_app_params(const char *app, const char *version,
                             char ret_params[BLOCK_PARAMS_SIZE])
{
    return params_text(json_pack("{s:s,s:s}", "app", app, "version", version), ret_params);
}

const char *cause_system_params(const char *system_id, char ret_params[BLOCK_PARAMS_SIZE])
{
    return params_text(json_pack("{s:s}", "system", system_id), ret_params);
}

void cause_tell_changed(struct store *store, struct bus_publisher *pub, const char *tenant,
                        enum job_condition condition, const char *params)
{
    const struct hasten what = {
        .tenant = tenant, .tester = causes[condition].tester, .params = {params}};
    hasten(store, pub, &what);
}
