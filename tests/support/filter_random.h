/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_FILTER_RANDOM_H
#define TESTS_SUPPORT_FILTER_RANDOM_H

/* filter_random: random filters over name, owner, appId, memoryMB, nodeCount, maxMinutes, tags,
 * visible, created, ended, env.A and env.B, from values that databases treat in ways of their own.
 * The same seed gives the same filters. Threads: owner.
 * Longer than 150 lines: it is a small program, in a header for its one user. */

#include "common/base/buf.h"

#define FILTER_RANDOM_DEPTH 4

static uint64_t filter_random_seed = 1;

static inline unsigned any_below(unsigned end)
{
    filter_random_seed = filter_random_seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(filter_random_seed >> 33) % end;
}

#define ANY_OF(array) ((array)[any_below(ARRAY_LEN(array))])

static const char *const random_texts[] = {
    "a",
    "b",
    "A",
    "a ",
    "ab",
    "abc",
    "a%c",
    "a_c",
    "a|b",
    "",
    "\xc3\xa4",
    "\303\244b",
    "\xe6\x97\xa5",
    "x'y",
    "a\\b",
    "a\tb",
    "\xf0\x9f\x98\x80",
    " a",
    "a  ",
};
static const int64_t random_numbers[] = {
    0, 1, 2, 3, -1, -7, 1024, 9007199254740993, 9007199254740992, INT64_MAX, INT64_MIN, 100,
};
static const char *const random_times[] = {
    "2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00.500001Z", "2026-01-31",
    "2025-12-31T23:59:59Z",   "2026-01-31T14:00:00.5+02:00",
};

static inline void random_condition(struct buf *b, int depth);

static inline void add_quoted(struct buf *b, const char *text)
{
    buf_add_text(b, "'");
    for (; *text; text++)
        buf_add_text(b, *text == '\'' ? "''" : (char[]){*text, 0});
    buf_add_text(b, "'");
}

static inline void random_text(struct buf *b)
{
    static const char *const names[] = {"name", "owner", "appId", "env.A", "env.B"};
    if (any_below(6) == 0)
        add_quoted(b, ANY_OF(random_texts));
    else
        buf_add_text(b, ANY_OF(names));
}

static inline void random_literal(struct buf *b)
{
    if (any_below(4) == 0)
        buf_addf(b, "%g", any_below(4000) / 8.0 + 0.5);
    else
        buf_addf(b, "%lld", (long long)ANY_OF(random_numbers));
}

static inline void random_number(struct buf *b, int depth)
{
    static const char *const names[] = {"memoryMB", "nodeCount", "maxMinutes"};
    static const char *const ops[] = {" + ", " - ", " * ", " / "};
    unsigned kind = any_below(depth > 2 ? 4 : 7);
    if (kind < 3) {
        buf_add_text(b, ANY_OF(names));
    } else if (kind == 3) {
        random_literal(b);
    } else {
        buf_add_text(b, kind == 4 ? "-(" : "(");
        random_number(b, depth + 1);
        buf_add_text(b, ANY_OF(ops));
        random_number(b, depth + 1);
        buf_add_text(b, ")");
    }
}

static inline void random_time(struct buf *b)
{
    if (any_below(2))
        add_quoted(b, ANY_OF(random_times));
    else
        buf_add_text(b, any_below(2) ? "created" : "ended");
}

static inline void add_not(struct buf *b)
{
    if (any_below(3) == 0)
        buf_add_text(b, " NOT");
}

static inline void random_comparison(struct buf *b)
{
    static const char *const ops[] = {" = ", " <> ", " < ", " <= ", " > ", " >= "};
    unsigned kind = any_below(3);
    if (kind == 0)
        buf_add_text(b, any_below(2) ? "created" : "ended");
    else if (kind == 1)
        random_text(b);
    else
        random_number(b, 0);
    buf_add_text(b, ANY_OF(ops));
    if (kind == 0)
        random_time(b);
    else if (kind == 1)
        random_text(b);
    else
        random_number(b, 0);
}

static inline void random_between(struct buf *b)
{
    bool text = any_below(2);
    for (int part = 0; part < 3; part++) {
        if (text)
            random_text(b);
        else
            random_number(b, 1);
        if (part == 0)
            add_not(b);
        buf_add_text(b, part == 0 ? " BETWEEN " : part == 1 ? " AND " : "");
    }
}

static inline void random_in(struct buf *b)
{
    unsigned kind = any_below(3);
    if (kind == 0)
        buf_add_text(b, any_below(2) ? "created" : "ended");
    else if (kind == 1)
        random_text(b);
    else
        random_number(b, 1);
    add_not(b);
    buf_add_text(b, " IN (");
    for (unsigned left = 1 + any_below(3); left > 0; left--) {
        if (kind == 0)
            add_quoted(b, ANY_OF(random_times));
        else if (kind == 1)
            add_quoted(b, ANY_OF(random_texts));
        else
            random_literal(b);
        buf_add_text(b, left > 1 ? ", " : ")");
    }
}

static inline void random_like(struct buf *b)
{
    static const char *const patterns[] = {
        "%", "a%",   "%b",   "_",    "__", "a_c", "%b%", "a%c",  "%_",        "a|%c",
        "",  "a!%c", "a!_c", "%_b%", "_%", "%a%", "% ",  "a\\b", "\xc3\xa4%",
    };
    const char *pattern = ANY_OF(patterns);
    random_text(b);
    add_not(b);
    buf_add_text(b, " LIKE ");
    add_quoted(b, pattern);
    if (strchr(pattern, '!') || any_below(4) == 0)
        buf_add_text(b, " ESCAPE '!'");
}

static inline void random_other(struct buf *b)
{
    switch (any_below(6)) {
    case 0:
        buf_add_text(b, any_below(2) ? "visible" : "visible = FALSE");
        return;
    case 1:
        random_text(b);
        add_not(b);
        buf_add_text(b, " IN tags");
        return;
    case 2:
        random_text(b);
        break;
    case 3:
        random_number(b, 0);
        break;
    case 4:
        buf_add_text(b, "ended");
        break;
    default:
        buf_add_text(b, "tags");
    }
    buf_add_text(b, " IS");
    add_not(b);
    buf_add_text(b, " NULL");
}

static inline void random_joined(struct buf *b, int depth)
{
    const char *word = any_below(2) ? " AND " : " OR ";
    buf_add_text(b, any_below(3) ? "(" : "NOT (");
    for (unsigned left = 1 + any_below(3); left > 0; left--) {
        random_condition(b, depth + 1);
        buf_add_text(b, left > 1 ? word : ")");
    }
}

static inline void random_condition(struct buf *b, int depth)
{
    static void (*const leaves[])(struct buf *) = {
        random_comparison, random_comparison, random_between, random_in, random_like, random_other,
    };
    if (depth < FILTER_RANDOM_DEPTH && any_below(3))
        random_joined(b, depth);
    else
        ANY_OF(leaves)(b);
}

#endif
