/* SPDX-License-Identifier: MIT */
#include "common/filter/node.h"

#define MAYBE_FALSE TRUTH_BIT(FILTER_FALSE)
#define MAYBE_TRUE TRUTH_BIT(FILTER_TRUE)
#define MAYBE_UNKNOWN TRUTH_BIT(FILTER_UNKNOWN)

static unsigned opposite(unsigned truths)
{
    unsigned turned = truths & MAYBE_UNKNOWN;
    if (truths & MAYBE_FALSE)
        turned |= MAYBE_TRUE;
    if (truths & MAYBE_TRUE)
        turned |= MAYBE_FALSE;
    return turned;
}

/* What both may give together under AND; OR is the opposite of AND of opposites. */
static unsigned both(unsigned a, unsigned b)
{
    unsigned result = 0;
    if ((a | b) & MAYBE_FALSE)
        result |= MAYBE_FALSE;
    if (a & b & MAYBE_TRUE)
        result |= MAYBE_TRUE;
    bool unknown = ((a & MAYBE_UNKNOWN) && (b & (MAYBE_UNKNOWN | MAYBE_TRUE))) ||
                   ((b & MAYBE_UNKNOWN) && (a & MAYBE_TRUE));
    return unknown ? result | MAYBE_UNKNOWN : result;
}

static unsigned joined_truths(const struct filter *f, const struct node *n)
{
    bool is_and = n->kind == NODE_AND;
    unsigned result = MAYBE_TRUE;
    for (node_id id = n->child; id != NODE_NONE; id = node_at(f, id)->next) {
        unsigned part = node_at(f, id)->truths;
        result = both(result, is_and ? part : opposite(part));
    }
    /* Two parts that exclude each other: never both true under AND, never both false under OR. */
    for (node_id a = n->child; a != NODE_NONE && (result & MAYBE_TRUE); a = node_at(f, a)->next) {
        for (node_id b = node_at(f, a)->next; b != NODE_NONE; b = node_at(f, b)->next) {
            if (filter_leaves_exclude(f, node_at(f, a), node_at(f, b), !is_and))
                result &= ~MAYBE_TRUE;
        }
    }
    return is_and ? result : opposite(result);
}

static unsigned literal_truths(const struct node *n)
{
    if (n->value.type == FILTER_NULL)
        return MAYBE_UNKNOWN;
    return n->value.truth ? MAYBE_TRUE : MAYBE_FALSE;
}

static bool has_null_child(const struct filter *f, const struct node *n)
{
    for (node_id id = n->child; id != NODE_NONE; id = node_at(f, id)->next) {
        if (node_is_null(node_at(f, id)))
            return true;
    }
    return false;
}

static bool same_sides(const struct filter *f, const struct node *n)
{
    return filter_nodes_equal(f, node_child(f, n, 0), f, node_child(f, n, 1));
}

static unsigned compare_truths(const struct filter *f, const struct node *n)
{
    if (!same_sides(f, n))
        return TRUTHS_ALL;
    bool holds = n->op == OP_EQ || n->op == OP_LE || n->op == OP_GE;
    return (holds ? MAYBE_TRUE : MAYBE_FALSE) | MAYBE_UNKNOWN;
}

static unsigned between_truths(const struct filter *f, const struct node *n)
{
    const struct node *low = node_child(f, n, 1);
    const struct node *high = node_child(f, n, 2);
    bool empty = low->kind == NODE_LITERAL && high->kind == NODE_LITERAL &&
                 filter_value_order(&low->value, &high->value) > 0;
    return empty ? MAYBE_FALSE | MAYBE_UNKNOWN : TRUTHS_ALL;
}

static unsigned node_truths(const struct filter *f, const struct node *n)
{
    if (n->kind == NODE_LITERAL)
        return literal_truths(n);
    if (n->kind == NODE_NOT)
        return opposite(node_at(f, n->child)->truths);
    if (n->kind == NODE_AND || n->kind == NODE_OR)
        return joined_truths(f, n);
    if (n->kind == NODE_IS_NULL)
        return MAYBE_FALSE | MAYBE_TRUE;
    if (n->kind != NODE_BETWEEN && has_null_child(f, n))
        return MAYBE_UNKNOWN;
    if (n->kind == NODE_COMPARE)
        return compare_truths(f, n);
    if (n->kind == NODE_BETWEEN && !has_null_child(f, n))
        return between_truths(f, n);
    if (n->kind == NODE_LIKE && n->value.text.len == 1 && n->value.text.ptr[0] == '\xFF')
        return MAYBE_TRUE | MAYBE_UNKNOWN;
    return TRUTHS_ALL;
}

void filter_check_truths(struct filter *f)
{
    for (size_t i = 0; i < f->node_count; i++) {
        struct node *n = &f->nodes[i];
        n->truths = (uint8_t)(n->type == FILTER_BOOL ? node_truths(f, n) : 0);
    }
}

static void add_warning(const struct filter *f, struct filter_report *report, const struct node *n,
                        const char *text)
{
    if (report->warning_count == FILTER_WARNINGS_MAX)
        return;
    struct filter_warning *warning = &report->warnings[report->warning_count++];
    warning->place = filter_place((struct sv){f->text, f->text_len}, n->at);
    (void)snprintf(warning->text, sizeof(warning->text), "at column %u: %s", warning->place.column,
                   text);
}

/* Parts of the whole that do nothing; what is inside such a part is not told again. */
static void warn_parts(const struct filter *f, struct filter_report *report, const struct node *n)
{
    if (n->kind != NODE_AND && n->kind != NODE_OR && n->kind != NODE_NOT)
        return;
    for (node_id id = n->child; id != NODE_NONE; id = node_at(f, id)->next) {
        const struct node *part = node_at(f, id);
        if (part->truths == MAYBE_TRUE)
            add_warning(f, report, part, "this part is always true");
        else if (!(part->truths & MAYBE_TRUE) && n->kind != NODE_NOT)
            add_warning(f, report, part, "this part is never true");
        else
            warn_parts(f, report, part);
    }
}

void filter_warn(const struct filter *f, struct filter_report *report)
{
    const struct node *root = node_at(f, f->root);
    report->always_true = root->truths == MAYBE_TRUE;
    report->never_true = !(root->truths & MAYBE_TRUE);
    if (report->always_true)
        add_warning(f, report, root, "the filter is always true: it matches every job");
    else if (report->never_true)
        add_warning(f, report, root, "the filter is never true: no job can match it");
    else if (!(root->truths & MAYBE_FALSE))
        add_warning(f, report, root, "the filter matches every job that has what it reads");
    else
        warn_parts(f, report, root);
}
