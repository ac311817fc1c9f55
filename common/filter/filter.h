/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILTER_FILTER_H
#define COMMON_FILTER_FILTER_H

/* filter: conditions on a job, as queues and the job search use them: SQL-92 conditional
 * expressions as in JMS selectors, with three-valued logic. docs/filters.md tells the language.
 *
 *   - Keywords in any case, names as they are written in the schema. 'it''s' is a string.
 *   - Every expression has a type that is known when it is compiled; a comparison of unlike types
 *     is refused there. A row's value of another type than its schema says counts as NULL.
 *   - Strings compare byte by byte (UTF-8, so by code point); no padding, no folding.
 *   - Integers are 64 bits and compare exactly with each other. Arithmetic, and comparing with a
 *     decimal, is done in double; 7 / 2 is 3.5. Division by zero is unknown. Arithmetic that
 *     could leave the range of a double is refused when compiled, so none overflows later.
 *   - Times compare with strings of RFC 3339 ('2026-01-31T12:00:00Z', any offset), or with a date
 *     ('2026-01-31': its first moment, UTC), to the microsecond.
 *
 * Threads: immutable once compiled; any thread evaluates. Memory: filter_compile() gives,
 * filter_free() takes; a schema is the caller's and must outlive its filters. */

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/filter/schema.h"

#define FILTER_TEXT_MAX 4096 /* bytes */
#define FILTER_DEPTH_MAX 32  /* nesting, of parentheses and of operators */
#define FILTER_NODES_MAX 512 /* names, values and operators */
#define FILTER_LIKE_MAX 256  /* bytes of a LIKE pattern */
#define FILTER_WARNINGS_MAX 4
#define FILTER_PICTURE_SIZE 512
#define FILTER_WARNING_SIZE 200

struct filter_place {
    size_t position; /* byte, from 0 */
    unsigned line;   /* from 1 */
    unsigned column; /* character, from 1 */
};

struct filter_warning {
    struct filter_place place;
    char text[FILTER_WARNING_SIZE];
};

struct filter_report {
    struct filter_place place;         /* of the fault; all 0 without one */
    char picture[FILTER_PICTURE_SIZE]; /* the line and, below it, a caret; "" without a fault */
    size_t warning_count;
    struct filter_warning warnings[FILTER_WARNINGS_MAX];
    bool always_true; /* one of the warnings, for programs */
    bool never_true;
};

enum filter_truth { FILTER_FALSE, FILTER_TRUE, FILTER_UNKNOWN };

struct filter;

/* ERR_FILTER: err tells what is wrong where, and what would be right. report may be NULL; else it
 * is always written, also when the text is refused. */
MUST_USE enum err_code filter_compile(const struct filter_schema *schema, struct sv text,
                                      struct filter **ret_filter, struct filter_report *report,
                                      struct err *err);
void filter_free(struct filter *filter);
DEFINE_AUTO(struct filter *, filter_free)

/* Allocates nothing, takes no lock. Only FILTER_TRUE is a match. */
enum filter_truth filter_eval(const struct filter *filter, const struct filter_row *row);
struct sv filter_text(const struct filter *filter); /* as it was given */

/* What the filter reads: each attribute or environment variable once, in order of appearance. */
struct filter_use {
    bool is_env;
    size_t attr;    /* index in the schema, unless is_env */
    struct sv name; /* "owner"; for env.NAME the whole "env.NAME" */
};
size_t filter_use_count(const struct filter *filter);
struct filter_use filter_use_at(const struct filter *filter, size_t index);
bool filter_has_like(const struct filter *filter);
/* The value that an evaluation of row sees there. */
struct filter_value filter_use_value(const struct filter *filter, size_t index,
                                     const struct filter_row *row);

/* Why it is not TRUE of row, in words: which of the parts joined by AND are false or unknown, with
 * what they read: "memoryMB > 16000 is false (memoryMB is 16000); the rest is true". Appends
 * nothing if it is TRUE. */
void filter_say_why(const struct filter *filter, const struct filter_row *row, struct buf *text);

/* Every row that matches `later` matches `earlier` too, so behind it `later` is never reached.
 * false also when that is not simple to tell. */
bool filter_covers(const struct filter *earlier, const struct filter *later);

#endif
