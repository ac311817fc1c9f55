/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_ACCOUNT_H
#define COMMON_STORE_ACCOUNT_H

/* account: the accounts of the database that the programs connect as, and what each may do there
 * (account.def). Threads: any. Memory: the caller's. */

#include "common/base/buf.h"
#include "common/store/store.h"

struct account_site {
    const char *schema;
    const char *prefix; /* of the names: "sluice_" makes sluice_web, sluice_worker... */
    const char *host;   /* where they connect from, as in 'name'@'host': "%" for anywhere */
};

/* The statements that grant each account its rights, a line each. The accounts must be there, the
 * schema migrated; what they were granted before stays. ERR_INVALID: a name is not one. */
MUST_USE enum err_code account_sql(const struct account_site *site, struct buf *ret_sql,
                                   struct err *err);
/* Runs them, by an account that may grant: ERR_DB if one of the accounts is not there. */
MUST_USE enum err_code account_grant(const struct store_config *cfg,
                                     const struct account_site *site, struct err *err);

#endif
