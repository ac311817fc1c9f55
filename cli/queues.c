/* SPDX-License-Identifier: MIT */
/* queues, queue get/put/rm/reroute, explain. */

#include "cli/cli.h"
#include "cli/request.h"

#include "common/base/uuid.h"

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
struct config_flag flags_queue_reroute[] = {
    {.name = "dry-run", .letter = 'n', .doc = "only show what would be moved"},
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
    cli_warn(queue);
    cli_print_object(cli, queue, "name");
    return CLI_DONE;
}

/* Looks, and does what it saw; *io_after: where to go on, or NULL. */
static int reroute_page(struct cli *cli, const char *path, json_t **io_after, json_t **ret_done)
{
    CLI_JSON_AUTO json_t *look = json_pack("{s:b}", "dryRun", true);
    CLI_JSON_AUTO json_t *preview = NULL;
    CLI_JSON_AUTO json_t *act = json_object();
    if (*io_after && (json_object_set(look, "after", *io_after) != 0 ||
                      json_object_set(act, "after", *io_after) != 0))
        return cli_fail(CLI_REFUSED, "no memory");
    int status = cli_call(cli, "POST", path, look, &preview);
    if (status != CLI_DONE)
        return status;
    json_decref(*io_after);
    *io_after = json_incref(json_object_get(preview, "next"));
    if (cli_has(cli, "dry-run") || !json_is_string(json_object_get(preview, "plan"))) {
        *ret_done = TAKE(preview);
        return CLI_DONE;
    }
    (void)json_object_set(act, "plan", json_object_get(preview, "plan"));
    (void)json_object_set(act, "expectedCount", json_object_get(preview, "count"));
    return cli_call(cli, "POST", path, act, ret_done);
}

static long long number_of(const json_t *object, const char *member)
{
    return (long long)json_integer_value(json_object_get(object, member));
}

static void reroute_print(const struct cli *cli, const json_t *done)
{
    bool dry = cli_has(cli, "dry-run");
    const json_t *move = NULL;
    size_t i = 0;
    if (cli->output != CLI_TABLE) {
        cli_print_object(cli, done, "queue");
        return;
    }
    json_array_foreach(json_object_get(done, "moves"), i, move)
    {
        bool served = json_is_true(json_object_get(move, "isServed"));
        (void)printf("%lld go to queue %s%s\n", number_of(move, "count"), cli_text(move, "queue"),
                     served ? "" : ", which has no worker");
    }
    (void)printf("looked at %lld: %lld %s, %lld stay, %lld are too long for their queue\n",
                 number_of(done, "looked"), number_of(done, dry ? "count" : "moved"),
                 dry ? "would be moved" : "moved", number_of(done, "staying"),
                 number_of(done, "tooLong"));
}

int cmd_queue_reroute(struct cli *cli)
{
    CLI_JSON_AUTO json_t *after = NULL;
    BUF_AUTO struct buf path = BUF_INIT(1024);
    queue_path(cli, &path);
    buf_add_text(&path, ":reroute");
    do {
        CLI_JSON_AUTO json_t *done = NULL;
        int status = reroute_page(cli, buf_text(&path), &after, &done);
        if (status != CLI_DONE)
            return status;
        reroute_print(cli, done);
    } while (json_is_string(after));
    return CLI_DONE;
}

/* A request that is described, or a job that is there. */
static bool names_job(const struct cli *cli)
{
    struct uuid id;
    return cli->operand_count == 1 && uuid_parse(sv_of(cli->operands[0]), &id);
}

static int ask_explain(struct cli *cli, json_t **ret_answer)
{
    CLI_JSON_AUTO json_t *request = NULL;
    BUF_AUTO struct buf path = BUF_INIT(1024);
    if (names_job(cli)) {
        buf_addf(&path, "/v1/jobs/%s/explain", cli->operands[0]);
        return cli_call(cli, "GET", buf_text(&path), NULL, ret_answer);
    }
    buf_add_text(&path, "/v1/queues:explain");
    if (cli_has(cli, "as")) {
        buf_add_text(&path, "?owner=");
        cli_url_add(&path, cli_value(cli, "as", ""));
    }
    int status = request_build(cli, &request);
    if (status == CLI_DONE)
        status = cli_call(cli, "POST", buf_text(&path), request, ret_answer);
    return status;
}

int cmd_explain(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"PRIORITY", "priority"}, {"QUEUE", "queue"}, {"VERDICT", "verdict"},
        {"FILTER", "filter"},     {"SEEN", "values"}, {"WHY", "explanation"},
    };
    CLI_JSON_AUTO json_t *answer = NULL;
    int status = ask_explain(cli, &answer);
    if (status != CLI_DONE)
        return status;
    if (cli->output != CLI_TABLE) {
        cli_print_object(cli, answer, "queue");
        return CLI_DONE;
    }
    (void)printf("queue: %s\n", cli_text(answer, "queue"));
    if (names_job(cli)) {
        (void)fputs("at submission: ", stdout);
        cli_put(stdout, cli_text(answer, "submitted"));
        (void)fputs("\nit would go now to: ", stdout);
        cli_put(stdout, cli_text(answer, "now"));
        (void)fputc('\n', stdout);
    }
    (void)fputc('\n', stdout);
    cli_print_list(cli, json_object_get(answer, "filters"), columns, ARRAY_LEN(columns), "queue");
    return CLI_DONE;
}
