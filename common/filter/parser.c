/* SPDX-License-Identifier: MIT */
#include "common/filter/parser.h"

#include "common/filter/like.h"

#include <stdarg.h>

node_id parse_refuse(struct parser *p, size_t at, const char *format, ...)
{
    char reason[ERR_TEXT_MAX];
    va_list args;
    if (p->failed)
        return NODE_NONE;
    va_start(args, format);
    (void)vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    (void)filter_refuse(p->f, p->report, at, p->err, "%s", reason);
    p->failed = true;
    return NODE_NONE;
}

struct sv parse_shown(struct sv text)
{
    if (text.len > SHOWN_MAX) {
        text.len = SHOWN_MAX;
        while (text.len > 0 && ((unsigned char)text.ptr[text.len] & 0xC0) == 0x80)
            text.len--;
    }
    return text;
}

/* What to write instead of a sign of other languages. */
static const char *cure(struct sv sign)
{
    switch (sign.ptr[0]) {
    case '"':
        return "strings stand in single quotes: 'text'";
    case '!':
        return "write <> for unequal, NOT for the opposite";
    case '&':
        return "write AND";
    case '|':
        return "write OR";
    case '=':
        return "one = tests for equality";
    default:
        return "see the filter language";
    }
}

node_id parse_unexpected(struct parser *p, const char *expected)
{
    struct sv shown = parse_shown(p->token.text);
    switch (p->token.kind) {
    case TOKEN_END:
        return parse_refuse(p, p->token.at, "the filter ends where %s should follow", expected);
    case TOKEN_OPEN_STRING:
        return parse_refuse(p, p->token.at, "the string that begins here has no closing quote");
    case TOKEN_BAD_NUMBER:
        return parse_refuse(p, p->token.at, "'%.*s' is neither a number nor a name", SV_ARG(shown));
    case TOKEN_BAD:
    case TOKEN_EQ:
        return parse_refuse(p, p->token.at, "unexpected %.*s; %s", SV_ARG(shown), cure(shown));
    default:
        return parse_refuse(p, p->token.at, "expected %s, not %.*s", expected, SV_ARG(shown));
    }
}

void parse_next(struct parser *p)
{
    struct sv text = {p->f->text, p->f->text_len};
    p->token = lexer_next(text, p->token.at + p->token.text.len);
}

bool parse_take(struct parser *p, enum token_kind kind)
{
    if (p->token.kind != kind)
        return false;
    parse_next(p);
    return true;
}

bool parse_enter(struct parser *p)
{
    p->nesting++;
    if (p->nesting <= FILTER_DEPTH_MAX)
        return true;
    parse_refuse(p, p->token.at, "nested more than %d deep; use fewer parentheses and operators",
                 FILTER_DEPTH_MAX);
    return false;
}

node_id parse_add(struct parser *p, enum node_kind kind, size_t at, node_id first_child)
{
    struct filter *f = p->f;
    unsigned depth = 0;
    if (p->failed)
        return NODE_NONE;
    if (f->node_count == FILTER_NODES_MAX)
        return parse_refuse(p, at, "more than %d names, values and operators; use fewer, or IN",
                            FILTER_NODES_MAX);
    for (node_id c = first_child; c != NODE_NONE; c = f->nodes[c].next) {
        if (f->nodes[c].depth > depth)
            depth = f->nodes[c].depth;
    }
    if (depth >= FILTER_DEPTH_MAX)
        return parse_refuse(p, at, "nested more than %d deep; use fewer operators in a row",
                            FILTER_DEPTH_MAX);
    f->nodes[f->node_count] = (struct node){
        .kind = (uint8_t)kind,
        .depth = (uint8_t)(depth + 1),
        .child = first_child,
        .next = NODE_NONE,
        .at = (uint32_t)at,
    };
    return (node_id)f->node_count++;
}

void parse_link(struct parser *p, node_id child, node_id next)
{
    if (child != NODE_NONE && !p->failed)
        p->f->nodes[child].next = next;
}

static node_id negate(struct parser *p, bool negated, size_t at, node_id child)
{
    return negated ? parse_add(p, NODE_NOT, at, child) : child;
}

static node_id parse_between(struct parser *p, size_t at, node_id what)
{
    node_id low = parse_sum(p);
    parse_link(p, what, low);
    if (!p->failed && !parse_take(p, TOKEN_AND))
        return parse_unexpected(p, "AND and the upper bound of BETWEEN");
    node_id high = p->failed ? NODE_NONE : parse_sum(p);
    parse_link(p, low, high);
    return parse_add(p, NODE_BETWEEN, at, what);
}

static node_id parse_in_list(struct parser *p, size_t at, node_id what)
{
    node_id last = what;
    do {
        size_t item_at = p->token.at;
        node_id item = parse_signed(p);
        if (p->failed)
            return NODE_NONE;
        if (p->f->nodes[item].kind != NODE_LITERAL)
            return parse_refuse(p, item_at,
                                "IN (...) takes values, not names or expressions; for a list "
                                "attribute write 'x' IN tags");
        parse_link(p, last, item);
        last = item;
    } while (parse_take(p, TOKEN_COMMA));
    if (!parse_take(p, TOKEN_CLOSE))
        return parse_unexpected(p, "a comma or ) in the list of IN");
    return parse_add(p, NODE_IN, at, what);
}

static node_id parse_in(struct parser *p, size_t at, node_id what)
{
    if (parse_take(p, TOKEN_OPEN))
        return parse_in_list(p, at, what);
    if (p->token.kind != TOKEN_NAME)
        return parse_unexpected(p, "a list in parentheses or a list attribute behind IN");
    parse_link(p, what, parse_name(p));
    return parse_add(p, NODE_HAS, at, what);
}

/* Puts LIKE's bytes into the place of % and _ and takes the escapes out, in place. */
static bool prepare_pattern(struct parser *p, size_t at, struct sv escape, struct sv *pattern)
{
    char *out = p->f->chars + p->f->chars_len - pattern->len; /* it was stored last */
    struct sv in = *pattern;
    size_t used = 0;
    for (size_t i = 0; i < in.len;) {
        bool escaped = escape.len > 0 && in.len - i >= escape.len &&
                       memcmp(in.ptr + i, escape.ptr, escape.len) == 0;
        if (!escaped) {
            char c = in.ptr[i++];
            out[used++] = c == '%' ? LIKE_ANY : c == '_' ? LIKE_ONE : c;
            continue;
        }
        i += escape.len;
        struct sv rest = {in.ptr + i, in.len - i};
        bool itself = rest.len >= escape.len && memcmp(rest.ptr, escape.ptr, escape.len) == 0;
        if (rest.len == 0 || (!itself && rest.ptr[0] != '%' && rest.ptr[0] != '_')) {
            parse_refuse(p, at,
                         "the escape character of LIKE may stand only before %%, _ or "
                         "itself");
            return false;
        }
        size_t length = itself ? escape.len : 1;
        memmove(out + used, rest.ptr, length);
        used += length;
        i += length;
    }
    pattern->len = used;
    return true;
}

static size_t characters(struct sv text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return count;
}

static node_id parse_like(struct parser *p, size_t at, node_id what)
{
    size_t pattern_at = p->token.at;
    struct sv pattern = {0};
    struct sv escape = {0};
    struct token pattern_token = p->token;
    if (p->token.kind != TOKEN_STRING)
        return parse_unexpected(p, "the pattern of LIKE, a string");
    parse_next(p);
    if (parse_take(p, TOKEN_ESCAPE)) {
        size_t escape_at = p->token.at;
        if (p->token.kind != TOKEN_STRING)
            return parse_unexpected(p, "the escape character, a string");
        if (!parse_string(p, &escape))
            return NODE_NONE;
        if (characters(escape) != 1)
            return parse_refuse(p, escape_at, "ESCAPE takes one character, such as '\\'");
    }
    struct token behind = p->token;
    p->token = pattern_token;
    if (!parse_string(p, &pattern))
        return NODE_NONE;
    p->token = behind;
    if (pattern.len > FILTER_LIKE_MAX)
        return parse_refuse(p, pattern_at, "the pattern has %zu bytes; at most %d", pattern.len,
                            FILTER_LIKE_MAX);
    if (!prepare_pattern(p, pattern_at, escape, &pattern))
        return NODE_NONE;
    node_id like = parse_add(p, NODE_LIKE, at, what);
    if (like != NODE_NONE)
        p->f->nodes[like].value = (struct filter_value){.type = FILTER_STRING, .text = pattern};
    return like;
}

static node_id parse_is(struct parser *p, size_t at, node_id what)
{
    bool negated = parse_take(p, TOKEN_NOT);
    if (!parse_take(p, TOKEN_NULL))
        return parse_unexpected(p, negated ? "NULL behind IS NOT" : "NULL or NOT NULL behind IS");
    return negate(p, negated, at, parse_add(p, NODE_IS_NULL, at, what));
}

static node_id parse_comparison(struct parser *p, size_t at, node_id left)
{
    enum node_op op = (enum node_op)(OP_EQ + (p->token.kind - TOKEN_EQ));
    parse_next(p);
    parse_link(p, left, parse_sum(p));
    node_id comparison = parse_add(p, NODE_COMPARE, at, left);
    if (comparison != NODE_NONE)
        p->f->nodes[comparison].op = (uint8_t)op;
    return comparison;
}

static bool is_comparison(enum token_kind kind)
{
    return kind >= TOKEN_EQ && kind <= TOKEN_GE;
}

static node_id parse_tail(struct parser *p, node_id left)
{
    size_t at = p->token.at;
    if (is_comparison(p->token.kind))
        return parse_comparison(p, at, left);
    if (parse_take(p, TOKEN_IS))
        return parse_is(p, at, left);
    bool negated = parse_take(p, TOKEN_NOT);
    if (parse_take(p, TOKEN_BETWEEN))
        return negate(p, negated, at, parse_between(p, at, left));
    if (parse_take(p, TOKEN_IN))
        return negate(p, negated, at, parse_in(p, at, left));
    if (parse_take(p, TOKEN_LIKE))
        return negate(p, negated, at, parse_like(p, at, left));
    return negated ? parse_unexpected(p, "BETWEEN, IN or LIKE behind NOT") : left;
}

static node_id parse_predicate(struct parser *p)
{
    node_id left = parse_sum(p);
    if (p->failed)
        return NODE_NONE;
    node_id whole = parse_tail(p, left);
    if (!p->failed && (is_comparison(p->token.kind) || p->token.kind == TOKEN_IS) && whole != left)
        return parse_refuse(p, p->token.at,
                            "comparisons do not chain; join them with AND, or use parentheses");
    return whole;
}

static node_id parse_not(struct parser *p)
{
    size_t at = p->token.at;
    if (!parse_take(p, TOKEN_NOT))
        return parse_predicate(p);
    if (!parse_enter(p))
        return NODE_NONE;
    node_id child = parse_not(p);
    p->nesting--;
    return parse_add(p, NODE_NOT, at, child);
}

/* One level of AND or OR: all that it joins become children of one node. */
static node_id parse_joined(struct parser *p, node_id (*part)(struct parser *), bool is_and)
{
    node_id first = part(p);
    node_id last = first;
    size_t at = p->token.at;
    while (!p->failed && parse_take(p, is_and ? TOKEN_AND : TOKEN_OR)) {
        node_id next = part(p);
        parse_link(p, last, next);
        last = next;
    }
    return last == first ? first : parse_add(p, is_and ? NODE_AND : NODE_OR, at, first);
}

static node_id parse_and(struct parser *p)
{
    return parse_joined(p, parse_not, true);
}

node_id parse_or(struct parser *p)
{
    return parse_joined(p, parse_and, false);
}

enum err_code filter_parse(struct filter *f, struct filter_report *report, struct err *err)
{
    struct parser p = {.f = f, .report = report, .err = err};
    parse_next(&p);
    if (p.token.kind == TOKEN_END)
        parse_refuse(&p, 0, "the filter is empty; write TRUE for one that always matches");
    f->root = p.failed ? NODE_NONE : parse_or(&p);
    if (!p.failed && p.token.kind == TOKEN_CLOSE)
        parse_refuse(&p, p.token.at, "this ) closes nothing");
    if (!p.failed && p.token.kind != TOKEN_END)
        parse_unexpected(&p, "AND, OR or the end of the filter");
    return p.failed ? ERR_FILTER : ERR_OK;
}
