/* SPDX-License-Identifier: MIT */
#ifndef COMMON_CONFIG_CONFIG_H
#define COMMON_CONFIG_CONFIG_H

/* config: the settings of a process: default < file < environment < flags. Rows are in config.def.
 * Threads: immutable once loaded; config_load is for one thread at a time. A reload (SIGHUP) loads
 *          a new struct; when that fails the old one is kept.
 * Memory:  config_free() frees the struct and its texts; secrets are wiped. */

#include "common/base/base.h"
#include "common/base/err.h"

struct config_list {
    char **items;
    size_t count;
};

#define CONFIG_C_TEXT char *
#define CONFIG_C_SECRET char *
#define CONFIG_C_PATH char *
#define CONFIG_C_HOSTS char *
#define CONFIG_C_CHOICE char *
#define CONFIG_C_UINT unsigned
#define CONFIG_C_SIZE uint64_t
#define CONFIG_C_BOOL bool
#define CONFIG_C_LIST struct config_list

enum config_id {
#define CONFIG(type, section, key, ...) CONFIG_ID_##section##_##key,
#include "common/config/config.def"
#undef CONFIG
    CONFIG_COUNT
};

struct config { /* cfg->db_host, cfg->db_port, ... */
#define CONFIG(type, section, key, ...) CONFIG_C_##type section##_##key;
#include "common/config/config.def"
#undef CONFIG
    struct config_list sources; /* files that were read: the file of settings, those of secrets */
    char *origin[CONFIG_COUNT]; /* NULL for a default, else "sluice.conf:12", "SLUICE_DB_HOST"... */
};

/* A flag of the program itself, beside those of the settings. Tables end with a name of NULL. */
struct config_flag {
    const char *name;     /* without "--"; NULL ends the table */
    char letter;          /* "-f", or 0 */
    const char *argument; /* its name in the usage text, NULL: the flag takes none */
    const char *doc;
    const char **list; /* for a flag that may be repeated: its arguments, list_max of them */
    size_t list_max;
    /* results, borrowed from argv: */
    size_t count;      /* how often it was given */
    const char *value; /* its last argument, or NULL */
};

struct config_args {
    int argc;
    char **argv;
    struct config_flag *flags; /* may be NULL */
    bool stop_at_operand;      /* false: flags may follow operands, which are moved behind them */
    int rest;                  /* result: index in argv of the first operand, argc if none */
};

/* Reads everything; args may be NULL. Flags are --section-key=VALUE or --section-key VALUE (never
 * for a SECRET), and --config FILE; "--" ends them. Results in args are written also on failure.
 * ERR_INVALID: a flag that is not allowed; ERR_CONFIG: a fault in the file or the environment. */
MUST_USE enum err_code config_load(struct config_args *args, struct config **ret_cfg,
                                   struct err *err);
void config_free(struct config *cfg); /* NULL is allowed */

/* "db.host = 127.0.0.1" a line, secrets as "(set)", with the origin in a column if wanted. */
void config_show(const struct config *cfg, FILE *out, bool origin);
void config_doc(FILE *out); /* docs/configuration.md: all settings, in Markdown */
void config_man(FILE *out); /* the same for a manual page, in roff */
/* A line per flag of the table, and how settings are given. */
void config_usage(FILE *out, const struct config_flag *flags);

DEFINE_AUTO(struct config *, config_free)

#endif
