/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILTER_PARSER_H
#define COMMON_FILTER_PARSER_H

/* parser: inside of parser.c and operand.c, which share the grammar:
 *
 *   or        := and {OR and}
 *   and       := not {AND not}
 *   not       := NOT not | predicate
 *   predicate := sum [ = sum | [NOT] BETWEEN sum AND sum | [NOT] IN (value {, value})
 *              | [NOT] IN name | [NOT] LIKE string [ESCAPE string] | IS [NOT] NULL ]
 *   sum       := product {+ product | - product}
 *   product   := signed {* signed | / signed}
 *   signed    := + signed | - signed | ( or ) | name | string | number | TRUE | FALSE
 *
 * Each function returns the node it made, or NODE_NONE when err is set. */

#include "common/filter/lexer.h"
#include "common/filter/node.h"

struct parser {
    struct filter *f;
    struct filter_report *report;
    struct err *err;
    struct token token;
    unsigned nesting;
    bool failed; /* err is set */
};

/* operand.c */
node_id parse_sum(struct parser *p);
node_id parse_signed(struct parser *p);
node_id parse_name(struct parser *p);
/* The token must be a string; its contents without '' go into the filter's chars. */
bool parse_string(struct parser *p, struct sv *ret_text);

/* parser.c */
node_id parse_or(struct parser *p);
node_id parse_add(struct parser *p, enum node_kind kind, size_t at, node_id first_child);
void parse_next(struct parser *p); /* to the next token */
bool parse_take(struct parser *p, enum token_kind kind);
bool parse_enter(struct parser *p); /* one deeper; false: too deep */
/* Puts next behind child in the list of children. */
void parse_link(struct parser *p, node_id child, node_id next);
node_id parse_unexpected(struct parser *p, const char *expected);
node_id parse_refuse(struct parser *p, size_t at, const char *format, ...) PRINTF_LIKE(3, 4);
#define SHOWN_MAX 40
struct sv parse_shown(struct sv text); /* at most SHOWN_MAX bytes of it, for a message */

#endif
