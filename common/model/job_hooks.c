/* SPDX-License-Identifier: MIT */
#include "common/base/nearest.h"
#include "common/model/hook.h"
#include "common/model/job_member.h"

enum err_code member_hook_url(const struct member *member, const char **ret_url, struct err *err)
{
    struct hook_url parts;
    struct err refused = {0};
    enum err_code rc = member_text(member, HOOK_URL_BYTES, ret_url, err);
    if (rc)
        return rc;
    rc = hook_url_read(*ret_url, &parts, &refused);
    return rc ? err_set_at(err, rc, member->pointer, "%s", refused.text) : ERR_OK;
}

static enum err_code unknown_state(const struct member *item, const char *text, struct err *err)
{
    struct nearest nearest = {.name = sv_of(text)};
    char known[ERR_TEXT_MAX / 2] = "";
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        nearest_try(&nearest, job_state_text((enum job_state)i));
        nearest_add_known(known, sizeof(known), job_state_text((enum job_state)i));
    }
    if (nearest.best)
        return err_set_at(err, ERR_INVALID, item->pointer,
                          "'%s' is not a state of a job; did you mean '%s'?", text, nearest.best);
    return err_set_at(err, ERR_INVALID, item->pointer, "'%s' is not a state of a job; there are %s",
                      text, known);
}

enum err_code member_hook_states(const struct member *member, unsigned *ret_states, struct err *err)
{
    unsigned states = 0;
    enum err_code rc = member_array(member, JOB_STATE_COUNT, err);
    for (size_t i = 0; rc == ERR_OK && i < json_array_size(member->value); i++) {
        struct member item = member_item(member, i);
        const char *text = NULL;
        enum job_state state;
        rc = member_text(&item, JOB_STATE_TEXT_MAX, &text, err);
        if (rc == ERR_OK && !job_state_parse(sv_of(text), &state))
            rc = unknown_state(&item, text, err);
        if (rc == ERR_OK)
            states |= 1u << state;
    }
    if (rc == ERR_OK && states == 0)
        rc = err_set_at(err, ERR_INVALID, member->pointer,
                        "it names at least one state; leave it out for FINISHED, CANCELLED and "
                        "FAILED");
    if (rc == ERR_OK)
        *ret_states = states;
    return rc;
}

static enum err_code read_part(struct job_hook *hook, const struct member *item, const char *name,
                               struct err *err)
{
    static const char *const names[] = {"url", "states", "secret"};
    static const struct member_names known = {"a subscription", names, ARRAY_LEN(names)};
    if (strcmp(name, "url") == 0)
        return member_hook_url(item, &hook->url, err);
    if (strcmp(name, "states") == 0)
        return member_hook_states(item, &hook->states, err);
    if (strcmp(name, "secret") == 0)
        return member_text(item, HOOK_NAME_SIZE - 1, &hook->secret, err);
    return member_unknown(item, name, &known, err);
}

static enum err_code read_hook(struct job_hook *hook, const struct member *member, struct err *err)
{
    const char *name = NULL;
    json_t *value = NULL;
    enum err_code rc = member_object(member, err);
    hook->states = HOOK_STATES_DEFAULT;
    if (rc)
        return rc;
    json_object_foreach(member->value, name, value)
    {
        struct member item = member_of(member->pointer, name, value);
        enum err_code one = read_part(hook, &item, name, err);
        rc = rc ? rc : one;
        if (rc && !err_wants_more(err))
            return rc;
    }
    if (!json_object_get(member->value, "url"))
        rc = err_set_at(err, ERR_INVALID, member_of(member->pointer, "url", NULL).pointer,
                        "url is missing");
    return rc;
}

enum err_code member_hooks(struct job_request *request, const struct member *member,
                           struct err *err)
{
    enum err_code rc = member_array(member, HOOK_PER_JOB_MAX, err);
    if (rc)
        return rc;
    size_t count = json_array_size(member->value);
    request->hooks = calloc(count ? count : 1, sizeof(*request->hooks));
    if (!request->hooks)
        return err_set(err, ERR_NOMEM, "no memory for %zu subscriptions", count);
    for (size_t i = 0; (rc == ERR_OK || err_wants_more(err)) && i < count; i++) {
        struct member item = member_item(member, i);
        enum err_code one = read_hook(&request->hooks[request->hook_count++], &item, err);
        rc = rc ? rc : one;
    }
    return rc;
}
