/* SPDX-License-Identifier: MIT */
/* apps, app get/put/rm/enable/disable. */

#include "cli/cli.h"
#include "cli/request.h"

struct config_flag flags_apps[] = {CLI_WATCH_FLAG, {.name = NULL}};
struct config_flag flags_app_get[] = {{.name = NULL}};
struct config_flag flags_app_put[] = {{.name = NULL}};
struct config_flag flags_app_rm[] = {{.name = NULL}};
struct config_flag flags_app_enable[] = {{.name = NULL}};
struct config_flag flags_app_disable[] = {{.name = NULL}};

int cmd_apps(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"ID", "id"}, {"VERSION", "version"}, {"ENABLED", "enabled"}, {"UPDATED", "updated"}};
    CLI_JSON_AUTO json_t *all = NULL;
    int status = cli_call_pages(cli, "/v1/apps", "apps", &all);
    if (status == CLI_DONE)
        cli_print_list(cli, all, columns, ARRAY_LEN(columns), "id");
    return status;
}

static int call_app(struct cli *cli, const char *method, const char *act, const json_t *body,
                    bool print)
{
    CLI_JSON_AUTO json_t *app = NULL;
    BUF_AUTO struct buf path = BUF_INIT(1024);
    buf_add_text(&path, "/v1/apps/");
    cli_url_add(&path, cli->operands[0]);
    buf_add_text(&path, "/");
    cli_url_add(&path, cli->operands[1]);
    buf_add_text(&path, act);
    int status = cli_call(cli, method, buf_text(&path), body, &app);
    if (status == CLI_DONE && print && app)
        cli_print_object(cli, app, "id");
    return status;
}

int cmd_app_get(struct cli *cli)
{
    return call_app(cli, "GET", "", NULL, true);
}

int cmd_app_put(struct cli *cli)
{
    CLI_JSON_AUTO json_t *body = NULL;
    int status = request_read_json(cli->operands[2], &body);
    if (status != CLI_DONE)
        return status;
    return call_app(cli, "PUT", "", body, true);
}

int cmd_app_rm(struct cli *cli)
{
    return call_app(cli, "DELETE", "", NULL, false);
}

int cmd_app_enable(struct cli *cli)
{
    return call_app(cli, "POST", "/enable", NULL, true);
}

int cmd_app_disable(struct cli *cli)
{
    return call_app(cli, "POST", "/disable", NULL, true);
}
