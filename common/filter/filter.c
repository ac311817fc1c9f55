/* SPDX-License-Identifier: MIT */
#include "common/filter/filter.h"

#include "common/filter/node.h"

void filter_free(struct filter *filter)
{
    if (!filter)
        return;
    free(filter->nodes);
    free(filter->text);
    free(filter->chars);
    free(filter->uses);
    free(filter);
}

struct sv filter_text(const struct filter *filter)
{
    return (struct sv){filter->text, filter->text_len};
}

/* Length, encoding, characters that no filter needs. */
static enum err_code check_text(struct sv text, struct err *err)
{
    if (text.len > FILTER_TEXT_MAX)
        return err_set(err, ERR_FILTER, "the filter has %zu bytes; at most %d", text.len,
                       FILTER_TEXT_MAX);
    if (!sv_is_utf8(text))
        return err_set(err, ERR_FILTER, "the filter is not valid UTF-8");
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool space = c == '\t' || c == '\n' || c == '\r';
        if ((c < 0x20 && !space) || c == 0x7F)
            return err_set(err, ERR_FILTER,
                           "the filter has a control character (0x%02x) at byte "
                           "%zu; take it out",
                           c, i);
    }
    return ERR_OK;
}

static bool same_use(const struct node *a, const struct node *b)
{
    if (a->kind != b->kind)
        return false;
    return a->kind == NODE_ATTR ? a->attr == b->attr : sv_eq(a->value.text, b->value.text);
}

static void add_use(struct filter *f, node_id id)
{
    const struct node *n = node_at(f, id);
    if (n->kind != NODE_ATTR && n->kind != NODE_ENV)
        return;
    for (size_t i = 0; i < f->use_count; i++) {
        if (same_use(n, node_at(f, f->uses[i])))
            return;
    }
    f->uses[f->use_count++] = id;
}

static struct filter *new_filter(const struct filter_schema *schema, struct sv text)
{
    AUTO(filter_free) struct filter *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->schema = schema;
    f->text_len = text.len;
    f->text = calloc(text.len + 1, 1);
    f->chars = calloc(text.len + 1, 1);
    f->nodes = calloc(FILTER_NODES_MAX, sizeof(*f->nodes));
    f->uses = calloc(FILTER_NODES_MAX, sizeof(*f->uses));
    if (!f->text || !f->chars || !f->nodes || !f->uses)
        return NULL;
    if (text.len > 0)
        memcpy(f->text, text.ptr, text.len);
    return TAKE(f);
}

/* Gives back what was taken for the largest filter. */
static void shrink(struct filter *f)
{
    struct node *nodes = realloc(f->nodes, f->node_count * sizeof(*nodes));
    if (nodes)
        f->nodes = nodes;
    node_id *uses = realloc(f->uses, (f->use_count + 1) * sizeof(*uses));
    if (uses)
        f->uses = uses;
}

enum err_code filter_compile(const struct filter_schema *schema, struct sv text,
                             struct filter **ret_filter, struct filter_report *report,
                             struct err *err)
{
    if (report)
        *report = (struct filter_report){0};
    enum err_code rc = check_text(text, err);
    if (rc)
        return rc;
    AUTO(filter_free) struct filter *f = new_filter(schema, text);
    if (!f)
        return err_set(err, ERR_NOMEM, "no memory for a filter");
    rc = filter_parse(f, report, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < f->node_count; i++)
        add_use(f, (node_id)i);
    rc = filter_check(f, report, err);
    if (rc)
        return rc;
    shrink(f);
    filter_check_truths(f);
    if (report)
        filter_warn(f, report);
    *ret_filter = TAKE(f);
    return ERR_OK;
}

bool filter_has_like(const struct filter *filter)
{
    for (size_t i = 0; i < filter->node_count; i++) {
        if (filter->nodes[i].kind == NODE_LIKE)
            return true;
    }
    return false;
}

size_t filter_use_count(const struct filter *filter)
{
    return filter->use_count;
}

struct filter_use filter_use_at(const struct filter *filter, size_t index)
{
    const struct node *n = node_at(filter, filter->uses[index]);
    struct filter_use use = {.is_env = n->kind == NODE_ENV, .attr = n->attr};
    if (use.is_env) /* the variable's name stands in the text behind "env." */
        use.name = (struct sv){filter->text + n->at, n->value.text.len + strlen("env.")};
    else
        use.name = sv_of(filter->schema->attrs[n->attr].name);
    return use;
}

struct filter_value filter_use_value(const struct filter *filter, size_t index,
                                     const struct filter_row *row)
{
    return filter_node_value(filter, row, node_at(filter, filter->uses[index]));
}
