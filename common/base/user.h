/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_USER_H
#define COMMON_BASE_USER_H

/* user: accounts of the system, and where they may go.
 * Threads: any. Memory: none. */

#include "common/base/err.h"

#include <sys/types.h>

struct user {
    uid_t uid;
    gid_t gid; /* its only group */
};

/* ERR_NOT_FOUND; ERR_IO when the system's accounts cannot be read. */
MUST_USE enum err_code user_find(const char *name, struct user *ret_user, struct err *err);
/* Whether it may pass through the folder and all that it is in. ERR_CONFIG names the one that it
 * may not; ERR_IO. */
MUST_USE enum err_code user_may_enter(const struct user *user, const char *path, struct err *err);

#endif
