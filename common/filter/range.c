/* SPDX-License-Identifier: MIT */
#include "common/filter/node.h"

#include <math.h>

/* MySQL fails a whole query when a double overflows; so arithmetic that might is refused before
 * it runs anywhere. For each number we know how large and, unless it is 0, how small it may be. */

#define RANGE_MAX 1e300
#define ATTR_MOST 9223372036854775808.0 /* attributes are 64-bit integers */

struct range {
    double most;
    double least; /* smallest but 0; infinite if it is always 0 */
    bool integral;
};

static struct range literal_range(const struct node *n)
{
    double size = fabs(n->value.is_real ? n->value.real : (double)n->value.integer);
    return (struct range){size, size > 0.0 ? size : (double)INFINITY, size == floor(size)};
}

static struct range sum_range(struct range a, struct range b)
{
    struct range sum = {a.most + b.most, a.least < b.least ? a.least : b.least, false};
    sum.integral = a.integral && b.integral;
    if (sum.integral)
        sum.least = 1.0;
    else
        sum.least = ldexp(sum.least, -53); /* two that nearly cancel leave a last digit */
    return sum;
}

static struct range quotient_range(struct range a, struct range b)
{
    if (isinf(b.least)) /* always divided by 0: always NULL */
        return (struct range){0.0, (double)INFINITY, true};
    return (struct range){a.most / b.least, a.least / b.most, false};
}

static struct range arith_range(const struct node *n, struct range a, struct range b)
{
    if (n->op == OP_DIV)
        return quotient_range(a, b);
    if (n->op != OP_MUL)
        return sum_range(a, b);
    struct range product = {a.most * b.most, a.least * b.least, a.integral && b.integral};
    if (product.integral && !isinf(product.least))
        product.least = 1.0;
    return product;
}

enum err_code filter_check_range(struct filter *f, struct filter_report *report, struct err *err)
{
    struct range ranges[FILTER_NODES_MAX];
    for (size_t i = 0; i < f->node_count; i++) {
        const struct node *n = &f->nodes[i];
        ranges[i] = (struct range){ATTR_MOST, 1.0, true};
        if (n->type != FILTER_NUMBER)
            continue;
        if (n->kind == NODE_LITERAL)
            ranges[i] = literal_range(n);
        if (n->kind == NODE_SIGN)
            ranges[i] = ranges[n->child];
        if (n->kind == NODE_ARITH)
            ranges[i] = arith_range(n, ranges[n->child], ranges[f->nodes[n->child].next]);
        if (!(ranges[i].most <= RANGE_MAX) && n->kind == NODE_ARITH)
            return filter_refuse(f, report, n->at, err,
                                 "the result could pass %g and overflow; use smaller factors, or "
                                 "larger divisors",
                                 RANGE_MAX);
    }
    return ERR_OK;
}
