/* SPDX-License-Identifier: MIT */
#include "common/filter/node.h"

#include "common/filter/like.h"

/* A leaf is a condition on one thing ("what") that known values decide: a comparison with a
 * literal, BETWEEN two literals, IN, LIKE, IS NULL, or NOT of these. Seen as the set of values for
 * which it is true, two leaves on the same thing can be compared. */

enum span_kind {
    SPAN_INTERVAL,
    SPAN_OUTSIDE, /* what is not in the interval */
    SPAN_LIST,
    SPAN_NOT_LIST,
    SPAN_LIKE,
    SPAN_NOT_LIKE,
    SPAN_NULL,
    SPAN_NOT_NULL,
};

struct span {
    enum span_kind kind;
    const struct filter *f;
    const struct node *what;
    const struct node *first; /* of the list */
    bool single;              /* the list is that one, whatever its next */
    const struct node *low;   /* NULL: no bound */
    const struct node *high;
    bool low_open; /* the bound itself is outside */
    bool high_open;
    struct sv pattern;
};

static bool same_value(const struct filter_value *a, const struct filter_value *b)
{
    if (a->type != b->type)
        return false;
    return a->type == FILTER_NULL || filter_value_order(a, b) == 0;
}

static bool nodes_equal(const struct filter *fa, const struct node *a, const struct filter *fb,
                        const struct node *b)
{
    if (a->kind != b->kind || a->op != b->op || a->type != b->type || a->attr != b->attr ||
        !same_value(&a->value, &b->value))
        return false;
    node_id ca = a->child;
    node_id cb = b->child;
    while (ca != NODE_NONE && cb != NODE_NONE) {
        const struct node *na = node_at(fa, ca);
        const struct node *nb = node_at(fb, cb);
        if (!nodes_equal(fa, na, fb, nb))
            return false;
        ca = na->next;
        cb = nb->next;
    }
    return ca == NODE_NONE && cb == NODE_NONE;
}

bool filter_nodes_equal(const struct filter *fa, const struct node *a, const struct filter *fb,
                        const struct node *b)
{
    return fa->schema == fb->schema && nodes_equal(fa, a, fb, b);
}

/* The operator with its sides exchanged; for `opposite`, what is true when it is false. */
static unsigned turned_op(unsigned op, bool exchanged, bool opposite)
{
    static const uint8_t mirrors[] = {
        [OP_EQ] = OP_EQ, [OP_NE] = OP_NE, [OP_LT] = OP_GT,
        [OP_LE] = OP_GE, [OP_GT] = OP_LT, [OP_GE] = OP_LE,
    };
    static const uint8_t opposites[] = {
        [OP_EQ] = OP_NE, [OP_NE] = OP_EQ, [OP_LT] = OP_GE,
        [OP_LE] = OP_GT, [OP_GT] = OP_LE, [OP_GE] = OP_LT,
    };
    op = exchanged ? mirrors[op] : op;
    return opposite ? opposites[op] : op;
}

static bool is_known(const struct node *n)
{
    return n->kind == NODE_LITERAL && n->value.type != FILTER_NULL;
}

static bool comparison_span(const struct node *n, bool negated, struct span *ret)
{
    const struct node *a = node_child(ret->f, n, 0);
    const struct node *b = node_child(ret->f, n, 1);
    bool exchanged = a->kind == NODE_LITERAL;
    unsigned op = turned_op(n->op, exchanged, negated);
    ret->what = exchanged ? b : a;
    ret->first = exchanged ? a : b;
    ret->single = true;
    if (op == OP_EQ || op == OP_NE) {
        ret->kind = op == OP_EQ ? SPAN_LIST : SPAN_NOT_LIST;
        return is_known(ret->first);
    }
    bool above = op == OP_GT || op == OP_GE;
    ret->kind = SPAN_INTERVAL;
    ret->low = above ? ret->first : NULL;
    ret->high = above ? NULL : ret->first;
    ret->low_open = op == OP_GT;
    ret->high_open = op == OP_LT;
    return is_known(ret->first);
}

static bool between_span(const struct node *n, bool negated, struct span *ret)
{
    ret->kind = negated ? SPAN_OUTSIDE : SPAN_INTERVAL;
    ret->low = node_child(ret->f, n, 1);
    ret->high = node_child(ret->f, n, 2);
    return is_known(ret->low) && is_known(ret->high);
}

/* false: not a leaf. */
static bool span_of(const struct filter *f, const struct node *n, bool negated, struct span *ret)
{
    for (; n->kind == NODE_NOT; n = node_at(f, n->child))
        negated = !negated;
    if (n->child == NODE_NONE)
        return false;
    *ret = (struct span){.f = f, .what = node_at(f, n->child)};
    switch (n->kind) {
    case NODE_COMPARE:
        return comparison_span(n, negated, ret);
    case NODE_BETWEEN:
        return between_span(n, negated, ret);
    case NODE_IN:
        ret->kind = negated ? SPAN_NOT_LIST : SPAN_LIST;
        ret->first = node_at(f, ret->what->next);
        return true;
    case NODE_LIKE:
        ret->kind = negated ? SPAN_NOT_LIKE : SPAN_LIKE;
        ret->pattern = n->value.text;
        return true;
    case NODE_IS_NULL:
        ret->kind = negated ? SPAN_NOT_NULL : SPAN_NULL;
        return true;
    default:
        return false;
    }
}

static const struct node *list_next(const struct span *s, const struct node *item)
{
    return s->single || item->next == NODE_NONE ? NULL : node_at(s->f, item->next);
}

static bool in_interval(const struct span *s, const struct filter_value *v)
{
    int low = s->low ? filter_value_order(v, &s->low->value) : 1;
    int high = s->high ? filter_value_order(v, &s->high->value) : -1;
    return (s->low_open ? low > 0 : low >= 0) && (s->high_open ? high < 0 : high <= 0);
}

static bool in_list(const struct span *s, const struct filter_value *v)
{
    for (const struct node *item = s->first; item; item = list_next(s, item)) {
        if (filter_value_order(&item->value, v) == 0)
            return true;
    }
    return false;
}

/* The leaf is true for that value, which is not NULL. */
static bool holds(const struct span *s, const struct filter_value *v)
{
    switch (s->kind) {
    case SPAN_INTERVAL:
        return in_interval(s, v);
    case SPAN_OUTSIDE:
        return !in_interval(s, v);
    case SPAN_LIST:
        return in_list(s, v);
    case SPAN_NOT_LIST:
        return !in_list(s, v);
    case SPAN_LIKE:
        return like_match(s->pattern, v->text);
    case SPAN_NOT_LIKE:
        return !like_match(s->pattern, v->text);
    default:
        return s->kind == SPAN_NOT_NULL;
    }
}

/* How many of the list's values satisfy the other leaf: all, or none. */
static bool list_all(const struct span *list, const struct span *other, bool wanted)
{
    for (const struct node *item = list->first; item; item = list_next(list, item)) {
        if (holds(other, &item->value) != wanted)
            return false;
    }
    return true;
}

/* a ends before b begins. */
static bool below(const struct span *a, const struct span *b)
{
    if (!a->high || !b->low)
        return false;
    int distance = filter_value_order(&a->high->value, &b->low->value);
    return distance < 0 || (distance == 0 && (a->high_open || b->low_open));
}

bool filter_leaves_exclude(const struct filter *f, const struct node *a, const struct node *b,
                           bool negated)
{
    struct span sa;
    struct span sb;
    if (!span_of(f, a, negated, &sa) || !span_of(f, b, negated, &sb) ||
        !nodes_equal(f, sa.what, f, sb.what))
        return false;
    if (sa.kind == SPAN_NULL || sb.kind == SPAN_NULL)
        return sa.kind != sb.kind;
    if (sa.kind == SPAN_LIST)
        return list_all(&sa, &sb, false);
    if (sb.kind == SPAN_LIST)
        return list_all(&sb, &sa, false);
    return sa.kind == SPAN_INTERVAL && sb.kind == SPAN_INTERVAL &&
           (below(&sa, &sb) || below(&sb, &sa));
}

/* Both intervals: the bound of a is at least as tight as that of b, on each side. */
static bool interval_within(const struct span *a, const struct span *b)
{
    if ((b->low && !a->low) || (b->high && !a->high))
        return false;
    int low = b->low ? filter_value_order(&a->low->value, &b->low->value) : 1;
    int high = b->high ? filter_value_order(&a->high->value, &b->high->value) : -1;
    return (low > 0 || (low == 0 && (a->low_open || !b->low_open))) &&
           (high < 0 || (high == 0 && (a->high_open || !b->high_open)));
}

bool filter_leaf_within(const struct filter *fa, const struct node *a, const struct filter *fb,
                        const struct node *b)
{
    struct span sa;
    struct span sb;
    if (!span_of(fa, a, false, &sa) || !span_of(fb, b, false, &sb) ||
        !filter_nodes_equal(fa, sa.what, fb, sb.what))
        return false;
    if (sa.kind == SPAN_NULL || sb.kind == SPAN_NULL)
        return sa.kind == sb.kind;
    if (sb.kind == SPAN_NOT_NULL)
        return true;
    if (sa.kind == SPAN_LIST)
        return list_all(&sa, &sb, true);
    if (sb.kind == SPAN_NOT_LIST)
        return list_all(&sb, &sa, false);
    return sa.kind == SPAN_INTERVAL && sb.kind == SPAN_INTERVAL && interval_within(&sa, &sb);
}
