/* SPDX-License-Identifier: MIT */
#include "common/filter/node.h"

#include "common/base/clock.h"

#define DATE_LENGTH 10                                /* 2026-01-31 */
#define TIME_END_US (INT64_C(253402300800) * 1000000) /* the year 10000 */

struct check {
    struct filter *f;
    struct filter_report *report;
    struct err *err;
};

static enum err_code refuse_pair(const struct check *c, const struct node *n, unsigned left,
                                 unsigned right)
{
    if (left == FILTER_LIST || right == FILTER_LIST)
        return filter_refuse(c->f, c->report, n->at, c->err,
                             "a list cannot be compared; write 'x' IN tags");
    const char *cure = "compare values of one type";
    if ((left == FILTER_STRING && right == FILTER_NUMBER) ||
        (left == FILTER_NUMBER && right == FILTER_STRING))
        cure = "numbers stand without quotes, strings in single quotes";
    return filter_refuse(c->f, c->report, n->at, c->err,
                         "%s is compared with %s, which can never match; %s",
                         filter_type_name(left), filter_type_name(right), cure);
}

/* Reads a string as a time; a date is its first moment. */
static bool read_time(struct sv text, int64_t *ret_us)
{
    char whole[CLOCK_TEXT_SIZE];
    if (text.len == DATE_LENGTH) {
        (void)snprintf(whole, sizeof(whole), "%.*sT00:00:00Z", SV_ARG(text));
        text = sv_of(whole);
    }
    return clock_parse_rfc3339(text, ret_us) && *ret_us >= 0 && *ret_us < TIME_END_US;
}

/* A string that meets a time becomes one. */
static enum err_code meet_time(const struct check *c, struct node *n, unsigned other_type)
{
    int64_t us = 0;
    if (other_type != FILTER_TIME || n->type != FILTER_STRING || n->kind != NODE_LITERAL)
        return ERR_OK;
    if (!read_time(n->value.text, &us))
        return filter_refuse(c->f, c->report, n->at, c->err,
                             "this is not a time from 1970 to 9999; write it as "
                             "'2026-01-31T12:00:00Z' or '2026-01-31'");
    n->type = FILTER_TIME;
    n->value = (struct filter_value){.type = FILTER_TIME, .integer = us};
    return ERR_OK;
}

/* Both get one type that can be compared, or an error at `where`. */
static enum err_code unite(const struct check *c, const struct node *where, struct node *a,
                           struct node *b)
{
    enum err_code rc = meet_time(c, a, b->type);
    if (rc == ERR_OK)
        rc = meet_time(c, b, a->type);
    if (rc == ERR_OK && (a->type != b->type || a->type == FILTER_LIST))
        rc = refuse_pair(c, where, a->type, b->type);
    return rc;
}

/* A number that is to equal an attribute must be one that it can have. */
static enum err_code meet_range(const struct check *c, const struct filter_attr *about,
                                const struct node *literal)
{
    const struct filter_value *v = &literal->value;
    double number = v->is_real ? v->real : (double)v->integer;
    bool bounded = about->low < about->high;
    if (!bounded || (number >= (double)about->low && number <= (double)about->high))
        return ERR_OK;
    return filter_refuse(c->f, c->report, literal->at, c->err,
                         "%s never has this value; it is from %lld to %lld", about->name,
                         (long long)about->low, (long long)about->high);
}

/* A string that is to equal an attribute of few values must be one of them. */
static enum err_code meet_list(const struct check *c, const struct filter_attr *about,
                               const struct node *literal)
{
    struct nearest nearest = {.name = literal->value.text};
    char known[ERR_TEXT_MAX / 2] = "";
    for (const char *const *value = about->values; *value; value++) {
        if (sv_is(literal->value.text, *value))
            return ERR_OK;
        nearest_try(&nearest, *value);
        nearest_add_known(known, sizeof(known), *value);
    }
    if (nearest.best)
        return filter_refuse(c->f, c->report, literal->at, c->err,
                             "%s never has this value; did you mean '%s'?", about->name,
                             nearest.best);
    return filter_refuse(c->f, c->report, literal->at, c->err,
                         "%s never has this value; it is one of %s", about->name, known);
}

static enum err_code meet_values(const struct check *c, const struct node *attr,
                                 const struct node *literal)
{
    if (attr->kind != NODE_ATTR || literal->kind != NODE_LITERAL)
        return ERR_OK;
    const struct filter_attr *about = &c->f->schema->attrs[attr->attr];
    if (about->type == FILTER_NUMBER)
        return meet_range(c, about, literal);
    return about->values ? meet_list(c, about, literal) : ERR_OK;
}

static enum err_code check_comparison(const struct check *c, struct node *n)
{
    struct node *a = &c->f->nodes[n->child];
    struct node *b = &c->f->nodes[a->next];
    bool equality = n->op == OP_EQ || n->op == OP_NE;
    enum err_code rc = unite(c, n, a, b);
    if (rc == ERR_OK && equality)
        rc = meet_values(c, a, b);
    if (rc == ERR_OK && equality)
        rc = meet_values(c, b, a);
    if (rc == ERR_OK && a->type == FILTER_BOOL && !equality)
        rc = filter_refuse(c->f, c->report, n->at, c->err,
                           "conditions have no order; compare them with = or <>");
    return rc;
}

/* BETWEEN and IN: all that follows is compared with the first child. */
static enum err_code check_all_alike(const struct check *c, struct node *n)
{
    struct node *what = &c->f->nodes[n->child];
    enum err_code rc = ERR_OK;
    if (what->type == FILTER_BOOL)
        return filter_refuse(c->f, c->report, n->at, c->err,
                             "a condition has no place before %s; use it alone, or NOT",
                             n->kind == NODE_IN ? "IN" : "BETWEEN");
    for (node_id id = what->next; id != NODE_NONE && rc == ERR_OK; id = c->f->nodes[id].next) {
        rc = unite(c, &c->f->nodes[id], what, &c->f->nodes[id]);
        if (rc == ERR_OK && n->kind == NODE_IN)
            rc = meet_values(c, what, &c->f->nodes[id]);
    }
    return rc;
}

static enum err_code check_each(const struct check *c, struct node *n, unsigned type,
                                const char *takes)
{
    for (node_id id = n->child; id != NODE_NONE; id = c->f->nodes[id].next) {
        const struct node *child = &c->f->nodes[id];
        if (child->type != type)
            return filter_refuse(c->f, c->report, child->at, c->err, "%s, not %s", takes,
                                 filter_type_name(child->type));
    }
    return ERR_OK;
}

static enum err_code check_has(const struct check *c, struct node *n)
{
    const struct node *what = &c->f->nodes[n->child];
    const struct node *list = &c->f->nodes[what->next];
    if (list->type != FILTER_LIST)
        return filter_refuse(c->f, c->report, list->at, c->err,
                             "IN takes a list attribute or values in parentheses, not %s",
                             filter_type_name(list->type));
    if (what->type != FILTER_STRING)
        return filter_refuse(c->f, c->report, what->at, c->err,
                             "the list holds strings; %s can never be in it",
                             filter_type_name(what->type));
    return ERR_OK;
}

/* The node's type follows from those of its children, which stand before it. */
static enum err_code check_node(const struct check *c, struct node *n)
{
    bool is_number = n->kind == NODE_ARITH || n->kind == NODE_SIGN;
    if (n->kind != NODE_LITERAL && n->kind != NODE_ATTR && n->kind != NODE_ENV)
        n->type = is_number ? FILTER_NUMBER : FILTER_BOOL;
    switch (n->kind) {
    case NODE_SIGN:
    case NODE_ARITH:
        return check_each(c, n, FILTER_NUMBER, "arithmetic takes numbers");
    case NODE_COMPARE:
        return check_comparison(c, n);
    case NODE_BETWEEN:
    case NODE_IN:
        return check_all_alike(c, n);
    case NODE_HAS:
        return check_has(c, n);
    case NODE_LIKE:
        return check_each(c, n, FILTER_STRING, "LIKE takes strings");
    case NODE_NOT:
        return check_each(c, n, FILTER_BOOL, "NOT takes a condition");
    case NODE_AND:
        return check_each(c, n, FILTER_BOOL, "AND joins conditions");
    case NODE_OR:
        return check_each(c, n, FILTER_BOOL, "OR joins conditions");
    default:
        return ERR_OK;
    }
}

/* Numbers of a list that has a decimal are all decimals, as a database would compare them. */
static void unite_numbers(struct filter *f, struct node *n)
{
    bool real = false;
    const struct node *what = node_at(f, n->child);
    if (n->kind != NODE_IN || what->type != FILTER_NUMBER)
        return;
    for (node_id id = what->next; id != NODE_NONE; id = f->nodes[id].next)
        real = real || f->nodes[id].value.is_real;
    for (node_id id = what->next; real && id != NODE_NONE; id = f->nodes[id].next) {
        struct filter_value *v = &f->nodes[id].value;
        double number = v->is_real ? v->real : (double)v->integer;
        v->real = number;
        v->is_real = true;
    }
}

static bool all_literal(const struct filter *f, const struct node *n)
{
    for (node_id id = n->child; id != NODE_NONE; id = f->nodes[id].next) {
        if (f->nodes[id].kind != NODE_LITERAL)
            return false;
    }
    return n->child != NODE_NONE;
}

static bool is_zero(const struct node *n)
{
    if (n->kind != NODE_LITERAL || n->value.type != FILTER_NUMBER)
        return false;
    return n->value.is_real ? n->value.real == 0.0 : n->value.integer == 0;
}

/* Arithmetic that is unknown whatever the row says. */
static bool always_null(const struct filter *f, const struct node *n)
{
    if (n->kind == NODE_SIGN)
        return node_is_null(node_child(f, n, 0));
    if (n->kind != NODE_ARITH)
        return false;
    return node_is_null(node_child(f, n, 0)) || node_is_null(node_child(f, n, 1)) ||
           (n->op == OP_DIV && is_zero(node_child(f, n, 1)));
}

/* What does not depend on a row is computed now. */
static void fold(struct filter *f, struct node *n)
{
    if (always_null(f, n))
        n->value = (struct filter_value){.type = FILTER_NULL};
    else if (all_literal(f, n))
        n->value = filter_node_value(f, NULL, n);
    else
        return;
    n->kind = NODE_LITERAL;
    n->child = NODE_NONE;
}

enum err_code filter_check(struct filter *f, struct filter_report *report, struct err *err)
{
    struct check c = {f, report, err};
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < f->node_count && rc == ERR_OK; i++)
        rc = check_node(&c, &f->nodes[i]);
    const struct node *root = node_at(f, f->root);
    if (rc == ERR_OK && root->type != FILTER_BOOL)
        rc = filter_refuse(f, report, root->at, err,
                           "a filter is a condition, this is %s; compare it with something",
                           filter_type_name(root->type));
    if (rc == ERR_OK)
        rc = filter_check_range(f, report, err);
    for (size_t i = 0; i < f->node_count && rc == ERR_OK; i++) {
        unite_numbers(f, &f->nodes[i]);
        fold(f, &f->nodes[i]);
    }
    return rc;
}
