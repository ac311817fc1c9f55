/* SPDX-License-Identifier: MIT */
#include "common/model/policy.h"

#include "common/base/sv.h"

#define PAUSE_MIN_MS 10
#define PAUSE_MAX_MS ((int64_t)30 * 86400 * 1000)
#define ELAPSED_MAX_MS ((int64_t)3650 * 86400 * 1000)
#define TRIES_MAX 1000000

/* ---- pauses --------------------------------------------------------------------------------- */

static int64_t pause_constant(const struct policy *policy, uint32_t tries)
{
    (void)tries;
    return policy->steps_ms[0];
}

static int64_t pause_stepwise(const struct policy *policy, uint32_t tries)
{
    size_t step = tries > 0 ? tries - 1 : 0;
    return policy->steps_ms[step < policy->step_count ? step : policy->step_count - 1];
}

static int64_t pause_exponential(const struct policy *policy, uint32_t tries)
{
    int64_t pause_ms = policy->steps_ms[0];
    int64_t most_ms = policy->steps_ms[1];
    for (uint32_t i = 1; i < tries && pause_ms < most_ms; i++)
        pause_ms *= 2;
    return pause_ms < most_ms ? pause_ms : most_ms;
}

static const struct {
    const char *name;
    int64_t (*pause)(const struct policy *policy, uint32_t tries);
} kinds[POLICY_KIND_COUNT] = {
#define POLICY(kind, pause) [POLICY_##kind] = {#kind, pause},
#include "common/model/policy.def"
#undef POLICY
};

int64_t policy_pause_ms(const struct policy *policy, uint32_t tries, uint32_t dice)
{
    int64_t pause_ms = kinds[policy->kind].pause(policy, tries);
    int64_t spread_ms = pause_ms * policy->jitter_percent / 100;
    if (spread_ms > 0)
        pause_ms += (int64_t)(dice % (uint64_t)(2 * spread_ms + 1)) - spread_ms;
    return pause_ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : pause_ms;
}

bool policy_is_out_of_tries(const struct policy *policy, uint32_t tries)
{
    return policy->max_tries > 0 && tries >= policy->max_tries;
}

/* ---- the text ------------------------------------------------------------------------------- */

/* The part before the separator; *rest is what follows it. */
static struct sv cut(struct sv *rest, char separator)
{
    const char *end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    struct sv part = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t used = end ? part.len + 1 : part.len;
    *rest = (struct sv){rest->ptr + used, rest->len - used};
    return part;
}

static enum err_code parse_duration(struct sv text, int64_t most_ms, int64_t *ret_ms,
                                    struct err *err)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    size_t digits = 0;
    uint64_t number = 0;
    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
        digits++;
    struct sv unit = {text.ptr + digits, text.len - digits};
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (sv_is(unit, units[i].name) &&
            sv_u64((struct sv){text.ptr, digits}, UINT32_MAX, &number) && number > 0 &&
            (int64_t)number <= most_ms / units[i].ms) {
            *ret_ms = (int64_t)number * units[i].ms;
            return ERR_OK;
        }
    }
    return err_set(err, ERR_INVALID,
                   "'%.*s' is not a duration: a number with ms, s, m, h or d is wanted, at most "
                   "%lld d",
                   SV_ARG(text), (long long)(most_ms / 86400000));
}

static enum err_code parse_steps(struct sv text, struct policy *policy, struct err *err)
{
    enum err_code rc = ERR_OK;
    policy->step_count = 0;
    do {
        if (policy->step_count == POLICY_STEPS_MAX)
            return err_set(err, ERR_INVALID, "at most %d steps", POLICY_STEPS_MAX);
        rc = parse_duration(cut(&text, ','), PAUSE_MAX_MS, &policy->steps_ms[policy->step_count],
                            err);
        policy->step_count++;
    } while (rc == ERR_OK && text.len > 0);
    return rc;
}

static enum err_code parse_number(struct sv name, struct sv text, uint64_t max, uint32_t *ret_value,
                                  struct err *err)
{
    uint64_t value = 0;
    if (!sv_u64(text, max, &value))
        return err_set(err, ERR_INVALID, "%.*s=%.*s: a number of at most %llu is wanted",
                       SV_ARG(name), SV_ARG(text), (unsigned long long)max);
    *ret_value = (uint32_t)value;
    return ERR_OK;
}

static bool is_for(const struct policy *policy, struct sv name, const char *wanted,
                   enum policy_kind kind)
{
    return policy->kind == kind && sv_is(name, wanted);
}

static enum err_code parse_member(struct sv name, struct sv value, struct policy *policy,
                                  struct err *err)
{
    if (sv_is(name, "jitter"))
        return parse_number(name, value, POLICY_JITTER_MAX, &policy->jitter_percent, err);
    if (sv_is(name, "tries"))
        return parse_number(name, value, TRIES_MAX, &policy->max_tries, err);
    if (sv_is(name, "elapsed"))
        return parse_duration(value, ELAPSED_MAX_MS, &policy->max_elapsed_ms, err);
    if (is_for(policy, name, "every", POLICY_constant))
        return parse_duration(value, PAUSE_MAX_MS, &policy->steps_ms[0], err);
    if (is_for(policy, name, "steps", POLICY_stepwise))
        return parse_steps(value, policy, err);
    if (is_for(policy, name, "first", POLICY_exponential))
        return parse_duration(value, PAUSE_MAX_MS, &policy->steps_ms[0], err);
    if (is_for(policy, name, "most", POLICY_exponential))
        return parse_duration(value, PAUSE_MAX_MS, &policy->steps_ms[1], err);
    return err_set(err, ERR_INVALID, "a %s policy has no '%.*s'", kinds[policy->kind].name,
                   SV_ARG(name));
}

static enum err_code check(const struct policy *policy, struct err *err)
{
    switch (policy->kind) {
    case POLICY_constant:
        if (policy->steps_ms[0] == 0)
            return err_set(err, ERR_INVALID, "a constant policy needs every=");
        return ERR_OK;
    case POLICY_stepwise:
        if (policy->step_count == 0)
            return err_set(err, ERR_INVALID, "a stepwise policy needs steps=");
        return ERR_OK;
    default:
        if (policy->steps_ms[0] == 0 || policy->steps_ms[1] < policy->steps_ms[0])
            return err_set(err, ERR_INVALID,
                           "an exponential policy needs first= and a most= that is not smaller");
        return ERR_OK;
    }
}

static enum err_code parse_kind(struct sv word, struct policy *policy, struct err *err)
{
    for (int i = 0; i < POLICY_KIND_COUNT; i++) {
        if (sv_is(word, kinds[i].name)) {
            policy->kind = (enum policy_kind)i;
            return ERR_OK;
        }
    }
    return err_set(err, ERR_INVALID,
                   "'%.*s' is no kind of policy; constant, stepwise and exponential are",
                   SV_ARG(word));
}

enum err_code policy_parse(const char *text, struct policy *ret_policy, struct err *err)
{
    struct policy policy = {0};
    struct sv rest = sv_of(text);
    enum err_code rc = parse_kind(cut(&rest, ' '), &policy, err);
    while (rc == ERR_OK && rest.len > 0) {
        struct sv value = cut(&rest, ' ');
        struct sv name = cut(&value, '=');
        if (name.len > 0)
            rc = parse_member(name, value, &policy, err);
    }
    if (rc == ERR_OK)
        rc = check(&policy, err);
    if (rc == ERR_OK)
        *ret_policy = policy;
    err_prefix(err, "policy '%.100s': ", text);
    return rc;
}
