/* SPDX-License-Identifier: MIT */
/* queues, queue get/put/rm, explain. */

#include "cli/cli.h"
#include "cli/request.h"

struct config_flag flags_queues[] = {CLI_WATCH_FLAG, {.name = NULL}};
struct config_flag flags_queue_get[] = {{.name = NULL}};
struct config_flag flags_queue_rm[] = {{.name = NULL}};
struct config_flag flags_queue_put[] = {
    {.name = "priority", .letter = 'p', .argument = "N", .doc = "higher is tried first; unique"},
    {.name = "filter", .letter = 'f', .argument = "TEXT", .doc = "which requests it takes"},
    {.name = "type", .argument = "TYPE", .doc = "quorum or classic"},
    {.name = "max-minutes", .argument = "N", .doc = "longest job it takes"},
    {.name = "description", .argument = "TEXT", .doc = "what it is for"},
    {.name = "enabled", .argument = "BOOL", .doc = "true or false"},
    {.name = NULL},
};
static struct request_lists explain_lists;
struct config_flag flags_explain[] = {
    REQUEST_FLAGS(explain_lists),
    {.name = "as", .argument = "USER", .doc = "as if this user sent it (operators)"},
    {.name = NULL},
};

int cmd_queues(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"NAME", "name"},       {"PRIORITY", "priority"}, {"TYPE", "queueType"},
        {"ENABLED", "enabled"}, {"DEPTH", "depth"},       {"CONSUMERS", "consumers"},
        {"FILTER", "filter"},
    };
    CLI_JSON_AUTO json_t *answer = NULL;
    int status = cli_call(cli, "GET", "/v1/queues", NULL, &answer);
    if (status == CLI_DONE)
        cli_print_list(cli, json_object_get(answer, "queues"), columns, ARRAY_LEN(columns), "name");
    return status;
}

static void queue_path(const struct cli *cli, struct buf *path)
{
    buf_add_text(path, "/v1/queues/");
    cli_url_add(path, cli->operands[0]);
}

int cmd_queue_get(struct cli *cli)
{
    CLI_JSON_AUTO json_t *queue = NULL;
    BUF_AUTO struct buf path = BUF_INIT(1024);
    queue_path(cli, &path);
    int status = cli_call(cli, "GET", buf_text(&path), NULL, &queue);
    if (status == CLI_DONE)
        cli_print_object(cli, queue, "name");
    return status;
}

int cmd_queue_rm(struct cli *cli)
{
    BUF_AUTO struct buf path = BUF_INIT(1024);
    queue_path(cli, &path);
    return cli_call(cli, "DELETE", buf_text(&path), NULL, NULL);
}

/* Members that a PUT takes; what is not given by a flag stays as it is. */
static json_t *queue_body(const struct cli *cli, const json_t *now)
{
    static const char *const kept[] = {"priority", "filter",     "queueType",
                                       "enabled",  "maxMinutes", "description"};
    json_t *body = json_object();
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        json_t *value = json_object_get(now, kept[i]);
        if (value && !json_is_null(value))
            (void)json_object_set(body, kept[i], value);
    }
    const char *priority = cli_value(cli, "priority", NULL);
    bool below_zero = priority && *priority == '-';
    if (priority && !below_zero)
        (void)json_object_set_new(body, "priority",
                                  json_integer(cli_number(cli, "priority", 0, INT32_MAX)));
    if (below_zero)
        (void)json_object_set_new(body, "priority", json_integer(strtol(priority, NULL, 10)));
    if (cli_has(cli, "filter"))
        (void)json_object_set_new(body, "filter", json_string(cli_value(cli, "filter", "")));
    if (cli_has(cli, "type"))
        (void)json_object_set_new(body, "queueType", json_string(cli_value(cli, "type", "")));
    if (cli_has(cli, "description"))
        (void)json_object_set_new(body, "description",
                                  json_string(cli_value(cli, "description", "")));
    if (cli_has(cli, "max-minutes"))
        (void)json_object_set_new(body, "maxMinutes",
                                  json_integer(cli_number(cli, "max-minutes", 0, INT32_MAX)));
    if (cli_has(cli, "enabled"))
        (void)json_object_set_new(
            body, "enabled", json_boolean(strcmp(cli_value(cli, "enabled", ""), "false") != 0));
    return body;
}

/* Anything but true and false is a slip that would switch a queue the wrong way. */
static bool enabled_is_valid(const struct cli *cli)
{
    const char *text = cli_value(cli, "enabled", "true");
    return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

int cmd_queue_put(struct cli *cli)
{
    char match[80] = "";
    CLI_JSON_AUTO json_t *now = NULL;
    BUF_AUTO struct buf path = BUF_INIT(1024);
    if (!enabled_is_valid(cli))
        return cli_fail(CLI_USAGE, "--enabled %s: true and false are known",
                        cli_value(cli, "enabled", ""));
    queue_path(cli, &path);
    int status = cli_read_to_change(cli, buf_text(&path), &now, match, sizeof(match));
    if (status != CLI_DONE)
        return status;
    CLI_JSON_AUTO json_t *body = queue_body(cli, now);
    CLI_JSON_AUTO json_t *queue = NULL;
    status = cli_put_changed(cli, buf_text(&path), body, match, &queue);
    if (status != CLI_DONE)
        return status;
    const json_t *warning = NULL;
    size_t i = 0;
    json_array_foreach(json_object_get(queue, "warnings"), i, warning)
    {
        const char *warned =
            json_is_string(warning) ? json_string_value(warning) : cli_text(warning, "text");
        (void)cli_fail(0, "warning: %s", warned);
    }
    cli_print_object(cli, queue, "name");
    return CLI_DONE;
}

int cmd_explain(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"PRIORITY", "priority"}, {"QUEUE", "queue"}, {"VERDICT", "verdict"},
        {"FILTER", "filter"},     {"SEEN", "values"}, {"WHY", "explanation"},
    };
    CLI_JSON_AUTO json_t *request = NULL;
    CLI_JSON_AUTO json_t *answer = NULL;
    BUF_AUTO struct buf path = BUF_INIT(1024);
    buf_add_text(&path, "/v1/queues:explain");
    if (cli_has(cli, "as")) {
        buf_add_text(&path, "?owner=");
        cli_url_add(&path, cli_value(cli, "as", ""));
    }
    int status = request_build(cli, &request);
    if (status == CLI_DONE)
        status = cli_call(cli, "POST", buf_text(&path), request, &answer);
    if (status != CLI_DONE)
        return status;
    if (cli->output != CLI_TABLE) {
        cli_print_object(cli, answer, "queue");
        return CLI_DONE;
    }
    (void)printf("queue: %s\n\n", cli_text(answer, "queue"));
    cli_print_list(cli, json_object_get(answer, "filters"), columns, ARRAY_LEN(columns), "queue");
    return CLI_DONE;
}
