/* SPDX-License-Identifier: MIT */
/* systems, system get/put/rm/enable/disable, quotas, quota get/put/rm. */

#include "cli/cli.h"

#define LIMIT_MOST 1000000

struct config_flag flags_systems[] = {CLI_WATCH_FLAG, {.name = NULL}};
struct config_flag flags_system_get[] = {{.name = NULL}};
struct config_flag flags_system_rm[] = {{.name = NULL}};
struct config_flag flags_system_enable[] = {{.name = NULL}};
struct config_flag flags_system_disable[] = {{.name = NULL}};
struct config_flag flags_system_put[] = {
    {.name = "max-active", .argument = "N", .doc = "most jobs at once; 0: no limit"},
    {.name = "max-active-per-owner", .argument = "N", .doc = "of one user; 0: no limit"},
    {.name = "description", .argument = "TEXT", .doc = "what it is"},
    {.name = NULL},
};
struct config_flag flags_quotas[] = {CLI_WATCH_FLAG, {.name = NULL}};
struct config_flag flags_quota_get[] = {{.name = NULL}};
struct config_flag flags_quota_put[] = {{.name = NULL}};
struct config_flag flags_quota_rm[] = {{.name = NULL}};

int cmd_systems(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"ID", "id"},
        {"KIND", "kind"},
        {"ENABLED", "enabled"},
        {"MAX ACTIVE", "maxActive"},
        {"PER OWNER", "maxActivePerOwner"},
        {"DESCRIPTION", "description"},
    };
    CLI_JSON_AUTO json_t *all = NULL;
    int status = cli_call_pages(cli, "/v1/systems", "systems", &all);
    if (status == CLI_DONE)
        cli_print_list(cli, all, columns, ARRAY_LEN(columns), "id");
    return status;
}

static void make_path(const struct cli *cli, const char *resource, const char *act,
                      struct buf *path)
{
    buf_add_text(path, resource);
    cli_url_add(path, cli->operands[0]);
    buf_add_text(path, act);
}

/* name: the member that -o name prints; NULL: nothing is printed. */
static int call_one(struct cli *cli, const char *method, const char *path, const json_t *body,
                    const char *name)
{
    CLI_JSON_AUTO json_t *answer = NULL;
    int status = cli_call(cli, method, path, body, &answer);
    if (status == CLI_DONE && name && answer)
        cli_print_object(cli, answer, name);
    return status;
}

static int call_system(struct cli *cli, const char *method, const char *act, const char *name)
{
    BUF_AUTO struct buf path = BUF_INIT(1024);
    make_path(cli, "/v1/systems/", act, &path);
    return call_one(cli, method, buf_text(&path), NULL, name);
}

int cmd_system_get(struct cli *cli)
{
    return call_system(cli, "GET", "", "id");
}

int cmd_system_rm(struct cli *cli)
{
    return call_system(cli, "DELETE", "", NULL);
}

int cmd_system_enable(struct cli *cli)
{
    return call_system(cli, "POST", "/enable", "id");
}

int cmd_system_disable(struct cli *cli)
{
    return call_system(cli, "POST", "/disable", "id");
}

static void set_limit(const struct cli *cli, const char *flag, const char *member, json_t *body)
{
    if (!cli_has(cli, flag))
        return;
    uint32_t limit = cli_number(cli, flag, 0, LIMIT_MOST);
    (void)json_object_set_new(body, member, limit ? json_integer(limit) : json_null());
}

/* What is not given by a flag stays as it is. */
static json_t *system_body(const struct cli *cli, const json_t *now)
{
    static const char *const kept[] = {"kind", "maxActive", "maxActivePerOwner", "description"};
    json_t *body = json_object();
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        json_t *value = json_object_get(now, kept[i]);
        if (value)
            (void)json_object_set(body, kept[i], value);
    }
    set_limit(cli, "max-active", "maxActive", body);
    set_limit(cli, "max-active-per-owner", "maxActivePerOwner", body);
    if (cli_has(cli, "description"))
        (void)json_object_set_new(body, "description",
                                  json_string(cli_value(cli, "description", "")));
    return body;
}

int cmd_system_put(struct cli *cli)
{
    char match[80] = "";
    CLI_JSON_AUTO json_t *now = NULL;
    BUF_AUTO struct buf path = BUF_INIT(1024);
    make_path(cli, "/v1/systems/", "", &path);
    int status = cli_read_to_change(cli, buf_text(&path), &now, match, sizeof(match));
    if (status != CLI_DONE)
        return status;
    CLI_JSON_AUTO json_t *body = system_body(cli, now);
    CLI_JSON_AUTO json_t *made = NULL;
    status = cli_put_changed(cli, buf_text(&path), body, match, &made);
    if (status != CLI_DONE)
        return status;
    cli_print_object(cli, made, "id");
    return CLI_DONE;
}

/* ---- quotas ---------------------------------------------------------------------------------- */

int cmd_quotas(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"OWNER", "owner"}, {"MAX ACTIVE", "maxActive"}, {"UPDATED", "updated"}};
    CLI_JSON_AUTO json_t *all = NULL;
    int status = cli_call_pages(cli, "/v1/quotas", "quotas", &all);
    if (status == CLI_DONE)
        cli_print_list(cli, all, columns, ARRAY_LEN(columns), "owner");
    return status;
}

static int call_quota(struct cli *cli, const char *method, const json_t *body, const char *name)
{
    BUF_AUTO struct buf path = BUF_INIT(1024);
    make_path(cli, "/v1/quotas/", "", &path);
    return call_one(cli, method, buf_text(&path), body, name);
}

int cmd_quota_get(struct cli *cli)
{
    return call_quota(cli, "GET", NULL, "owner");
}

int cmd_quota_put(struct cli *cli)
{
    uint64_t limit = 0;
    if (!sv_u64(sv_of(cli->operands[1]), LIMIT_MOST, &limit))
        return cli_fail(CLI_USAGE, "'%s' is not a whole number up to %d", cli->operands[1],
                        LIMIT_MOST);
    CLI_JSON_AUTO json_t *body = json_pack("{s:I}", "maxActive", (json_int_t)limit);
    return call_quota(cli, "PUT", body, "owner");
}

int cmd_quota_rm(struct cli *cli)
{
    return call_quota(cli, "DELETE", NULL, NULL);
}
