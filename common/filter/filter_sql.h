/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILTER_FILTER_SQL_H
#define COMMON_FILTER_FILTER_SQL_H

/* filter_sql: a filter as a condition for WHERE, with the results of filter_eval(): TRUE, FALSE
 * and NULL are those of three-valued logic, for MariaDB 10.11 and MySQL 8. For SELECT:
 * in a strict UPDATE a division by zero is an error. Text from outside is in the parameters only.
 * Text columns must be utf8mb4 with a _bin collation (padding ones too).
 *
 * Threads: any. Memory: filter_params_done() frees what filter_to_sql() put there. */

#include "common/base/buf.h"
#include "common/filter/filter.h"

/* Where the attributes are. Each is an SQL expression of ours (it appears more than once), without
 * placeholders: strings text, numbers numeric, booleans 0 or 1, times DATETIME(6) in UTC, lists a
 * JSON array of strings (NULL is unknown, so store [] for none). */
struct filter_columns {
    const char *const *attrs; /* by index in the schema; NULL: cannot be searched */
    const char *env;          /* a JSON object of names and strings; NULL: cannot be searched */
    const char *env_path;     /* where it stands in there, such as "$.env" */
};

enum filter_param_kind { FILTER_PARAM_TEXT, FILTER_PARAM_INTEGER, FILTER_PARAM_REAL };

struct filter_param {
    enum filter_param_kind kind;
    char *text; /* TEXT: text_len bytes and a NUL, owned by the params; else NULL */
    size_t text_len;
    int64_t integer;
    double real;
};

struct filter_params { /* in the order of the placeholders; = {0} to begin with */
    struct filter_param *items;
    size_t count;
    size_t capacity;
};
void filter_params_done(struct filter_params *params);
#define FILTER_PARAMS_AUTO __attribute__((cleanup(filter_params_done)))

/* Appends one parenthesised condition to the SQL and its parameters to the params (those that are
 * there stay). ERR_FILTER: an attribute that cannot be searched. On an error both hold a part;
 * throw them away. */
MUST_USE enum err_code filter_to_sql(const struct filter *filter,
                                     const struct filter_columns *columns, struct buf *sql,
                                     struct filter_params *params, struct err *err);

#endif
