/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILTER_NODE_H
#define COMMON_FILTER_NODE_H

/* node: inside of the filter module: the compiled form. A filter is one array of nodes in which
 * children stand before their parents, so what goes from leaves to root is a loop; what goes from
 * root to leaves recurses, FILTER_DEPTH_MAX deep at most. Threads, memory: as filter.h. */

#include "common/base/nearest.h"
#include "common/filter/filter.h"

enum node_kind {
    NODE_LITERAL, /* value; its type NULL with node type T is a T that is unknown */
    NODE_ATTR,    /* attr */
    NODE_ENV,     /* value.text is NAME */
    NODE_SIGN,    /* child; op ADD or SUB */
    NODE_ARITH,   /* two children */
    NODE_COMPARE, /* two children */
    NODE_BETWEEN, /* three children */
    NODE_IN,      /* what, then literals of its type */
    NODE_HAS,     /* what, then a list attribute */
    NODE_LIKE,    /* what; value.text is the pattern in the form of like.h */
    NODE_IS_NULL, /* child */
    NODE_NOT,     /* child */
    NODE_AND,     /* two or more children */
    NODE_OR,      /* two or more children */
};

enum node_op { OP_NONE, OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE, OP_ADD, OP_SUB, OP_MUL, OP_DIV };

/* Which results a condition can have. */
#define TRUTH_BIT(truth) (1u << (truth))
#define TRUTHS_ALL 7u

typedef uint16_t node_id;
#define NODE_NONE ((node_id)0xFFFF)

struct node {
    uint8_t kind;
    uint8_t op;
    uint8_t type; /* enum filter_type; a condition is FILTER_BOOL */
    uint8_t depth;
    uint8_t truths; /* of a condition: TRUTH_BIT()s */
    node_id child;  /* first */
    node_id next;   /* sibling */
    uint16_t attr;
    uint32_t at; /* where it stands in the text */
    struct filter_value value;
};

struct filter {
    const struct filter_schema *schema;
    struct node *nodes;
    size_t node_count;
    node_id root;
    char *text; /* copy of the source; names point into it */
    size_t text_len;
    char *chars; /* strings and patterns without their escapes; at most text_len bytes */
    size_t chars_len;
    node_id *uses; /* the first node of each attribute and variable */
    size_t use_count;
};

static inline const struct node *node_at(const struct filter *f, node_id id)
{
    return &f->nodes[id];
}

/* The child of that index, from 0. */
static inline const struct node *node_child(const struct filter *f, const struct node *n, int index)
{
    const struct node *child = node_at(f, n->child);
    while (index-- > 0)
        child = node_at(f, child->next);
    return child;
}

static inline bool node_is_null(const struct node *n)
{
    return n->kind == NODE_LITERAL && n->value.type == FILTER_NULL;
}

/* parser.c: text to nodes; only the types of leaves are known. */
MUST_USE enum err_code filter_parse(struct filter *f, struct filter_report *report,
                                    struct err *err);
/* check.c: types, ranges, constants folded, what can be true. */
MUST_USE enum err_code filter_check(struct filter *f, struct filter_report *report,
                                    struct err *err);
/* range.c: refuses arithmetic that could leave the range of a double. */
MUST_USE enum err_code filter_check_range(struct filter *f, struct filter_report *report,
                                          struct err *err);
/* warn.c: which results each condition can have; warnings into the report. */
void filter_check_truths(struct filter *f);
void filter_warn(const struct filter *f, struct filter_report *report);

/* eval.c: the value of any node; a condition gives a FILTER_BOOL, or FILTER_NULL for unknown. */
struct filter_value filter_node_value(const struct filter *f, const struct filter_row *row,
                                      const struct node *n);
enum filter_truth filter_node_truth(const struct filter *f, const struct filter_row *row,
                                    const struct node *n);

/* Below, at or above 0; neither is NULL, both have one type. */
int filter_value_order(const struct filter_value *a, const struct filter_value *b);

/* leaf.c: what one condition on a name says about another on the same name. */
bool filter_nodes_equal(const struct filter *fa, const struct node *a, const struct filter *fb,
                        const struct node *b);
/* Both never hold for one row; with `negated`, the opposites of both never do. */
bool filter_leaves_exclude(const struct filter *f, const struct node *a, const struct node *b,
                           bool negated);
/* Where a holds (is TRUE), b holds too. */
bool filter_leaf_within(const struct filter *fa, const struct node *a, const struct filter *fb,
                        const struct node *b);

/* report.c: places and pictures. */
struct filter_place filter_place(struct sv text, size_t position);
enum err_code filter_refuse(const struct filter *f, struct filter_report *report, size_t at,
                            struct err *err, const char *format, ...) PRINTF_LIKE(5, 6);
const char *filter_type_name(unsigned type); /* "a string" */

#endif
