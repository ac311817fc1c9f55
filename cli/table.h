/* SPDX-License-Identifier: MIT */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

/* table: items as columns, as wide as their text and the terminal allow. Threads: owner. */

#include "cli/cli.h"

#define TABLE_CELL_MAX 1024

void table_print(const json_t *items, const struct cli_column *columns, size_t count);
/* One value as people read it: times are local, control characters harmless. member: its name. */
void table_write_cell(const char *member, const json_t *value, char *ret_cell, size_t size);

#endif
