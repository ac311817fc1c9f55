/* SPDX-License-Identifier: MIT */
#ifndef CLI_BULK_H
#define CLI_BULK_H

/* bulk: acts on many things are confirmed with their number. Threads: owner. */

#include "cli/cli.h"

#define BULK_YES_FLAG                                                                              \
    {                                                                                              \
        .name = "yes", .letter = 'y', .doc = "do not ask before acting on what a search found"     \
    }

/* what: "cancel 12 jobs". true: --yes, or a person on the terminal said so. */
bool bulk_confirmed(const struct cli *cli, const char *what);

#endif
