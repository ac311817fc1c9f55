/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <stdarg.h>

#define CELL_MAX 256
#define COLUMNS_MAX 16

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
    ret_cell[i] = 0;
    cli_make_inert(ret_cell);
}

static void put_line(const char *text)
{
    cli_put(stdout, text);
    (void)fputc('\n', stdout);
}

static void write_cell(const json_t *value, char *ret_cell, size_t size)
{
    if (json_is_string(value)) {
        copy_inert(json_string_value(value), ret_cell, size);
    } else if (json_is_real(value)) {
        (void)snprintf(ret_cell, size, "%.1f", json_real_value(value));
    } else if (!value || json_is_null(value)) {
        (void)snprintf(ret_cell, size, "-");
    } else {
        TEXT_AUTO char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        copy_inert(text ? text : "", ret_cell, size);
    }
}

/* Characters, not bytes: UTF-8 continuation bytes take no room. */
static size_t shown_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static void print_cell(const char *text, size_t width, bool last)
{
    (void)fputs(text, stdout);
    for (size_t i = shown_width(text); !last && i < width + 2; i++)
        (void)fputc(' ', stdout);
}

static void print_table(const json_t *items, const struct cli_column *columns, size_t count)
{
    size_t width[COLUMNS_MAX] = {0};
    char cell[CELL_MAX];
    size_t row = 0;
    const json_t *item = NULL;
    for (size_t i = 0; i < count; i++) {
        width[i] = strlen(columns[i].title);
        json_array_foreach(items, row, item)
        {
            write_cell(find(item, columns[i].member), cell, sizeof(cell));
            width[i] = shown_width(cell) > width[i] ? shown_width(cell) : width[i];
        }
    }
    for (size_t i = 0; i < count; i++)
        print_cell(columns[i].title, width[i], i + 1 == count);
    (void)fputc('\n', stdout);
    json_array_foreach(items, row, item)
    {
        for (size_t i = 0; i < count; i++) {
            write_cell(find(item, columns[i].member), cell, sizeof(cell));
            print_cell(cell, width[i], i + 1 == count);
        }
        (void)fputc('\n', stdout);
    }
}

static void print_json(const json_t *value)
{
    (void)json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    (void)fputc('\n', stdout);
}

void cli_print_list(const struct cli *cli, const json_t *items, const struct cli_column *columns,
                    size_t count, const char *name_member)
{
    size_t i = 0;
    const json_t *item = NULL;
    if (cli->output == CLI_JSON) {
        print_json(items);
    } else if (cli->output == CLI_NAME) {
        json_array_foreach(items, i, item)
        {
            put_line(cli_text(item, name_member));
        }
    } else {
        print_table(items, columns, count);
    }
}

static void print_members(const json_t *object, const char *prefix)
{
    char name[128];
    char cell[CELL_MAX * 4];
    const char *key = NULL;
    json_t *value = NULL;
    json_t *writable = json_incref((json_t *)(uintptr_t)object);
    json_object_foreach(writable, key, value)
    {
        (void)snprintf(name, sizeof(name), "%s%s", prefix, key);
        if (key[0] == '_')
            continue;
        if (json_is_object(value)) {
            (void)snprintf(cell, sizeof(cell), "%s.", name);
            print_members(value, cell);
            continue;
        }
        write_cell(value, cell, sizeof(cell));
        (void)printf("%-22s %s\n", name, cell);
    }
    json_decref(writable);
}

void cli_print_object(const struct cli *cli, const json_t *object, const char *name_member)
{
    if (cli->output == CLI_JSON)
        print_json(object);
    else if (cli->output == CLI_NAME)
        put_line(cli_text(object, name_member));
    else
        print_members(object, "");
}
