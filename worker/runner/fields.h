/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_FIELDS_H
#define WORKER_RUNNER_FIELDS_H

/* fields: one table says how a struct is written as a JSON object and read back. Every member is
 * of its type and in its range. FIELDS_EXACT: each is there, and no other. FIELDS_ANY_VERSION, for
 * what another version of the program may have written: one that is missing leaves its field as it
 * was, an unknown one is passed over.
 * Threads: any. */

#include "common/base/err.h"

#include <jansson.h>

enum field_type {
    FIELD_BOOL,  /* bool */
    FIELD_INT,   /* int */
    FIELD_I64,   /* int64_t */
    FIELD_U64,   /* uint64_t, at most INT64_MAX */
    FIELD_UUID,  /* struct uuid, as text */
    FIELD_TEXT,  /* char[size] */
    FIELD_TABLE, /* a struct described by `table` */
    FIELD_SKIP,  /* a member that the caller reads and writes by itself */
};

struct field {
    const char *name; /* NULL ends the table */
    enum field_type type;
    size_t offset;
    size_t size; /* of FIELD_TEXT */
    const struct field *table;
};

enum fields_mode { FIELDS_EXACT, FIELDS_ANY_VERSION };

#define FIELD(type_, struct_, member)                                                              \
    {                                                                                              \
#member, type_, offsetof(struct_, member), 0, NULL                                         \
    }
#define FIELD_TEXT_OF(struct_, member)                                                             \
    {                                                                                              \
#member, FIELD_TEXT, offsetof(struct_, member), sizeof(((struct_ *)0)->member), NULL       \
    }
#define FIELD_TABLE_OF(struct_, member, table_)                                                    \
    {                                                                                              \
#member, FIELD_TABLE, offsetof(struct_, member), 0, table_                                 \
    }
#define FIELD_OTHER(name_)                                                                         \
    {                                                                                              \
        name_, FIELD_SKIP, 0, 0, NULL                                                              \
    }
#define FIELD_END                                                                                  \
    {                                                                                              \
        NULL, FIELD_SKIP, 0, 0, NULL                                                               \
    }

/* A new reference, or NULL when memory is short or text is not UTF-8. */
json_t *fields_json(const struct field *table, const void *from);
/* ERR_PROTOCOL names the member that is wrong. */
MUST_USE enum err_code fields_parse(const struct field *table, enum fields_mode mode,
                                    const json_t *json, void *ret, struct err *err);

#endif
