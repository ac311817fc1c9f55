/* SPDX-License-Identifier: MIT */
/* dead ls/show/replay/discard: messages that the broker could not deliver. */

#include "cli/bulk.h"
#include "common/base/openssl.h"

#define PATH_LIMIT ((size_t)1024)
#define PAGE_MOST 500
#define BULK_MOST 10000
#define DEAD_BULK_FLAGS                                                                            \
    {.name = "state", .argument = "STATE", .doc = "all that are open, settled, or as it says"},    \
        BULK_YES_FLAG

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
    DEAD_BULK_FLAGS,
    {.name = NULL},
};
struct config_flag flags_dead_discard[] = {DEAD_BULK_FLAGS, {.name = NULL}};

int cmd_dead_ls(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"ID", "id"},         {"CREATED", "created"}, {"STATE", "state"},
        {"REASON", "reason"}, {"QUEUE", "queue"},     {"ROUTING KEY", "routingKey"},
        {"JOB", "job"},       {"OUTCOME", "outcome"}, {"BYTES", "sizeBytes"},
    };
    CLI_JSON_AUTO json_t *answer = NULL;
    BUF_AUTO struct buf path = BUF_INIT(PATH_LIMIT);
    buf_addf(&path, "/v1/dead-messages?limit=%u", cli_number(cli, "limit", 50, 1000));
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

/* The ids of the messages in the state that --state names, which is confirmed with their number. */
static int find_by_state(struct cli *cli, const char *act, json_t **ret_ids)
{
    char what[96];
    CLI_JSON_AUTO json_t *ids = json_array();
    CLI_JSON_AUTO json_t *page = NULL;
    BUF_AUTO struct buf path = BUF_INIT(4096);
    do {
        size_t i = 0;
        const json_t *message = NULL;
        buf_clear(&path);
        buf_addf(&path, "/v1/dead-messages?limit=%d&state=", PAGE_MOST);
        cli_url_add(&path, cli_value(cli, "state", ""));
        if (page) {
            buf_add_text(&path, "&cursor=");
            cli_url_add(&path, cli_text(page, "nextCursor"));
        }
        cli_json_drop(&page);
        int status = cli_call(cli, "GET", buf_text(&path), NULL, &page);
        if (status != CLI_DONE)
            return status;
        json_array_foreach(json_object_get(page, "deadMessages"), i, message)
        {
            (void)json_array_append(ids, json_object_get(message, "id"));
        }
    } while (*cli_text(page, "nextCursor") && json_array_size(ids) < BULK_MOST);
    (void)snprintf(what, sizeof(what), "%s %zu dead messages", act, json_array_size(ids));
    if (json_array_size(ids) > 0 && !bulk_confirmed(cli, what))
        return cli_fail(CLI_REFUSED, "nothing was done");
    if (json_array_size(ids) == 0)
        (void)cli_fail(0, "no dead messages in state %s", cli_value(cli, "state", ""));
    *ret_ids = TAKE(ids);
    return CLI_DONE;
}

/* All of them, also when one cannot be; the worst status counts. */
static int act_on_all(struct cli *cli, const char *act, const json_t *body)
{
    char path[16];
    size_t i = 0;
    const json_t *id = NULL;
    CLI_JSON_AUTO json_t *ids = NULL;
    bool by_state = cli_has(cli, "state");
    if (by_state == (cli->operand_count > 0))
        return cli_fail(CLI_USAGE, "give ids of dead messages, or --state");
    int worst = by_state ? find_by_state(cli, act, &ids) : CLI_DONE;
    if (!by_state)
        ids = json_array();
    for (int n = 0; n < cli->operand_count; n++)
        (void)json_array_append_new(ids, json_string(cli->operands[n]));
    (void)snprintf(path, sizeof(path), "/%s", act);
    json_array_foreach(ids, i, id)
    {
        CLI_JSON_AUTO json_t *message = NULL;
        int status = call_message(cli, "POST", path, body, &message, json_string_value(id));
        if (status == CLI_DONE)
            print_state(cli, message);
        worst = status > worst ? status : worst;
    }
    return worst;
}

int cmd_dead_replay(struct cli *cli)
{
    CLI_JSON_AUTO json_t *body = NULL;
    bool changed = cli_has(cli, "body") || cli_has(cli, "job");
    if (changed && cli->operand_count != 1)
        return cli_fail(CLI_USAGE, "--body and --job are for one message");
    int status = replay_body(cli, &body);
    return status == CLI_DONE ? act_on_all(cli, "replay", body) : status;
}

int cmd_dead_discard(struct cli *cli)
{
    return act_on_all(cli, "discard", NULL);
}
