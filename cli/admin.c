/* SPDX-License-Identifier: MIT */
/* migrate, token, config, explain-error, version. */

#include "cli/admin_db.h"
#include "cli/cli.h"

#include "common/auth/auth.h"
#include "common/auth/auth_sign.h"
#include "common/store/migrate.h"
#include "common/store/site_store.h"

struct config_flag flags_migrate[] = {{.name = NULL}};
struct config_flag flags_token[] = {
    {.name = "user", .letter = 'u', .argument = "NAME", .doc = "subject (admin)"},
    {.name = "role", .letter = 'r', .argument = "ROLES", .doc = "viewer, user, operator or admin"},
    {.name = "tenant", .letter = 't', .argument = "NAME", .doc = "tenant (demo)"},
    {.name = "hours", .argument = "N", .doc = "lifetime (12)"},
    {.name = "kid", .argument = "NAME", .doc = "key id (dev)"},
    {.name = "key", .argument = "FILE", .doc = "private key to sign with"},
    {.name = "state", .argument = "FOLDER", .doc = "take the key from this 'sluice dev' folder"},
    {.name = "make-key",
     .argument = "ALG",
     .doc = "make a key pair instead: RS256, ES256 or HS256"},
    {.name = "private-dir", .argument = "FOLDER", .doc = "where --make-key puts the private part"},
    {.name = NULL},
};
struct config_flag flags_config[] = {
    {.name = "show-origin", .doc = "where each value comes from"},
    {.name = "doc", .doc = "all settings, as Markdown"},
    {.name = NULL},
};
struct config_flag flags_explain_error[] = {{.name = NULL}};
struct config_flag flags_version[] = {{.name = NULL}};

static void report(const struct migration *done)
{
    (void)printf("applied %03u %s\n", done->number, done->name);
}

int cmd_migrate(struct cli *cli)
{
    struct err err = {0};
    uint32_t applied = 0;
    const struct config *cfg = cli->cfg;
    struct store_config store = admin_db_config(cfg);
    enum err_code rc = migrate_run(&store, &applied, report, &err);
    if (rc)
        return cli_fail_err(rc == ERR_DB_AWAY ? CLI_NO_CONNECTION : CLI_REFUSED, &err);
    struct site_look look = {0};
    if (site_store_look(&store, &look, &err) == ERR_OK && look.schema > migrate_newest())
        (void)printf("the schema is at %03u, newer than this program (%s) knows: %03u. Nothing was "
                     "done; install the programs of the version that made it\n",
                     look.schema, SLUICE_VERSION, migrate_newest());
    else
        (void)printf("the schema is at %03u%s\n", migrate_newest(), applied ? "" : " already");
    return CLI_DONE;
}

static int make_key(struct cli *cli)
{
    struct err err = {0};
    char path[AUTH_PATH_SIZE];
    struct auth_new_key wanted = {
        .keys_dir = cli->cfg->auth_keys_dir,
        .private_dir = cli_value(cli, "private-dir", "."),
        .tenant = cli_value(cli, "tenant", "demo"),
        .kid = cli_value(cli, "kid", "dev"),
    };
    if (!auth_alg_parse(sv_of(cli_value(cli, "make-key", "")), &wanted.alg))
        return cli_fail(CLI_USAGE, "--make-key %s: RS256, ES256 and HS256 are known",
                        cli_value(cli, "make-key", ""));
    if (auth_make_key(&wanted, path, &err))
        return cli_fail_err(CLI_REFUSED, &err);
    (void)puts(path);
    return CLI_DONE;
}

/* FOLDER/private/TENANT.KID.pem, the file that sluice dev made for the tenant. A tenant that has
 * none gets a key of its own there: on a development machine asking for it is enough. */
static int state_key(const struct cli *cli, const char *tenant, const char *kid, char *ret_path,
                     size_t size)
{
    struct err err = {0};
    char keys[AUTH_PATH_SIZE];
    char private_dir[AUTH_PATH_SIZE];
    char made[AUTH_PATH_SIZE];
    const char *state = cli_value(cli, "state", "");
    (void)snprintf(keys, sizeof(keys), "%s/keys", state);
    (void)snprintf(private_dir, sizeof(private_dir), "%s/private", state);
    int length = snprintf(ret_path, size, "%s/%s.%s.pem", private_dir, tenant, kid);
    if (length < 0 || (size_t)length >= size || !auth_tenant_is_valid(sv_of(tenant)))
        return cli_fail(CLI_USAGE, "'%s' is not a tenant: lower-case letters, digits and -",
                        tenant);
    struct auth_new_key wanted = {.keys_dir = keys,
                                  .private_dir = private_dir,
                                  .tenant = tenant,
                                  .kid = kid,
                                  .alg = AUTH_RS256};
    enum err_code rc = auth_make_key(&wanted, made, &err);
    return rc == ERR_OK || rc == ERR_DUPLICATE ? CLI_DONE : cli_fail_err(CLI_REFUSED, &err);
}

int cmd_token(struct cli *cli)
{
    struct err err = {0};
    char path[AUTH_PATH_SIZE];
    AUTH_KEY_AUTO struct auth_private_key key = {0};
    TEXT_AUTO char *token = NULL;
    const char *tenant = cli_value(cli, "tenant", "demo");
    const char *kid = cli_value(cli, "kid", "dev");
    if (cli_has(cli, "make-key"))
        return make_key(cli);
    if (!cli_has(cli, "key") && !cli_has(cli, "state"))
        return cli_fail(CLI_USAGE, "give --key FILE, or --state FOLDER of a 'sluice dev'");
    (void)snprintf(path, sizeof(path), "%s", cli_value(cli, "key", ""));
    int status = cli_has(cli, "key") ? CLI_DONE : state_key(cli, tenant, kid, path, sizeof(path));
    if (status != CLI_DONE)
        return status;
    struct auth_claims claims = {
        .tenant = tenant,
        .user = cli_value(cli, "user", "admin"),
        .roles = cli_value(cli, "role", "admin"),
        .issuer = cli->cfg->auth_issuer,
        .audience = cli->cfg->auth_audience,
        .tenant_claim = cli->cfg->auth_tenant_claim,
        .roles_claim = cli->cfg->auth_roles_claim,
        .lifetime_s = (int64_t)cli_number(cli, "hours", 12, 24 * 366) * 3600,
    };
    if (auth_key_read(path, &key, &err) || auth_sign(&key, kid, &claims, &token, &err))
        return cli_fail_err(CLI_REFUSED, &err);
    (void)puts(token);
    return CLI_DONE;
}

int cmd_config(struct cli *cli)
{
    if (cli_has(cli, "doc"))
        config_doc(stdout);
    else
        config_show(cli->cfg, stdout, cli_has(cli, "show-origin"));
    return CLI_DONE;
}

int cmd_explain_error(struct cli *cli)
{
    const char *text = cli->operands[0];
    uint64_t number = 0;
    if (strncmp(text, "SLUICE-", 7) == 0)
        text += 7;
    for (int code = ERR_OK + 1; code < ERR_CODE_COUNT && sv_u64(sv_of(text), 9999, &number);
         code++) {
        if (err_number((enum err_code)code) != (int)number)
            continue;
        (void)printf("SLUICE-%d %s (HTTP %d)\n%s\n", (int)number, err_title((enum err_code)code),
                     err_http((enum err_code)code), err_help((enum err_code)code));
        return CLI_DONE;
    }
    return cli_fail(CLI_REFUSED, "'%s' is not an error code of Sluice", cli->operands[0]);
}

int cmd_version(struct cli *cli)
{
    (void)cli;
    (void)printf("sluice %s, schema %03u\n", SLUICE_VERSION, migrate_newest());
    return CLI_DONE;
}
