/* SPDX-License-Identifier: MIT */
#ifndef CLI_ADMIN_DB_H
#define CLI_ADMIN_DB_H

/* admin_db: how the commands for administrators (migrate, audit, doctor) reach the database: by one
 * connection. Threads: any. Memory: texts are borrowed from the configuration. */

#include "common/config/config.h"
#include "common/store/store.h"

struct store_config admin_db_config(const struct config *cfg);

#endif
