/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_MIGRATE_H
#define COMMON_STORE_MIGRATE_H

/* migrate: applies the files of sql/ (compiled in) that the database has not seen, in order, under
 * a lock that only one migration holds (GET_LOCK). Forward only. Table schema_version holds number,
 * name, SHA-256 of the file and when it was applied; an applied file that has changed since is
 * refused. */

#include "common/store/store.h"

struct migration {
    uint32_t number;
    const char *name;
    const char *text;
};

/* Calls report (may be NULL) after each file. ret_applied: how many were. */
MUST_USE enum err_code migrate_run(const struct store_config *cfg, uint32_t *ret_applied,
                                   void (*report)(const struct migration *done), struct err *err);
/* The newest number this program knows. */
uint32_t migrate_newest(void);

#endif
