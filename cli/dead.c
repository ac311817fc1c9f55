/* SPDX-License-Identifier: MIT */
/* dead ls/show/replay/discard: messages that the broker could not deliver. */

#include "cli/cli.h"
#include "common/base/openssl.h"

#define PATH_LIMIT ((size_t)1024)
#define PAGE_MOST 1000

struct config_flag flags_dead_ls[] = {
    CLI_WATCH_FLAG,
    {.name = "state",
     .argument = "STATE",
     .doc = "only open, settled, replaying, replayed or discarded ones"},
    {.name = "limit", .argument = "N", .doc = "the newest N (50)"},
    {.name = NULL},
};
struct config_flag flags_dead_show[] = {
    {.name = "body", .doc = "write the message's bytes, and nothing else"},
    {.name = NULL},
};
struct config_flag flags_dead_replay[] = {
    {.name = "body", .argument = "JSON", .doc = "in place of the old body"},
    {.name = "job", .argument = "ID", .doc = "with the body that this job waits for"},
    {.name = NULL},
};
struct config_flag flags_dead_discard[] = {{.name = NULL}};

int cmd_dead_ls(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"ID", "id"},         {"CREATED", "created"}, {"STATE", "state"},
        {"REASON", "reason"}, {"QUEUE", "queue"},     {"ROUTING KEY", "routingKey"},
        {"JOB", "job"},       {"OUTCOME", "outcome"}, {"BYTES", "sizeBytes"},
    };
    CLI_JSON_AUTO json_t *answer = NULL;
    BUF_AUTO struct buf path = BUF_INIT(PATH_LIMIT);
    buf_addf(&path, "/v1/dead-messages?limit=%u", cli_number(cli, "limit", 50, PAGE_MOST));
    if (cli_has(cli, "state")) {
        buf_add_text(&path, "&state=");
        cli_url_add(&path, cli_value(cli, "state", ""));
    }
    int status = cli_call(cli, "GET", buf_text(&path), NULL, &answer);
    if (status != CLI_DONE)
        return status;
    cli_print_list(cli, json_object_get(answer, "deadMessages"), columns, ARRAY_LEN(columns), "id");
    if (*cli_text(answer, "nextCursor"))
        (void)cli_fail(0, "there are more: raise --limit");
    return CLI_DONE;
}

static int call_message(struct cli *cli, const char *method, const char *act, const json_t *body,
                        json_t **ret_message, const char *id)
{
    BUF_AUTO struct buf path = BUF_INIT(PATH_LIMIT);
    buf_add_text(&path, "/v1/dead-messages/");
    cli_url_add(&path, id);
    buf_add_text(&path, act);
    return cli_call(cli, method, buf_text(&path), body, ret_message);
}

static int write_body(const json_t *message)
{
    const char *text = cli_text(message, "bodyBase64");
    size_t length = strlen(text);
    size_t size = (size_t)json_integer_value(json_object_get(message, "keptBytes"));
    unsigned char *bytes = calloc(1, length + 1);
    int decoded = bytes ? EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)length) : -1;
    bool good = decoded >= 0 && (size_t)decoded >= size && fwrite(bytes, 1, size, stdout) == size &&
                fflush(stdout) == 0;
    free(bytes);
    return good ? CLI_DONE : cli_fail(CLI_REFUSED, "the body cannot be written");
}

int cmd_dead_show(struct cli *cli)
{
    CLI_JSON_AUTO json_t *message = NULL;
    int status = call_message(cli, "GET", "", NULL, &message, cli->operands[0]);
    if (status != CLI_DONE)
        return status;
    if (cli_has(cli, "body"))
        return write_body(message);
    cli_print_object(cli, message, "id");
    return CLI_DONE;
}

/* {"v":1,"job":...,"epoch":...} as the job is now. */
static int body_for_job(struct cli *cli, const char *job, json_t **ret_body)
{
    CLI_JSON_AUTO json_t *view = NULL;
    BUF_AUTO struct buf path = BUF_INIT(PATH_LIMIT);
    buf_add_text(&path, "/v1/jobs/");
    cli_url_add(&path, job);
    int status = cli_call(cli, "GET", buf_text(&path), NULL, &view);
    if (status == CLI_DONE)
        *ret_body = json_pack("{s:{s:i,s:s,s:O}}", "body", "v", 1, "job", cli_text(view, "id"),
                              "epoch", json_object_get(view, "epoch"));
    return status;
}

static int replay_body(struct cli *cli, json_t **ret_body)
{
    json_error_t reason;
    if (cli_has(cli, "job") && cli_has(cli, "body"))
        return cli_fail(CLI_USAGE, "--job and --body exclude each other");
    if (cli_has(cli, "job"))
        return body_for_job(cli, cli_value(cli, "job", ""), ret_body);
    if (!cli_has(cli, "body"))
        return CLI_DONE;
    json_t *body = json_loads(cli_value(cli, "body", ""), JSON_REJECT_DUPLICATES, &reason);
    if (!body)
        return cli_fail(CLI_USAGE, "--body is not JSON: %s", reason.text);
    *ret_body = json_pack("{s:o}", "body", body);
    return CLI_DONE;
}

static void print_state(const struct cli *cli, const json_t *message)
{
    if (cli->output == CLI_TABLE)
        (void)printf("%s %s\n", cli_text(message, "id"), cli_text(message, "state"));
    else
        cli_print_object(cli, message, "id");
}

int cmd_dead_replay(struct cli *cli)
{
    CLI_JSON_AUTO json_t *body = NULL;
    CLI_JSON_AUTO json_t *message = NULL;
    int status = replay_body(cli, &body);
    if (status == CLI_DONE)
        status = call_message(cli, "POST", "/replay", body, &message, cli->operands[0]);
    if (status == CLI_DONE)
        print_state(cli, message);
    return status;
}

/* All of them, also when one cannot be; the worst status counts. */
int cmd_dead_discard(struct cli *cli)
{
    int worst = CLI_DONE;
    for (int i = 0; i < cli->operand_count; i++) {
        CLI_JSON_AUTO json_t *message = NULL;
        int status = call_message(cli, "POST", "/discard", NULL, &message, cli->operands[i]);
        if (status == CLI_DONE)
            print_state(cli, message);
        worst = status > worst ? status : worst;
    }
    return worst;
}
