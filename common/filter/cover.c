/* SPDX-License-Identifier: MIT */
#include "common/filter/node.h"

/* Whether one filter holds wherever another does is hard in general; this tells the simple cases
 * that people write, within a fixed cost (some milliseconds). "false" means: not told. */

#define COVER_COST_MAX 1000000

struct cover {
    const struct filter *earlier;
    const struct filter *later;
    size_t cost_left;
};

static bool covers(struct cover *c, const struct node *earlier, const struct node *later);

/* Some child of the earlier node (of the later one) will do. */
static bool any_earlier(struct cover *c, const struct node *earlier, const struct node *later)
{
    for (node_id id = earlier->child; id != NODE_NONE; id = node_at(c->earlier, id)->next) {
        if (covers(c, node_at(c->earlier, id), later))
            return true;
    }
    return false;
}

static bool any_later(struct cover *c, const struct node *earlier, const struct node *later)
{
    for (node_id id = later->child; id != NODE_NONE; id = node_at(c->later, id)->next) {
        if (covers(c, earlier, node_at(c->later, id)))
            return true;
    }
    return false;
}

static bool all_earlier(struct cover *c, const struct node *earlier, const struct node *later)
{
    for (node_id id = earlier->child; id != NODE_NONE; id = node_at(c->earlier, id)->next) {
        if (!covers(c, node_at(c->earlier, id), later))
            return false;
    }
    return true;
}

static bool all_later(struct cover *c, const struct node *earlier, const struct node *later)
{
    for (node_id id = later->child; id != NODE_NONE; id = node_at(c->later, id)->next) {
        if (!covers(c, earlier, node_at(c->later, id)))
            return false;
    }
    return true;
}

static size_t children(const struct filter *f, const struct node *n)
{
    size_t count = 0;
    for (node_id id = n->child; id != NODE_NONE; id = node_at(f, id)->next)
        count++;
    return count;
}

static bool covers(struct cover *c, const struct node *earlier, const struct node *later)
{
    size_t cost = 1 + children(c->earlier, earlier) * children(c->later, later);
    if (c->cost_left < cost)
        return false;
    c->cost_left -= cost;
    if (earlier->truths == TRUTH_BIT(FILTER_TRUE) || !(later->truths & TRUTH_BIT(FILTER_TRUE)))
        return true;
    if (filter_nodes_equal(c->earlier, earlier, c->later, later))
        return true;
    if (later->kind == NODE_OR)
        return all_later(c, earlier, later);
    if (earlier->kind == NODE_AND)
        return all_earlier(c, earlier, later);
    if (earlier->kind == NODE_OR && any_earlier(c, earlier, later))
        return true;
    if (later->kind == NODE_AND)
        return any_later(c, earlier, later);
    return filter_leaf_within(c->later, later, c->earlier, earlier);
}

bool filter_covers(const struct filter *earlier, const struct filter *later)
{
    struct cover c = {earlier, later, COVER_COST_MAX};
    if (earlier->schema != later->schema)
        return false;
    return covers(&c, node_at(earlier, earlier->root), node_at(later, later->root));
}
