/* SPDX-License-Identifier: MIT */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

/* profile: address and token of the service that `sluice dev` started: profile.json in its state
 * folder, mode 0600, which ./dev reads. Former versions kept one in $XDG_CONFIG_HOME/sluice too;
 * contexts (cli/contexts.h) have taken its place. Threads: owner. */

#include "common/base/err.h"

struct profile {
    char url[256];
    char token[8192];
    char tenant[64];
};

void profile_load(struct profile *ret_profile); /* empty texts if there is none */
MUST_USE enum err_code profile_read(const char *path, struct profile *ret_profile, struct err *err);
MUST_USE enum err_code profile_write(const char *folder, const struct profile *profile,
                                     struct err *err);
/* $XDG_CONFIG_HOME/sluice or ~/.config/sluice; false if there is no home. */
MUST_USE bool profile_folder(char *ret_path, size_t size);

#endif
