/* SPDX-License-Identifier: MIT */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

/* follow: a job's output as it comes, on stdout and stderr, to its end; a cut stream is resumed
 * where it was cut, without gap or repeat. */

#include "cli/cli.h"

enum follow_streams { FOLLOW_STDOUT = 1, FOLLOW_STDERR = 2 };

/* ret_job: the job at its end, the caller's to drop. With cancel_on_interrupt an interrupt (^C)
 * cancels the job and the following goes on to its end; a second one ends the following. */
int follow_job(struct cli *cli, const char *id, unsigned streams, bool cancel_on_interrupt,
               json_t **ret_job);
/* The exit status that stands for a job's end: its exit code, 128+n for signal n, 124 for the time
 * limit, 126 and 127 for a command that could not be started, 125 for any other end that was not
 * the command's. What is not plain from the status is told on stderr. */
int follow_status(const json_t *job);

#endif
