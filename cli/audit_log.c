/* SPDX-License-Identifier: MIT */
/* audit-log: who did what, and what was refused. */

#include "cli/cli.h"

#define PATH_LIMIT ((size_t)4096)
#define PAGE_MOST 1000

struct config_flag flags_audit_log[] = {
    CLI_WATCH_FLAG,
    {.name = "actor", .argument = "NAME", .doc = "only what this user did"},
    {.name = "action", .argument = "NAME", .doc = "only this operation, such as queue_put"},
    {.name = "subject", .argument = "PATH", .doc = "only to this, such as /v1/queues/large"},
    {.name = "outcome", .argument = "OUTCOME", .doc = "only done, refused or failed ones"},
    {.name = "limit", .argument = "N", .doc = "the newest N (50)"},
    {.name = NULL},
};

static void add_filter(struct cli *cli, struct buf *path, const char *name)
{
    if (!cli_has(cli, name))
        return;
    buf_addf(path, "&%s=", name);
    cli_url_add(path, cli_value(cli, name, ""));
}

int cmd_audit_log(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"AT", "at"},           {"ACTOR", "actor"},   {"ACTION", "action"}, {"SUBJECT", "subject"},
        {"OUTCOME", "outcome"}, {"STATUS", "status"}, {"FROM", "address"},  {"DETAIL", "detail"},
    };
    CLI_JSON_AUTO json_t *answer = NULL;
    BUF_AUTO struct buf path = BUF_INIT(PATH_LIMIT);
    buf_addf(&path, "/v1/audit?limit=%u", cli_number(cli, "limit", 50, PAGE_MOST));
    add_filter(cli, &path, "actor");
    add_filter(cli, &path, "action");
    add_filter(cli, &path, "subject");
    add_filter(cli, &path, "outcome");
    int status = cli_call(cli, "GET", buf_text(&path), NULL, &answer);
    if (status != CLI_DONE)
        return status;
    cli_print_list(cli, json_object_get(answer, "audit"), columns, ARRAY_LEN(columns), "id");
    if (*cli_text(answer, "nextCursor"))
        (void)cli_fail(0, "there are more: raise --limit");
    return CLI_DONE;
}
