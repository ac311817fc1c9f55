/* SPDX-License-Identifier: MIT */
#ifndef CLI_HELP_H
#define CLI_HELP_H

/* help: what commands do and take, from their table. Threads: owner. */

#include "cli/cli.h"

void help_all(FILE *out);
/* flags: of the command and the common ones. */
void help_command(const struct cli_command *command, const struct config_flag *flags);
/* `help app`, `app --help`: the words after "sluice"; answers the exit status. */
int help_words(int count, char **words);
/* The words name no command: says what was meant, and answers CLI_USAGE. */
int help_unknown(int count, char **words);

#endif
