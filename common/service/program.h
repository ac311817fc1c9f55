/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_PROGRAM_H
#define COMMON_SERVICE_PROGRAM_H

/* program: what the main of a service does before its work: flags, configuration, log.
 * Threads: owner; program_reload any. Memory: cfg is the caller's; config_free. */

#include "common/config/config.h"

struct program {
    const char *name; /* "sluice-recovery" */
    int argc;
    char **argv;
    struct config *cfg; /* written */
};

#define PROGRAM_USAGE 2 /* exit code */

/* true: there is work to do. false: *ret_status is the exit code; all that is to say was said. */
MUST_USE bool program_begin(struct program *program, int *ret_status);
/* Says why it cannot run with these settings; PROGRAM_USAGE. */
int program_refuse(const struct program *program, const struct err *err);
/* For SIGHUP, with the program as arg: the level of the log; other settings need a restart. */
void program_reload(void *arg);

#endif
