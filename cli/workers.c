/* SPDX-License-Identifier: MIT */
/* workers, drain, undrain. */

#include "cli/cli.h"

struct config_flag flags_workers[] = {CLI_WATCH_FLAG, {.name = NULL}};
struct config_flag flags_drain[] = {{.name = NULL}};
struct config_flag flags_undrain[] = {{.name = NULL}};

int cmd_workers(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"ID", "id"},           {"NAME", "name"},   {"HOST", "host"},
        {"QUEUE", "queue"},     {"STATE", "state"}, {"DRAINING", "draining"},
        {"BUSY", "busy"},       {"SLOTS", "slots"}, {"BEAT AGE (s)", "beatAgeSeconds"},
        {"VERSION", "version"},
    };
    CLI_JSON_AUTO json_t *answer = NULL;
    int status = cli_call(cli, "GET", "/v1/workers", NULL, &answer);
    if (status == CLI_DONE)
        cli_print_list(cli, json_object_get(answer, "workers"), columns, ARRAY_LEN(columns), "id");
    return status;
}

int cmd_drain(struct cli *cli)
{
    return cli_act_on_each(cli, "/v1/workers/", "drain",
                           "takes no further jobs, and ends those that it has");
}

int cmd_undrain(struct cli *cli)
{
    return cli_act_on_each(cli, "/v1/workers/", "undrain", "takes jobs again");
}
