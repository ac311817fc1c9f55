/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_SERVERS_H
#define COMMON_SERVICE_SERVERS_H

/* servers: the settings that say where database and broker are, as store and bus take them.
 * Threads: any. Memory: texts are borrowed from the configuration. */

#include "common/bus/bus.h"
#include "common/config/config.h"
#include "common/store/store.h"

/* Longest wait of a call for a connection, or for the server to come back, before the caller is
 * told that the database is away. */
#define SERVERS_ACQUIRE_MS 2000

struct store_config servers_store(const struct config *cfg);
/* name: of the connections, for the broker's management. */
struct bus_config servers_bus(const struct config *cfg, const char *name);

#endif
