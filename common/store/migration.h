/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_MIGRATION_H
#define COMMON_STORE_MIGRATION_H

/* migration: the files of sql/, compiled in, and how one is cut into statements.
 * Threads: immutable. */

#include "common/base/sv.h"
#include "common/store/migrate.h"

extern const struct migration migrations[];
extern const size_t migration_count;

/* The next statement of *rest, without its ';', and *rest behind it. A statement ends with a ';'
 * at the end of a line; lines that begin with "--" are comments. false: there is none left, and
 * *rest is empty; or, if it is not, it lacks its ';'. */
MUST_USE bool migration_next(struct sv *rest, struct sv *ret_statement);

#endif
