/* SPDX-License-Identifier: MIT */
/* Why a filter is not TRUE of a row, in words. */
#include "common/base/buf.h"
#include "common/filter/node.h"

#include <inttypes.h>

#define PARTS_MAX 6    /* that are told; each with as many values */
#define SHOWN_BYTES 80 /* of a part of the text, or of a value */

/* Where the part begins in the text: an operator stands behind its first operand. */
static uint32_t part_begin(const struct filter *f, const struct node *n)
{
    uint32_t begin = n->at;
    for (node_id id = n->child; id != NODE_NONE; id = node_at(f, id)->next) {
        uint32_t child = part_begin(f, node_at(f, id));
        begin = child < begin ? child : begin;
    }
    return begin;
}

/* Parentheses that are closed more often than they were opened, or the other way round. */
static int balance(struct sv text)
{
    int open = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        quoted = quoted != (text.ptr[i] == '\'');
        open += !quoted && text.ptr[i] == '(';
        open -= !quoted && text.ptr[i] == ')';
    }
    return open;
}

static bool ends_with_and(struct sv text)
{
    return text.len > 4 && text.ptr[text.len - 4] <= ' ' && (text.ptr[text.len - 3] | 32) == 'a' &&
           (text.ptr[text.len - 2] | 32) == 'n' && (text.ptr[text.len - 1] | 32) == 'd';
}

/* Up to the part that follows, without the AND between the two and the parentheses around each. */
static struct sv part_text(const struct filter *f, const struct node *part)
{
    uint32_t begin = part_begin(f, part);
    size_t end = part->next == NODE_NONE ? f->text_len : part_begin(f, node_at(f, part->next));
    struct sv text = {f->text + begin, end > begin ? end - begin : 0};
    for (;;) {
        char last = text.len > 0 ? text.ptr[text.len - 1] : 'x';
        if (last <= ' ' || (last == '(' && balance(text) > 0) || (last == ')' && balance(text) < 0))
            text.len--;
        else if (part->next != NODE_NONE && ends_with_and(text))
            text.len -= 3;
        else
            return text;
    }
}

/* Cut between characters. */
static void add_cut(struct buf *text, struct sv shown)
{
    size_t length = shown.len < SHOWN_BYTES ? shown.len : SHOWN_BYTES;
    while (length < shown.len && length > 0 && ((unsigned char)shown.ptr[length] & 0xC0) == 0x80)
        length--;
    (void)buf_add(text, shown.ptr, length);
    if (length < shown.len)
        buf_add_text(text, "...");
}

static void add_value(struct buf *text, const struct filter_value *value)
{
    if (value->type == FILTER_NULL)
        buf_add_text(text, " is not set");
    else if (value->type == FILTER_NUMBER && value->is_real)
        buf_addf(text, " is %g", value->real);
    else if (value->type == FILTER_NUMBER)
        buf_addf(text, " is %" PRId64, value->integer);
    else if (value->type == FILTER_LIST)
        buf_addf(text, " has %zu value%s", value->list.count, value->list.count == 1 ? "" : "s");
    else if (value->type == FILTER_STRING) {
        buf_add_text(text, " is '");
        add_cut(text, value->text);
        buf_add_text(text, "'");
    }
}

struct names {
    struct sv seen[PARTS_MAX];
    size_t count;
    struct buf *text;
};

/* "memoryMB is 16000, env.PROJECT is not set" */
static void add_values(const struct filter *f, const struct filter_row *row, const struct node *n,
                       struct names *names)
{
    bool is_env = n->kind == NODE_ENV;
    if (is_env || n->kind == NODE_ATTR) {
        struct filter_value value = filter_node_value(f, row, n);
        struct sv name = is_env ? n->value.text : sv_of(f->schema->attrs[n->attr].name);
        for (size_t i = 0; i < names->count; i++)
            if (sv_eq(names->seen[i], name))
                return;
        if (names->count == PARTS_MAX || value.type == FILTER_TIME || value.type == FILTER_BOOL)
            return;
        names->seen[names->count++] = name;
        buf_add_text(names->text, names->count > 1 ? ", " : " (");
        buf_add_text(names->text, is_env ? "env." : "");
        add_cut(names->text, name);
        add_value(names->text, &value);
    }
    for (node_id id = n->child; id != NODE_NONE; id = node_at(f, id)->next)
        add_values(f, row, node_at(f, id), names);
}

static void add_part(const struct filter *f, const struct filter_row *row, const struct node *part,
                     bool whole, struct buf *text)
{
    struct names names = {.text = text};
    enum filter_truth truth = filter_node_truth(f, row, part);
    if (text->len > 0)
        buf_add_text(text, "; ");
    add_cut(text, whole ? (struct sv){f->text, f->text_len} : part_text(f, part));
    buf_add_text(text, truth == FILTER_FALSE ? " is false" : " is unknown");
    add_values(f, row, part, &names);
    buf_add_text(text, names.count > 0 ? ")" : "");
}

void filter_say_why(const struct filter *f, const struct filter_row *row, struct buf *text)
{
    const struct node *root = node_at(f, f->root);
    bool joined = root->kind == NODE_AND;
    size_t others = 0;
    size_t told = 0;
    if (filter_eval(f, row) == FILTER_TRUE)
        return;
    for (node_id id = joined ? root->child : f->root; id != NODE_NONE;
         id = joined ? node_at(f, id)->next : NODE_NONE) {
        if (filter_node_truth(f, row, node_at(f, id)) == FILTER_TRUE)
            others++;
        else if (told++ < PARTS_MAX)
            add_part(f, row, node_at(f, id), !joined, text);
    }
    if (told > PARTS_MAX)
        buf_addf(text, "; and %zu more", told - PARTS_MAX);
    if (others > 0)
        buf_add_text(text, "; the rest is true");
    if (filter_eval(f, row) == FILTER_UNKNOWN)
        buf_add_text(text, "; what is unknown is no match");
}
