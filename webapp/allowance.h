/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_ALLOWANCE_H
#define WEBAPP_ALLOWANCE_H

/* allowance: how much one user, and one tenant, holds at once of what a process has little of, so
 * that the rest is left to the others. Rows are in allowance.def.
 * Threads: locked. Memory: a hold is the caller's; all of them are returned before
 * allowances_close(). */

#include "common/auth/auth.h"
#include "common/config/config.h"

#define FOLLOWERS_MAX 1024
#define LISTENERS_MAX 4096
#define ANSWER_BYTES_MAX ((uint64_t)1024 * 1024 * 1024)

enum allowance_kind {
#define ALLOWANCE(kind, setting, in_all, what) ALLOWANCE_##kind,
#include "webapp/allowance.def"
#undef ALLOWANCE
    ALLOWANCE_KIND_COUNT
};

struct allowances;
struct allowance_holder;

struct allowance_hold { /* all zero: nothing is held */
    struct allowances *all;
    struct allowance_holder *user, *tenant;
    enum allowance_kind kind;
    uint64_t amount;
};

MUST_USE enum err_code allowances_open(const struct config *cfg, struct allowances **ret_all,
                                       struct err *err);
void allowances_close(struct allowances *all); /* NULL is allowed */

/* ERR_RATE: the user or the tenant would hold too much. ERR_OVERLOADED: all together would.
 * ERR_NOMEM. */
MUST_USE enum err_code allowance_take(struct allowances *all, enum allowance_kind kind,
                                      const struct identity *who, uint64_t amount,
                                      struct allowance_hold *ret_hold, struct err *err);
/* As above, for what is there already and cannot be refused. Without memory it is not counted. */
void allowance_add(struct allowances *all, enum allowance_kind kind, const struct identity *who,
                   uint64_t amount, struct allowance_hold *ret_hold);
/* Whether the user and the tenant might take that much; nothing is taken. ERR_RATE and the like. */
MUST_USE enum err_code allowance_check(struct allowances *all, enum allowance_kind kind,
                                       const struct identity *who, uint64_t amount,
                                       struct err *err);
void allowance_return(struct allowance_hold *hold);
#define ALLOWANCE_AUTO __attribute__((cleanup(allowance_return)))

#endif
