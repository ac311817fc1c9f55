/* SPDX-License-Identifier: MIT */
#include "common/filter/filter_sql.h"

#include "common/filter/node.h"
#include "common/filter/sql_param.h"

/* Why the SQL looks as it does:
 *  - A _bin collation may pad: 'a ' equals 'a'. As bytes it does not, hence CAST(... AS BINARY);
 *    of a column an equality that can use an index is asked for too.
 *  - BETWEEN of mixed types follows rules of its own; comparisons in pairs do not.
 *  - "+ 0e0" makes a double of any number, so that nothing is computed in DECIMAL or UNSIGNED.
 *  - LIKE's own escape depends on the SQL mode; ours is always |. */

struct writer {
    const struct filter *f;
    const struct filter_columns *columns;
    struct buf *sql;
    struct filter_params *params;
    struct err *err;
    enum err_code rc; /* the first error; nothing is written behind it */
};

static void write_condition(struct writer *w, const struct node *n);

static void out(struct writer *w, const char *text)
{
    if (w->rc != ERR_OK || buf_add_text(w->sql, text))
        return;
    if (w->sql->starved)
        w->rc = err_set(w->err, ERR_NOMEM, "out of memory for a filter's statement");
    else
        w->rc = err_set(w->err, ERR_FILTER,
                        "the filter makes a statement of more than %zu bytes; "
                        "make it shorter",
                        w->sql->limit);
}

static void placeholder(struct writer *w, struct filter_param param)
{
    out(w, "?");
    if (w->rc == ERR_OK)
        w->rc = filter_params_add(w->params, param, w->err);
    else
        free(param.text);
}

static void text_placeholder(struct writer *w, char *take_text, size_t length)
{
    if (!take_text && w->rc == ERR_OK)
        w->rc = err_set(w->err, ERR_NOMEM, "no memory for the parameters of a filter");
    placeholder(w, (struct filter_param){FILTER_PARAM_TEXT, take_text, length, 0, 0.0});
}

static void real_placeholder(struct writer *w, double real)
{
    placeholder(w, (struct filter_param){.kind = FILTER_PARAM_REAL, .real = real});
}

static void write_literal(struct writer *w, const struct filter_value *v)
{
    size_t length = 0;
    char *text = NULL;
    switch (v->type) {
    case FILTER_STRING:
        text = filter_param_copy(v->text, &length);
        text_placeholder(w, text, length);
        return;
    case FILTER_TIME:
        out(w, "CAST(");
        text = filter_param_time(v->integer, &length);
        text_placeholder(w, text, length);
        out(w, " AS DATETIME(6))");
        return;
    case FILTER_NUMBER:
        if (v->is_real)
            real_placeholder(w, v->real);
        else
            placeholder(w,
                        (struct filter_param){.kind = FILTER_PARAM_INTEGER, .integer = v->integer});
        return;
    case FILTER_BOOL:
        out(w, v->truth ? "TRUE" : "FALSE");
        return;
    default:
        out(w, "NULL");
    }
}

static void write_attr(struct writer *w, const struct node *n)
{
    const char *column = w->columns->attrs[n->attr];
    if (!column && w->rc == ERR_OK)
        w->rc = filter_refuse(w->f, NULL, n->at, w->err, "'%s' cannot be searched for",
                              w->f->schema->attrs[n->attr].name);
    if (column)
        out(w, column);
}

static void write_env(struct writer *w, const struct node *n)
{
    size_t length = 0;
    char *path = NULL;
    if (!w->columns->env) {
        if (w->rc == ERR_OK)
            w->rc = filter_refuse(w->f, NULL, n->at, w->err, "env cannot be searched");
        return;
    }
    out(w, "JSON_UNQUOTE(JSON_EXTRACT(");
    out(w, w->columns->env);
    out(w, ", ");
    path = filter_param_path(w->columns->env_path, n->value.text, &length);
    text_placeholder(w, path, length);
    out(w, "))");
}

/* A number as a double. */
static void write_real(struct writer *w, const struct node *n)
{
    static const char *const ops[] = {
        [OP_ADD] = " + ", [OP_SUB] = " - ", [OP_MUL] = " * ", [OP_DIV] = " / "};
    if (n->kind == NODE_LITERAL) { /* not NULL: such arithmetic was folded */
        real_placeholder(w, n->value.is_real ? n->value.real : (double)n->value.integer);
        return;
    }
    out(w, "(");
    if (n->kind == NODE_ARITH) {
        write_real(w, node_child(w->f, n, 0));
        out(w, ops[n->op]);
        write_real(w, node_child(w->f, n, 1));
    } else if (n->kind == NODE_SIGN) {
        out(w, n->op == OP_SUB ? "0e0 - " : "0e0 + ");
        write_real(w, node_child(w->f, n, 0));
    } else {
        write_attr(w, n);
        out(w, " + 0e0");
    }
    out(w, ")");
}

static void write_value(struct writer *w, const struct node *n)
{
    switch (n->kind) {
    case NODE_LITERAL:
        write_literal(w, &n->value);
        return;
    case NODE_ENV:
        write_env(w, n);
        return;
    case NODE_ARITH:
        write_real(w, n);
        return;
    case NODE_SIGN:
        if (n->op == OP_SUB)
            write_real(w, n);
        else
            write_value(w, node_child(w->f, n, 0));
        return;
    case NODE_ATTR:
        if (n->type != FILTER_BOOL) {
            write_attr(w, n);
            return;
        }
        break;
    default:
        break;
    }
    write_condition(w, n);
}

static void write_bytes(struct writer *w, const struct node *n)
{
    out(w, "CAST(");
    write_value(w, n);
    out(w, " AS BINARY)");
}

static bool is_indexable(const struct node *a, const struct node *b)
{
    return (a->kind == NODE_ATTR && b->kind == NODE_LITERAL) ||
           (a->kind == NODE_LITERAL && b->kind == NODE_ATTR);
}

static void write_pair(struct writer *w, const struct node *a, unsigned op, const struct node *b)
{
    static const char *const ops[] = {[OP_EQ] = " = ",  [OP_NE] = " <> ", [OP_LT] = " < ",
                                      [OP_LE] = " <= ", [OP_GT] = " > ",  [OP_GE] = " >= "};
    bool text = a->type == FILTER_STRING;
    void (*side)(struct writer *, const struct node *) = text ? write_bytes : write_value;
    out(w, "(");
    if (text && op == OP_EQ && is_indexable(a, b)) {
        write_value(w, a);
        out(w, " = ");
        write_value(w, b);
        out(w, " AND ");
    }
    side(w, a);
    out(w, ops[op]);
    side(w, b);
    out(w, ")");
}

static void write_between(struct writer *w, const struct node *n)
{
    const struct node *what = node_child(w->f, n, 0);
    out(w, "(");
    write_pair(w, what, OP_GE, node_child(w->f, n, 1));
    out(w, " AND ");
    write_pair(w, what, OP_LE, node_child(w->f, n, 2));
    out(w, ")");
}

static void write_list(struct writer *w, const struct node *what, bool bytes)
{
    void (*item)(struct writer *, const struct node *) = bytes ? write_bytes : write_value;
    item(w, what);
    out(w, " IN (");
    for (node_id id = what->next; id != NODE_NONE; id = node_at(w->f, id)->next) {
        item(w, node_at(w->f, id));
        out(w, node_at(w->f, id)->next == NODE_NONE ? ")" : ", ");
    }
}

static void write_in(struct writer *w, const struct node *n)
{
    const struct node *what = node_child(w->f, n, 0);
    bool text = what->type == FILTER_STRING;
    out(w, "(");
    if (!text || what->kind == NODE_ATTR)
        write_list(w, what, false);
    if (text && what->kind == NODE_ATTR)
        out(w, " AND ");
    if (text)
        write_list(w, what, true);
    out(w, ")");
}

static void write_has(struct writer *w, const struct node *n)
{
    out(w, "(JSON_CONTAINS(");
    write_value(w, node_child(w->f, n, 1));
    out(w, ", JSON_QUOTE(");
    write_value(w, node_child(w->f, n, 0));
    out(w, ")) = 1)");
}

static void write_like(struct writer *w, const struct node *n)
{
    size_t length = 0;
    out(w, "(");
    write_value(w, node_child(w->f, n, 0));
    out(w, " LIKE ");
    char *pattern = filter_param_pattern(n->value.text, &length);
    text_placeholder(w, pattern, length);
    out(w, " ESCAPE '" FILTER_SQL_ESCAPE "')");
}

static void write_joined(struct writer *w, const struct node *n)
{
    out(w, "(");
    for (node_id id = n->child; id != NODE_NONE; id = node_at(w->f, id)->next) {
        write_condition(w, node_at(w->f, id));
        if (node_at(w->f, id)->next != NODE_NONE)
            out(w, n->kind == NODE_AND ? " AND " : " OR ");
    }
    out(w, ")");
}

static void write_condition(struct writer *w, const struct node *n)
{
    switch (n->kind) {
    case NODE_AND:
    case NODE_OR:
        write_joined(w, n);
        return;
    case NODE_COMPARE:
        write_pair(w, node_child(w->f, n, 0), n->op, node_child(w->f, n, 1));
        return;
    case NODE_BETWEEN:
        write_between(w, n);
        return;
    case NODE_IN:
        write_in(w, n);
        return;
    case NODE_HAS:
        write_has(w, n);
        return;
    case NODE_LIKE:
        write_like(w, n);
        return;
    default:
        break;
    }
    out(w, n->kind == NODE_NOT ? "(NOT " : "(");
    if (n->kind == NODE_NOT)
        write_condition(w, node_child(w->f, n, 0));
    else if (n->kind == NODE_IS_NULL)
        write_value(w, node_child(w->f, n, 0));
    else if (n->kind == NODE_ATTR)
        write_attr(w, n);
    else
        write_literal(w, &n->value);
    if (n->kind == NODE_IS_NULL)
        out(w, " IS NULL");
    out(w, n->kind == NODE_ATTR ? " <> 0)" : ")");
}

enum err_code filter_to_sql(const struct filter *filter, const struct filter_columns *columns,
                            struct buf *sql, struct filter_params *params, struct err *err)
{
    struct writer w = {filter, columns, sql, params, err, ERR_OK};
    write_condition(&w, node_at(filter, filter->root));
    return w.rc;
}
