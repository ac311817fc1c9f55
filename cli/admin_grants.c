/* SPDX-License-Identifier: MIT */
/* grants: the rights of the accounts that the programs connect to the database as. */

#include "cli/admin_db.h"
#include "cli/cli.h"

#include "common/store/account.h"

#define GRANTS_LIMIT ((size_t)64 * 1024)

struct config_flag flags_grants[] = {
    {.name = "prefix", .argument = "NAME", .doc = "what the names begin with (sluice_)"},
    {.name = "host", .argument = "HOST", .doc = "where they connect from, as in 'name'@'HOST' (%)"},
    {.name = "apply", .doc = "run them, instead of printing them"},
    {.name = NULL},
};

int cmd_grants(struct cli *cli)
{
    struct err err = {0};
    BUF_AUTO struct buf sql = BUF_INIT(GRANTS_LIMIT);
    const struct account_site site = {.schema = cli->cfg->db_name,
                                      .prefix = cli_value(cli, "prefix", "sluice_"),
                                      .host = cli_value(cli, "host", "%")};
    enum err_code rc = account_sql(&site, &sql, &err);
    if (rc)
        return cli_fail_err(CLI_USAGE, &err);
    if (!cli_has(cli, "apply")) {
        (void)fputs(buf_text(&sql), stdout);
        return CLI_DONE;
    }
    const struct store_config store = admin_db_config(cli->cfg);
    rc = account_grant(&store, &site, &err);
    if (rc)
        return cli_fail_err(rc == ERR_DB_AWAY ? CLI_NO_CONNECTION : CLI_REFUSED, &err);
    (void)puts("every account has its rights");
    return CLI_DONE;
}
