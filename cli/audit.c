/* SPDX-License-Identifier: MIT */
/* audit: whether the rows of a site keep the invariants. Read-only. */

#include "cli/admin_db.h"
#include "cli/cli.h"

#include "common/store/audit_store.h"

struct config_flag flags_audit[] = {{.name = NULL}};

static json_t *breaches_json(const struct audit_breach *items, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count && list; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s}", "invariant", items[i].invariant, "rule",
                            items[i].rule, "subject", items[i].subject, "detail", items[i].detail));
    return list;
}

static const struct cli_column columns[] = {
    {"INVARIANT", "invariant"}, {"BROKEN", "rule"}, {"WHERE", "subject"}, {"DETAIL", "detail"}};

static int tell(const struct cli *cli, const struct audit_breach *items, size_t count)
{
    CLI_JSON_AUTO json_t *list = breaches_json(items, count);
    if (count == 0 && cli->output == CLI_TABLE)
        (void)puts("no breach found");
    else
        cli_print_list(cli, list, columns, ARRAY_LEN(columns), "subject");
    return count == 0 ? CLI_DONE : CLI_REFUSED;
}

int cmd_audit(struct cli *cli)
{
    struct err err = {0};
    struct audit_breach *items = NULL;
    size_t count = 0;
    AUTO(store_free) struct store *store = NULL;
    const struct config *cfg = cli->cfg;
    struct store_config setup = admin_db_config(cfg);
    enum err_code rc = store_open(&setup, &store, &err);
    if (rc == ERR_OK)
        rc = audit_store_run(store, cfg->fleet_lease_ms, &items, &count, &err);
    if (rc)
        return cli_fail_err(rc == ERR_DB_AWAY ? CLI_NO_CONNECTION : CLI_USAGE, &err);
    int status = tell(cli, items, count);
    free(items);
    return status;
}
