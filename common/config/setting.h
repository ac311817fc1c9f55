/* SPDX-License-Identifier: MIT */
#ifndef COMMON_CONFIG_SETTING_H
#define COMMON_CONFIG_SETTING_H

/* setting: one row of config.def, and how its value is read. For this folder only.
 * Threads: immutable. */

#include "common/config/config.h"

#define SETTING_NAME_SIZE 96    /* "worker.stage_timeout_ms", and as a variable or flag */
#define SETTING_VALUE_MAX 16384 /* bytes of any value */

enum setting_type {
    SETTING_TEXT,
    SETTING_SECRET,
    SETTING_PATH,
    SETTING_HOSTS,
    SETTING_CHOICE,
    SETTING_UINT,
    SETTING_SIZE,
    SETTING_BOOL,
    SETTING_LIST,
};

struct setting {
    enum setting_type type;
    const char *section;
    const char *key;
    const char *by_default;
    uint64_t min;
    uint64_t max;
    const char *doc;
    size_t offset; /* of its field in struct config */
};

extern const struct setting settings[CONFIG_COUNT];

enum setting_form { SETTING_DOTTED, SETTING_VARIABLE, SETTING_FLAG };

/* "db.host", "SLUICE_DB_HOST" or "db-host" into SETTING_NAME_SIZE bytes, which are returned. */
const char *setting_name(size_t id, enum setting_form form, char *ret_name);
/* Index by one of its names; CONFIG_COUNT if there is none such. */
size_t setting_find(const char *name, enum setting_form form);
bool setting_section_exists(const char *section);
/* ", did you mean db.host?" into size bytes, or "" when no name is near. */
const char *setting_nearest(const char *name, enum setting_form form, char *ret_text, size_t size);

/* Parses and stores. origin is where the text stands, for messages and for config_show; NULL for
 * the default. ERR_CONFIG tells origin, name, value and limit. */
MUST_USE enum err_code setting_put(struct config *cfg, size_t id, const char *text,
                                   const char *origin, struct err *err);
void setting_clear(struct config *cfg, size_t id); /* frees its value and origin */
/* The value as text into size bytes; secrets as "(set)" or "". */
void setting_show(const struct config *cfg, size_t id, char *ret_text, size_t size);

#endif
