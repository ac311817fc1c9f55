/* SPDX-License-Identifier: MIT */
/* recovery ls/show/check/release/fail. */

#include "cli/cli.h"

struct config_flag flags_recovery_ls[] = {CLI_WATCH_FLAG, {.name = NULL}};
struct config_flag flags_recovery_show[] = {
    {.name = "limit", .letter = 'n', .argument = "N", .doc = "jobs shown at most (50)"},
    {.name = NULL},
};
struct config_flag flags_recovery_check[] = {{.name = NULL}};
struct config_flag flags_recovery_release[] = {{.name = NULL}};
struct config_flag flags_recovery_fail[] = {{.name = NULL}};

#define JOBS_MAX 1000

int cmd_recovery_ls(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"ID", "id"},         {"CONDITION", "condition"}, {"BLOCKED", "blocked"},
        {"TESTS", "tests"},   {"LAST", "lastResult"},     {"NEXT CHECK", "nextCheck"},
        {"TESTER", "tester"}, {"DETAIL", "lastDetail"},
    };
    CLI_JSON_AUTO json_t *groups = NULL;
    int status = cli_call_pages(cli, "/v1/recovery", "recovery", &groups);
    if (status == CLI_DONE)
        cli_print_list(cli, groups, columns, ARRAY_LEN(columns), "id");
    return status;
}

int cmd_recovery_show(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"JOB", "id"},          {"NAME", "name"},
        {"OWNER", "owner"},     {"RESUMES AT", "resumeStatus"},
        {"BLOCKED", "blocked"},
    };
    CLI_JSON_AUTO json_t *cause = NULL;
    BUF_AUTO struct buf path = BUF_INIT(1024);
    buf_add_text(&path, "/v1/recovery/");
    cli_url_add(&path, cli->operands[0]);
    if (cli_has(cli, "limit"))
        buf_addf(&path, "?limit=%u", cli_number(cli, "limit", 0, JOBS_MAX));
    int status = cli_call(cli, "GET", buf_text(&path), NULL, &cause);
    if (status != CLI_DONE)
        return status;
    if (cli->output != CLI_TABLE) {
        cli_print_object(cli, cause, "id");
        return CLI_DONE;
    }
    CLI_JSON_AUTO json_t *jobs = json_incref(json_object_get(cause, "jobs"));
    (void)json_object_del(cause, "jobs");
    cli_print_object(cli, cause, "id");
    (void)fputc('\n', stdout);
    cli_print_list(cli, jobs, columns, ARRAY_LEN(columns), "id");
    return CLI_DONE;
}

int cmd_recovery_check(struct cli *cli)
{
    return cli_act_on_each(cli, "/v1/recovery/", "check", "will be checked now");
}

int cmd_recovery_release(struct cli *cli)
{
    return cli_act_on_each(cli, "/v1/recovery/", "release", "its jobs go on, by and by");
}

int cmd_recovery_fail(struct cli *cli)
{
    return cli_act_on_each(cli, "/v1/recovery/", "fail", "its jobs will end as FAILED");
}
