/* SPDX-License-Identifier: MIT */
/* cancel, hide, unhide: of jobs that are named, or that a search finds. */

#include "cli/bulk.h"

#include <unistd.h>

static const char *statuses[CLI_FLAG_LIST_MAX];
struct config_flag flags_cancel[] = {
    {.name = "filter", .letter = 'f', .argument = "TEXT", .doc = "those that this search finds"},
    {.name = "status",
     .letter = 's',
     .argument = "STATUS",
     .doc = "those in these states; may be repeated",
     .list = statuses,
     .list_max = CLI_FLAG_LIST_MAX},
    {.name = "owner", .argument = "USER", .doc = "those of this user"},
    {.name = "queue", .argument = "NAME", .doc = "those on this queue"},
    BULK_YES_FLAG,
    {.name = NULL},
};
struct config_flag flags_hide[] = {{.name = NULL}};
struct config_flag flags_unhide[] = {{.name = NULL}};

#define ROUNDS_MAX 10000 /* of up to 1000 jobs */

bool bulk_confirmed(const struct cli *cli, const char *what)
{
    char answer[16] = "";
    if (cli_has(cli, "yes"))
        return true;
    if (!isatty(STDIN_FILENO)) {
        (void)cli_fail(0, "this would %s: give --yes to do it", what);
        return false;
    }
    (void)fprintf(stderr, "%s? [y/N] ", what);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static bool is_search(const struct cli *cli)
{
    return cli_has(cli, "filter") || cli_has(cli, "status") || cli_has(cli, "owner") ||
           cli_has(cli, "queue");
}

static void write_search(const struct cli *cli, struct buf *path)
{
    static const char *const plain[] = {"filter", "owner", "queue"};
    const struct config_flag *status = cli_flag(cli, "status");
    char mark = '?';
    buf_add_text(path, "/v1/jobs:cancel");
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        if (!cli_has(cli, plain[i]))
            continue;
        buf_addf(path, "%c%s=", mark, plain[i]);
        cli_url_add(path, cli_value(cli, plain[i], ""));
        mark = '&';
    }
    for (size_t i = 0; i < status->count; i++) {
        buf_addf(path, "%cstatus=", mark);
        cli_url_add(path, status->list[i]);
        mark = '&';
    }
}

static json_int_t count_of(const json_t *object)
{
    const json_t *count = json_is_object(object) ? json_object_get(object, "count") : object;
    return json_integer_value(count);
}

/* Rounds until none is left; each expects what the one before left. */
static int cancel_found(struct cli *cli, const char *path, json_int_t expected)
{
    json_int_t done = 0;
    json_int_t failed = 0;
    for (int i = 0; expected > 0 && i < ROUNDS_MAX; i++) {
        CLI_JSON_AUTO json_t *body = json_pack("{s:I}", "expectedCount", expected);
        CLI_JSON_AUTO json_t *result = NULL;
        int status = cli_call(cli, "POST", path, body, &result);
        if (status != CLI_DONE)
            return status;
        json_int_t acted = count_of(json_object_get(result, "cancelled")) +
                           count_of(json_object_get(result, "asked"));
        done += acted;
        failed += count_of(json_object_get(result, "failed"));
        expected = acted > 0 ? count_of(json_object_get(result, "remaining")) : 0;
    }
    (void)printf("%lld cancelled or being cancelled\n", (long long)done);
    return failed > 0 ? cli_fail(CLI_REFUSED, "%lld could not be cancelled", (long long)failed)
                      : CLI_DONE;
}

static int cancel_search(struct cli *cli)
{
    char what[64];
    CLI_JSON_AUTO json_t *dry = json_pack("{s:b}", "dryRun", 1);
    CLI_JSON_AUTO json_t *result = NULL;
    BUF_AUTO struct buf path = BUF_INIT(16384);
    write_search(cli, &path);
    int status = cli_call(cli, "POST", buf_text(&path), dry, &result);
    if (status != CLI_DONE)
        return status;
    const json_t *matched = json_object_get(result, "matched");
    bool more = json_is_true(json_object_get(matched, "isMore"));
    json_int_t count = count_of(matched);
    if (count == 0)
        return cli_fail(CLI_DONE, "no jobs to cancel");
    (void)snprintf(what, sizeof(what), "cancel %s%lld jobs", more ? "more than " : "",
                   (long long)count);
    if (!bulk_confirmed(cli, what))
        return cli_fail(CLI_REFUSED, "nothing was cancelled");
    return cancel_found(cli, buf_text(&path), count);
}

static int cancel_one(struct cli *cli, const char *id)
{
    CLI_JSON_AUTO json_t *job = NULL;
    BUF_AUTO struct buf path = BUF_INIT(4096);
    buf_add_text(&path, "/v1/jobs/");
    cli_url_add(&path, id);
    buf_add_text(&path, "/cancel");
    int status = cli_call(cli, "POST", buf_text(&path), NULL, &job);
    if (status == CLI_DONE && cli->output == CLI_JSON)
        cli_print_object(cli, job, "id");
    else if (status == CLI_DONE)
        (void)printf("%s %s\n", id,
                     strcmp(cli_text(job, "status"), "CANCELLED") == 0 ? "CANCELLED"
                                                                       : "cancelling");
    return status;
}

int cmd_cancel(struct cli *cli)
{
    int worst = CLI_DONE;
    if (is_search(cli) == (cli->operand_count > 0))
        return cli_fail(CLI_USAGE, "give ids of jobs, or a search: --filter, --status, --owner, "
                                   "--queue");
    if (is_search(cli))
        return cancel_search(cli);
    for (int i = 0; i < cli->operand_count; i++) {
        int status = cancel_one(cli, cli->operands[i]);
        worst = status > worst ? status : worst;
    }
    return worst;
}

int cmd_hide(struct cli *cli)
{
    return cli_act_on_each(cli, "/v1/jobs/", "hide", "is left out of lists; 'jobs --all' shows it");
}

int cmd_unhide(struct cli *cli)
{
    return cli_act_on_each(cli, "/v1/jobs/", "unhide", "is in lists again");
}
