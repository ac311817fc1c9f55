/* SPDX-License-Identifier: MIT */
#ifndef COMMON_CONFIG_SOURCE_H
#define COMMON_CONFIG_SOURCE_H

/* source: the file and the flags, as places that settings come from. For this folder only.
 * Threads: owner. */

#include "common/config/setting.h"

struct config_given {                /* what the command line says */
    const char *value[CONFIG_COUNT]; /* borrowed from argv, NULL: not given */
    const char *file;                /* of --config, or NULL */
};

MUST_USE enum err_code config_flags_read(struct config_args *args, struct config_given *ret_given,
                                         struct err *err);
/* Puts every setting of the ini file. must_exist: a missing one is a fault. */
MUST_USE enum err_code config_file_read(struct config *cfg, const char *path, bool must_exist,
                                        struct err *err);

/* Adds to cfg->sources what path is without links. */
MUST_USE enum err_code config_note_source(struct config *cfg, const char *path, struct err *err);

#endif
