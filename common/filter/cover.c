/* SPDX-License-Identifier: MIT */
#include "common/filter/node.h"

/* Whether one filter holds wherever another does is hard in general; this tells the simple cases
 * that people write, within a fixed number of steps. "false" means: not told. */

#define COVER_STEPS 20000

struct cover {
    const struct filter *earlier;
    const struct filter *later;
    unsigned steps_left;
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

static bool covers(struct cover *c, const struct node *earlier, const struct node *later)
{
    if (c->steps_left == 0)
        return false;
    c->steps_left--;
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
    struct cover c = {earlier, later, COVER_STEPS};
    if (earlier->schema != later->schema)
        return false;
    return covers(&c, node_at(earlier, earlier->root), node_at(later, later->root));
}
