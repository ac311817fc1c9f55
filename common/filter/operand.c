/* SPDX-License-Identifier: MIT */
#include "common/filter/parser.h"

#include <errno.h>
#include <math.h>

#define NUMBER_TEXT_MAX 64
#define ENV_PREFIX "env."

static void set_value(struct parser *p, node_id id, struct filter_value value)
{
    if (id == NODE_NONE)
        return;
    p->f->nodes[id].value = value;
    p->f->nodes[id].type = (uint8_t)value.type;
}

bool parse_string(struct parser *p, struct sv *ret_text)
{
    struct sv quoted = p->token.text;
    char *out = p->f->chars + p->f->chars_len;
    size_t used = 0;
    for (size_t i = 1; i + 1 < quoted.len; i++) {
        out[used++] = quoted.ptr[i];
        i += quoted.ptr[i] == '\''; /* the second of '' */
    }
    p->f->chars_len += used;
    *ret_text = (struct sv){out, used};
    parse_next(p);
    return true;
}

static node_id string_operand(struct parser *p)
{
    struct filter_value value = {.type = FILTER_STRING};
    size_t at = p->token.at;
    if (!parse_string(p, &value.text))
        return NODE_NONE;
    node_id id = parse_add(p, NODE_LITERAL, at, NODE_NONE);
    set_value(p, id, value);
    return id;
}

static bool integer_value(const char *text, struct filter_value *ret_value)
{
    char *end = NULL;
    errno = 0;
    ret_value->integer = strtoll(text, &end, 10);
    return errno == 0 && *end == 0;
}

static bool decimal_value(const char *text, struct filter_value *ret_value)
{
    char *end = NULL;
    ret_value->is_real = true;
    ret_value->real = strtod(text, &end);
    return isfinite(ret_value->real) && *end == 0;
}

/* The sign belongs to the number, or -9223372036854775808 could not be written. */
static node_id number_operand(struct parser *p, size_t at, bool negative)
{
    char text[NUMBER_TEXT_MAX];
    struct sv digits = p->token.text;
    struct sv shown = parse_shown(digits);
    bool integer = p->token.kind == TOKEN_INTEGER;
    struct filter_value value = {.type = FILTER_NUMBER};
    if (digits.len + 2 > sizeof(text))
        return parse_refuse(p, at, "a number of %zu characters; at most %zu", digits.len,
                            sizeof(text) - 2);
    (void)snprintf(text, sizeof(text), "%s%.*s", negative ? "-" : "", SV_ARG(digits));
    bool ok = integer ? integer_value(text, &value) : decimal_value(text, &value);
    if (!ok)
        return parse_refuse(p, at, "%.*s is out of range; %s", SV_ARG(shown),
                            integer ? "integers have 64 bits, write it as a decimal (1e20)"
                                    : "decimals reach up to 1.7e308");
    parse_next(p);
    node_id id = parse_add(p, NODE_LITERAL, at, NODE_NONE);
    set_value(p, id, value);
    return id;
}

static node_id unknown_name(struct parser *p, struct token name)
{
    struct sv shown = parse_shown(name.text);
    struct nearest nearest = {.name = name.text};
    char known[ERR_TEXT_MAX - 2 * SHOWN_MAX] = "";
    if (lexer_next((struct sv){p->f->text, p->f->text_len}, name.at + name.text.len).kind ==
        TOKEN_OPEN)
        return parse_refuse(p, name.at, "'%.*s' is followed by (; filters have no functions",
                            SV_ARG(shown));
    for (size_t i = 0; i < p->f->schema->count; i++)
        nearest_try(&nearest, p->f->schema->attrs[i].name);
    if (nearest.best)
        return parse_refuse(p, name.at, "unknown attribute '%.*s'; did you mean '%s'?",
                            SV_ARG(shown), nearest.best);
    for (size_t i = 0; i < p->f->schema->count; i++)
        nearest_add_known(known, sizeof(known), p->f->schema->attrs[i].name);
    return parse_refuse(p, name.at, "unknown attribute '%.*s'; there are %s%s", SV_ARG(shown),
                        known, p->f->schema->env ? " and env.NAME" : "");
}

static node_id env_name(struct parser *p, struct token name)
{
    size_t prefix = strlen(ENV_PREFIX);
    struct sv variable = {name.text.ptr + prefix, name.text.len - prefix};
    if (memchr(variable.ptr, '.', variable.len))
        return parse_refuse(p, name.at, "'%.*s': a variable's name has no point in it",
                            SV_ARG(parse_shown(name.text)));
    parse_next(p);
    node_id id = parse_add(p, NODE_ENV, name.at, NODE_NONE);
    set_value(p, id, (struct filter_value){.type = FILTER_STRING, .text = variable});
    return id;
}

node_id parse_name(struct parser *p)
{
    const struct filter_schema *schema = p->f->schema;
    struct token name = p->token;
    if (schema->env && name.text.len > strlen(ENV_PREFIX) &&
        memcmp(name.text.ptr, ENV_PREFIX, strlen(ENV_PREFIX)) == 0)
        return env_name(p, name);
    for (size_t i = 0; i < schema->count; i++) {
        if (!sv_is(name.text, schema->attrs[i].name))
            continue;
        parse_next(p);
        node_id id = parse_add(p, NODE_ATTR, name.at, NODE_NONE);
        if (id != NODE_NONE) {
            p->f->nodes[id].type = (uint8_t)schema->attrs[i].type;
            p->f->nodes[id].attr = (uint16_t)i;
        }
        return id;
    }
    return unknown_name(p, name);
}

static node_id parenthesised(struct parser *p)
{
    size_t at = p->token.at;
    if (!parse_enter(p))
        return NODE_NONE;
    parse_next(p);
    node_id inner = parse_or(p);
    if (p->failed)
        return NODE_NONE;
    p->nesting--;
    if (p->token.kind == TOKEN_END)
        return parse_refuse(p, at, "this ( is never closed");
    if (!parse_take(p, TOKEN_CLOSE))
        return parse_unexpected(p, "an operator or )");
    return inner;
}

static node_id truth_operand(struct parser *p)
{
    struct filter_value value = {.type = FILTER_BOOL, .truth = p->token.kind == TOKEN_TRUE};
    node_id id = parse_add(p, NODE_LITERAL, p->token.at, NODE_NONE);
    set_value(p, id, value);
    parse_next(p);
    return id;
}

static node_id parse_primary(struct parser *p)
{
    switch (p->token.kind) {
    case TOKEN_OPEN:
        return parenthesised(p);
    case TOKEN_NAME:
        return parse_name(p);
    case TOKEN_STRING:
        return string_operand(p);
    case TOKEN_INTEGER:
    case TOKEN_DECIMAL:
        return number_operand(p, p->token.at, false);
    case TOKEN_TRUE:
    case TOKEN_FALSE:
        return truth_operand(p);
    case TOKEN_NULL:
        return parse_refuse(p, p->token.at,
                            "NULL stands only in IS NULL and IS NOT NULL; "
                            "nothing is equal to it");
    default:
        return parse_unexpected(p, "a name, a value or (");
    }
}

node_id parse_signed(struct parser *p)
{
    size_t at = p->token.at;
    bool minus = p->token.kind == TOKEN_MINUS;
    if (!parse_take(p, TOKEN_MINUS) && !parse_take(p, TOKEN_PLUS))
        return parse_primary(p);
    if (p->token.kind == TOKEN_INTEGER || p->token.kind == TOKEN_DECIMAL)
        return number_operand(p, at, minus);
    if (!parse_enter(p))
        return NODE_NONE;
    node_id child = parse_signed(p);
    p->nesting--;
    node_id id = parse_add(p, NODE_SIGN, at, child);
    if (id != NODE_NONE)
        p->f->nodes[id].op = minus ? OP_SUB : OP_ADD;
    return id;
}

static node_id arithmetic(struct parser *p, node_id left, enum node_op op, size_t at, node_id right)
{
    parse_link(p, left, right);
    node_id id = parse_add(p, NODE_ARITH, at, left);
    if (id != NODE_NONE)
        p->f->nodes[id].op = (uint8_t)op;
    return id;
}

static node_id parse_product(struct parser *p)
{
    node_id left = parse_signed(p);
    while (!p->failed && (p->token.kind == TOKEN_STAR || p->token.kind == TOKEN_SLASH)) {
        enum node_op op = p->token.kind == TOKEN_STAR ? OP_MUL : OP_DIV;
        size_t at = p->token.at;
        parse_next(p);
        left = arithmetic(p, left, op, at, parse_signed(p));
    }
    return left;
}

node_id parse_sum(struct parser *p)
{
    node_id left = parse_product(p);
    while (!p->failed && (p->token.kind == TOKEN_PLUS || p->token.kind == TOKEN_MINUS)) {
        enum node_op op = p->token.kind == TOKEN_PLUS ? OP_ADD : OP_SUB;
        size_t at = p->token.at;
        parse_next(p);
        left = arithmetic(p, left, op, at, parse_product(p));
    }
    return left;
}
