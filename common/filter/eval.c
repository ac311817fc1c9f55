/* SPDX-License-Identifier: MIT */
#include "common/filter/node.h"

#include "common/filter/like.h"

#include <math.h>

static const struct filter_value null_value = {.type = FILTER_NULL};

static enum filter_truth truth_of(bool truth)
{
    return truth ? FILTER_TRUE : FILTER_FALSE;
}

static double real_of(const struct filter_value *v)
{
    return v->is_real ? v->real : (double)v->integer;
}

static int order(bool less, bool greater)
{
    return (int)greater - (int)less;
}

static int compare_texts(struct sv a, struct sv b)
{
    size_t both = a.len < b.len ? a.len : b.len;
    int first = both ? memcmp(a.ptr, b.ptr, both) : 0;
    return first ? first : order(a.len<b.len, a.len> b.len);
}

int filter_value_order(const struct filter_value *a, const struct filter_value *b)
{
    if (a->type == FILTER_STRING)
        return compare_texts(a->text, b->text);
    if (a->type == FILTER_BOOL)
        return (int)a->truth - (int)b->truth;
    if (!a->is_real && !b->is_real)
        return order(a->integer<b->integer, a->integer> b->integer);
    double left = real_of(a);
    double right = real_of(b);
    return order(left<right, left> right);
}

static bool op_holds(unsigned op, int order_of_sides)
{
    switch (op) {
    case OP_EQ:
        return order_of_sides == 0;
    case OP_NE:
        return order_of_sides != 0;
    case OP_LT:
        return order_of_sides < 0;
    case OP_LE:
        return order_of_sides <= 0;
    case OP_GT:
        return order_of_sides > 0;
    default:
        return order_of_sides >= 0;
    }
}

static struct filter_value attr_value(const struct filter_row *row, const struct node *n)
{
    const struct filter_value *v = &row->values[n->attr];
    bool not_a_number = v->type == FILTER_NUMBER && v->is_real && !isfinite(v->real);
    return v->type == n->type && !not_a_number ? *v : null_value;
}

static struct filter_value env_value(const struct filter_row *row, const struct node *n)
{
    struct filter_value v = {.type = FILTER_STRING};
    if (!row->env || !row->env(row->env_ctx, n->value.text, &v.text))
        return null_value;
    return v;
}

static struct filter_value number(double real)
{
    if (!isfinite(real))
        return null_value;
    return (struct filter_value){.type = FILTER_NUMBER, .is_real = true, .real = real};
}

static struct filter_value arith_value(const struct filter *f, const struct filter_row *row,
                                       const struct node *n)
{
    const struct node *first = node_at(f, n->child);
    struct filter_value left = filter_node_value(f, row, first);
    if (left.type == FILTER_NULL)
        return null_value;
    if (n->kind == NODE_SIGN)
        return n->op == OP_SUB ? number(0.0 - real_of(&left)) : left;
    struct filter_value right = filter_node_value(f, row, node_at(f, first->next));
    if (right.type == FILTER_NULL)
        return null_value;
    double a = real_of(&left);
    double b = real_of(&right);
    switch (n->op) {
    case OP_ADD:
        return number(a + b);
    case OP_SUB:
        return number(a - b);
    case OP_MUL:
        return number(a * b);
    default:
        return b == 0.0 ? null_value : number(a / b);
    }
}

struct filter_value filter_node_value(const struct filter *f, const struct filter_row *row,
                                      const struct node *n)
{
    switch (n->kind) {
    case NODE_LITERAL:
        return n->value;
    case NODE_ATTR:
        return attr_value(row, n);
    case NODE_ENV:
        return env_value(row, n);
    case NODE_SIGN:
    case NODE_ARITH:
        return arith_value(f, row, n);
    default:
        break;
    }
    enum filter_truth truth = filter_node_truth(f, row, n);
    if (truth == FILTER_UNKNOWN)
        return null_value;
    return (struct filter_value){.type = FILTER_BOOL, .truth = truth == FILTER_TRUE};
}

static enum filter_truth compare(const struct filter_value *a, unsigned op,
                                 const struct filter_value *b)
{
    if (a->type == FILTER_NULL || b->type == FILTER_NULL)
        return FILTER_UNKNOWN;
    return truth_of(op_holds(op, filter_value_order(a, b)));
}

static enum filter_truth compare_truth(const struct filter *f, const struct filter_row *row,
                                       const struct node *n)
{
    const struct node *first = node_at(f, n->child);
    struct filter_value left = filter_node_value(f, row, first);
    struct filter_value right = filter_node_value(f, row, node_at(f, first->next));
    return compare(&left, n->op, &right);
}

static enum filter_truth between_truth(const struct filter *f, const struct filter_row *row,
                                       const struct node *n)
{
    struct filter_value what = filter_node_value(f, row, node_child(f, n, 0));
    struct filter_value low = filter_node_value(f, row, node_child(f, n, 1));
    struct filter_value high = filter_node_value(f, row, node_child(f, n, 2));
    enum filter_truth above = compare(&what, OP_GE, &low);
    enum filter_truth below = compare(&what, OP_LE, &high);
    if (above == FILTER_FALSE || below == FILTER_FALSE)
        return FILTER_FALSE;
    return above == FILTER_UNKNOWN || below == FILTER_UNKNOWN ? FILTER_UNKNOWN : FILTER_TRUE;
}

/* The values of the list are literals and never NULL. */
static enum filter_truth in_truth(const struct filter *f, const struct filter_row *row,
                                  const struct node *n)
{
    const struct node *item = node_at(f, n->child);
    struct filter_value what = filter_node_value(f, row, item);
    if (what.type == FILTER_NULL)
        return FILTER_UNKNOWN;
    while (item->next != NODE_NONE) {
        item = node_at(f, item->next);
        if (filter_value_order(&what, &item->value) == 0)
            return FILTER_TRUE;
    }
    return FILTER_FALSE;
}

static enum filter_truth has_truth(const struct filter *f, const struct filter_row *row,
                                   const struct node *n)
{
    struct filter_value what = filter_node_value(f, row, node_child(f, n, 0));
    struct filter_value list = filter_node_value(f, row, node_child(f, n, 1));
    if (what.type == FILTER_NULL || list.type == FILTER_NULL)
        return FILTER_UNKNOWN;
    for (size_t i = 0; i < list.list.count; i++) {
        if (sv_eq(what.text, list.list.items[i]))
            return FILTER_TRUE;
    }
    return FILTER_FALSE;
}

static enum filter_truth like_truth(const struct filter *f, const struct filter_row *row,
                                    const struct node *n)
{
    struct filter_value what = filter_node_value(f, row, node_at(f, n->child));
    if (what.type == FILTER_NULL)
        return FILTER_UNKNOWN;
    return truth_of(like_match(n->value.text, what.text));
}

/* AND ends at the first FALSE, OR at the first TRUE. */
static enum filter_truth joined_truth(const struct filter *f, const struct filter_row *row,
                                      const struct node *n)
{
    enum filter_truth decides = truth_of(n->kind == NODE_OR);
    enum filter_truth result = truth_of(n->kind == NODE_AND);
    for (node_id id = n->child; id != NODE_NONE; id = node_at(f, id)->next) {
        enum filter_truth part = filter_node_truth(f, row, node_at(f, id));
        if (part == decides)
            return decides;
        if (part == FILTER_UNKNOWN)
            result = FILTER_UNKNOWN;
    }
    return result;
}

static enum filter_truth not_truth(enum filter_truth truth)
{
    return truth == FILTER_UNKNOWN ? FILTER_UNKNOWN : truth_of(truth == FILTER_FALSE);
}

enum filter_truth filter_node_truth(const struct filter *f, const struct filter_row *row,
                                    const struct node *n)
{
    switch (n->kind) {
    case NODE_AND:
    case NODE_OR:
        return joined_truth(f, row, n);
    case NODE_NOT:
        return not_truth(filter_node_truth(f, row, node_at(f, n->child)));
    case NODE_COMPARE:
        return compare_truth(f, row, n);
    case NODE_BETWEEN:
        return between_truth(f, row, n);
    case NODE_IN:
        return in_truth(f, row, n);
    case NODE_HAS:
        return has_truth(f, row, n);
    case NODE_LIKE:
        return like_truth(f, row, n);
    case NODE_IS_NULL:
        return truth_of(filter_node_value(f, row, node_at(f, n->child)).type == FILTER_NULL);
    default:
        break;
    }
    struct filter_value v = filter_node_value(f, row, n);
    return v.type == FILTER_BOOL ? truth_of(v.truth) : FILTER_UNKNOWN;
}

enum filter_truth filter_eval(const struct filter *filter, const struct filter_row *row)
{
    return filter_node_truth(filter, row, node_at(filter, filter->root));
}
