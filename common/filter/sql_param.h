/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILTER_SQL_PARAM_H
#define COMMON_FILTER_SQL_PARAM_H

/* sql_param: inside of the filter module: the texts of parameters. Each call gives malloc'd bytes
 * ended by NUL, or NULL without memory. Threads: any. */

#include "common/filter/filter_sql.h"

#define FILTER_SQL_ESCAPE "|" /* the escape character of every LIKE that we write */

char *filter_param_copy(struct sv text, size_t *ret_length);
char *filter_param_time(int64_t us, size_t *ret_length); /* as DATETIME(6) is written */
/* The JSON path of a member: env_path."NAME". */
char *filter_param_path(const char *env_path, struct sv name, size_t *ret_length);
/* A prepared pattern (like.h) as SQL's LIKE reads it. */
char *filter_param_pattern(struct sv pattern, size_t *ret_length);

/* Takes param.text, also when it fails. */
MUST_USE enum err_code filter_params_add(struct filter_params *params, struct filter_param param,
                                         struct err *err);

#endif
