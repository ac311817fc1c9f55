/* SPDX-License-Identifier: MIT */
#include "common/auth/auth.h"

static const char *const names[] = {
#define ROLE(name, text) [ROLE_##name] = (text),
#include "common/auth/role.def"
#undef ROLE
};

const char *role_name(enum role role)
{
    return names[role];
}

bool role_parse(struct sv text, enum role *ret_role)
{
    for (unsigned i = 0; i < ROLE_COUNT; i++) {
        if (!sv_is(text, names[i]))
            continue;
        *ret_role = (enum role)i;
        return true;
    }
    return false;
}

bool auth_has_role(const struct identity *identity, enum role role)
{
    return identity->roles >> role & 1u;
}
