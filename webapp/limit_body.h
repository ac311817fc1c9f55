/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_LIMIT_BODY_H
#define WEBAPP_LIMIT_BODY_H

/* limit_body: a number of jobs at once as a client sends it. Threads: any. */

#include "common/model/job_member.h"

#define LIMIT_ACTIVE_MAX 1000000

/* 1 to LIMIT_ACTIVE_MAX; null, where it is allowed, is 0 (no limit). ERR_INVALID. */
static inline enum err_code limit_read(const struct member *member, bool null_is_none,
                                       uint32_t *ret_limit, struct err *err)
{
    if (null_is_none && json_is_null(member->value)) {
        *ret_limit = 0;
        return ERR_OK;
    }
    return member_u32(member, 1, LIMIT_ACTIVE_MAX, ret_limit, err);
}

#endif
