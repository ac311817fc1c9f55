/* SPDX-License-Identifier: MIT */
#include "common/model/job_member.h"
#include "common/model/limits.h"

#include <ctype.h>

static enum err_code check_env_name(const struct member *member, const char *name, struct err *err)
{
    size_t length = strlen(name);
    if (length == 0 || length > LIMIT_ENV_NAME_BYTES)
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "a variable's name has 1 to %d bytes, this has %zu", LIMIT_ENV_NAME_BYTES,
                          length);
    for (size_t i = 0; i < length; i++) {
        if (name[i] != '_' && !isalpha((unsigned char)name[i]) &&
            (i == 0 || !isdigit((unsigned char)name[i])))
            return err_set_at(err, ERR_INVALID, member->pointer,
                              "a variable's name has letters, digits and _ and does not begin with "
                              "a digit");
    }
    if (strncmp(name, "SLUICE_", 7) == 0)
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "names that begin with SLUICE_ are set by the service");
    return ERR_OK;
}

enum err_code member_env(struct job_request *request, const struct member *member, struct err *err)
{
    enum err_code rc = member_object(member, err);
    if (rc)
        return rc;
    size_t count = json_object_size(member->value);
    if (count > LIMIT_ENV_COUNT)
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "%zu variables are too many, the limit is %d", count, LIMIT_ENV_COUNT);
    request->env = calloc(count ? count : 1, sizeof(*request->env));
    if (!request->env)
        return err_set(err, ERR_NOMEM, "no memory for %zu variables", count);
    enum err_code first = ERR_OK;
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(member->value, name, value)
    {
        struct member item = member_of(member->pointer, name, value);
        struct job_env *env = &request->env[request->env_count++];
        env->name = name;
        rc = check_env_name(&item, name, err);
        if (rc == ERR_OK)
            rc = member_text(&item, LIMIT_WORD_BYTES - strlen(name) - 1, &env->value, err);
        first = first ? first : rc;
        if (rc && !err_wants_more(err))
            break;
    }
    return first;
}
