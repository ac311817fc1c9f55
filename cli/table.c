/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include "cli/terminal.h"

#define CELL_MAX 256
#define COLUMNS_MAX 16
#define GAP 2         /* blanks between columns */
#define LEAST_WIDTH 8 /* no column is cut further */

/* Members that are times; a text there that is none is shown as it is. */
static const char *const times[] = {
    "at",      "acted",     "blocked",     "created",   "died",     "ended", "expires", "lastSeen",
    "started", "lastCheck", "nextAttempt", "nextCheck", "modified", "since", "updated",
};

/* Words of states that should catch the eye, or not. */
static const struct {
    const char *word;
    const char *colour; /* ECMA-48, SGR */
} colours[] = {
    {"FAILED", "31"},  {"CANCELLED", "33"}, {"BLOCKED", "33"}, {"FINISHED", "32"},
    {"RUNNING", "36"}, {"lost", "31"},      {"live", "32"},    {"open", "33"},
    {"dead", "31"},    {"delivered", "32"}, {"refused", "33"}, {"failed", "31"},
};

/* "output.stdout.bytes" in an object of objects. */
static const json_t *find(const json_t *object, const char *path)
{
    char part[64];
    while (object && *path) {
        size_t length = strcspn(path, ".");
        (void)snprintf(part, sizeof(part), "%.*s", (int)length, path);
        object = json_object_get(object, part);
        path += length + (path[length] == '.');
    }
    return object;
}

/* Control characters of a name must not reach the terminal. */
static void copy_inert(const char *text, char *ret_cell, size_t size)
{
    size_t i = 0;
    for (; text[i] && i + 1 < size; i++)
        ret_cell[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7F ? '?' : text[i];
    while (text[i] && i > 0 && ((unsigned char)text[i] & 0xC0) == 0x80)
        i--; /* no half of a character */
    ret_cell[i] = 0;
    cli_make_inert(ret_cell);
}

static bool is_time(const char *member)
{
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        if (strcmp(times[i], member) == 0)
            return true;
    }
    return false;
}

void table_write_cell(const char *member, const json_t *value, char *ret_cell, size_t size)
{
    char text[64];
    const char *dot = strrchr(member, '.');
    if (json_is_string(value) && is_time(dot ? dot + 1 : member) &&
        json_string_length(value) < sizeof(text)) {
        terminal_write_time(json_string_value(value), text, sizeof(text));
        copy_inert(text, ret_cell, size);
    } else if (json_is_string(value)) {
        copy_inert(json_string_value(value), ret_cell, size);
    } else if (json_is_real(value)) {
        (void)snprintf(ret_cell, size, "%.1f", json_real_value(value));
    } else if (!value || json_is_null(value)) {
        (void)snprintf(ret_cell, size, "-");
    } else {
        TEXT_AUTO char *json = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        copy_inert(json ? json : "", ret_cell, size);
    }
}

/* A column of this title shows how long ago its member was. */
static void write_cell(const struct cli_column *column, const json_t *item, char *ret_cell)
{
    int64_t at_s = 0;
    const json_t *value = find(item, column->member);
    if (strcmp(column->title, "AGE") == 0 && json_is_string(value) &&
        terminal_read_time(json_string_value(value), &at_s))
        terminal_write_age((int64_t)time(NULL) - at_s, ret_cell, CELL_MAX);
    else
        table_write_cell(column->member, value, ret_cell, CELL_MAX);
}

struct layout {
    const struct cli_column *columns;
    size_t count;
    size_t width[COLUMNS_MAX];
    bool whole[COLUMNS_MAX]; /* an id that is cut is of no use */
    bool coloured;
};

/* The widest column gives way until the line fits. */
static void fit(struct layout *layout, size_t screen)
{
    size_t total = GAP * (layout->count - 1);
    for (size_t i = 0; i < layout->count; i++)
        total += layout->width[i];
    while (screen > 0 && total > screen) {
        size_t widest = layout->count;
        for (size_t i = 0; i < layout->count; i++) {
            if (!layout->whole[i] && layout->width[i] > LEAST_WIDTH &&
                (widest == layout->count || layout->width[i] > layout->width[widest]))
                widest = i;
        }
        if (widest == layout->count)
            return;
        layout->width[widest]--;
        total--;
    }
}

static bool is_id(const char *text)
{
    return strlen(text) == 36 && text[8] == '-' && text[23] == '-';
}

static void measure(struct layout *layout, const json_t *items)
{
    char cell[CELL_MAX];
    size_t row = 0;
    const json_t *item = NULL;
    for (size_t i = 0; i < layout->count; i++) {
        layout->width[i] = strlen(layout->columns[i].title);
        json_array_foreach(items, row, item)
        {
            write_cell(&layout->columns[i], item, cell);
            size_t width = terminal_text_width(cell);
            layout->whole[i] = layout->whole[i] || is_id(cell);
            layout->width[i] = width > layout->width[i] ? width : layout->width[i];
        }
    }
}

static const char *colour_of(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(colours); i++) {
        if (strcmp(colours[i].word, text) == 0)
            return colours[i].colour;
    }
    return NULL;
}

static void print_cell(const struct layout *layout, size_t at, char *text)
{
    const char *member = layout->columns[at].member;
    bool state = strcmp(member, "status") == 0 || strcmp(member, "state") == 0 ||
                 strcmp(member, "outcome") == 0;
    const char *colour = layout->coloured && state ? colour_of(text) : NULL;
    terminal_cut(text, layout->width[at]);
    if (colour)
        (void)printf("\033[%sm%s\033[0m", colour, text);
    else
        (void)fputs(text, stdout);
    for (size_t i = terminal_text_width(text);
         at + 1 < layout->count && i < layout->width[at] + GAP; i++)
        (void)fputc(' ', stdout);
}

void table_print(const json_t *items, const struct cli_column *columns, size_t count)
{
    char cell[CELL_MAX];
    size_t row = 0;
    const json_t *item = NULL;
    struct layout layout = {.columns = columns, .count = count, .coloured = terminal_has_colours()};
    measure(&layout, items);
    fit(&layout, terminal_width());
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(cell, sizeof(cell), "%s", columns[i].title);
        print_cell(&layout, i, cell);
    }
    (void)fputc('\n', stdout);
    json_array_foreach(items, row, item)
    {
        for (size_t i = 0; i < count; i++) {
            write_cell(&columns[i], item, cell);
            print_cell(&layout, i, cell);
        }
        (void)fputc('\n', stdout);
    }
}
