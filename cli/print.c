/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <unistd.h>

static void put_line(const char *text)
{
    cli_put(stdout, text);
    (void)fputc('\n', stdout);
}

static void print_json(const json_t *value)
{
    (void)json_dumpf(value, stdout,
                     JSON_INDENT(2) | JSON_ENCODE_ANY | (isatty(1) ? JSON_ENSURE_ASCII : 0));
    (void)fputc('\n', stdout);
}

/* What a list is of, where the command does not have its name. */
static void tell_empty(const struct cli *cli)
{
    static const struct {
        const char *command;
        const char *things;
    } rows[] = {
        {"dead ls", "dead messages"},
        {"recovery ls", "blocked jobs"},
        {"context ls", "contexts"},
        {"audit-log", "entries"},
        {"job", "events"},
        {"recovery show", "jobs"},
        {"explain", "filters"},
        {"dev", "processes"},
    };
    const char *things = cli->command->name;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        things = strcmp(things, rows[i].command) == 0 ? rows[i].things : things;
    (void)fprintf(stderr, "no %s\n", things);
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
        table_print(items, columns, count);
        if (json_array_size(items) == 0)
            tell_empty(cli);
    }
}

static void print_members(const json_t *object, const char *prefix)
{
    char name[128];
    char cell[TABLE_CELL_MAX];
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
        table_write_cell(key, value, cell, sizeof(cell));
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

void cli_warn(const json_t *answer)
{
    const json_t *warning = NULL;
    size_t i = 0;
    json_array_foreach(json_object_get(answer, "warnings"), i, warning)
    {
        const char *text =
            json_is_string(warning) ? json_string_value(warning) : cli_text(warning, "text");
        (void)cli_fail(0, "warning: %s", text);
    }
}
