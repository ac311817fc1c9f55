/* SPDX-License-Identifier: MIT */
#include "cli/site.h"

#include "cli/cli.h"
#include "cli/contexts.h"
#include "cli/token_claims.h"

static char *copy_of(const char *text)
{
    return strdup(text ? text : "");
}

static int take(struct site *ret_site, const char *url, const char *token, const json_t *context,
                const char *name)
{
    *ret_site = (struct site){
        .url = copy_of(url),
        .token = copy_of(token),
        .ca = copy_of(context ? cli_text(context, "ca") : ""),
        .name = copy_of(name),
    };
    bool complete = ret_site->url && ret_site->token && ret_site->ca && ret_site->name;
    return complete ? CLI_DONE : cli_fail(CLI_REFUSED, "out of memory");
}

void site_done(struct site *site)
{
    text_free(&site->url);
    text_free(&site->token);
    text_free(&site->ca);
    text_free(&site->name);
}

/* The context of this name; an error is printed if there is none. */
static json_t *named(const json_t *doc, const char *name, const char *by)
{
    json_t *context = contexts_find(doc, name);
    if (!context)
        (void)cli_fail(CLI_USAGE,
                       "%s '%s': there is no such context; 'sluice context ls' lists them", by,
                       name);
    return context;
}

/* Another context whose address this is, for the message. */
static const char *context_at(const json_t *doc, const char *url)
{
    const char *name = NULL;
    json_t *context = NULL;
    json_object_foreach(json_object_get(doc, "contexts"), name, context)
    {
        if (http_is_same_place(url, cli_text(context, "url")))
            return name;
    }
    return NULL;
}

/* SLUICE_URL says where. The token of a context goes there only if it is the context's address. */
static int choose_by_url(const struct cli *cli, const json_t *doc, const char *asked,
                         struct site *ret_site)
{
    const char *url = cli->cfg->client_url;
    const char *name = asked ? asked : contexts_current(doc);
    const json_t *context = asked ? named(doc, asked, "SLUICE_CONTEXT") : contexts_find(doc, name);
    bool here = context && http_is_same_place(url, cli_text(context, "url"));
    if (asked && !context)
        return CLI_USAGE;
    if (asked && !here)
        return cli_fail(CLI_USAGE,
                        "SLUICE_URL is %s, and SLUICE_CONTEXT=%s is %s: unset one of them, or give "
                        "--context",
                        url, asked, cli_text(context, "url"));
    if (*cli->cfg->client_token)
        return take(ret_site, url, cli->cfg->client_token, here ? context : NULL, "");
    if (here || !context)
        return take(ret_site, url, here ? cli_text(context, "token") : "", context,
                    here ? name : "");
    const char *other = context_at(doc, url);
    if (other)
        return cli_fail(CLI_USAGE,
                        "no token for %s: the context %s has one; set SLUICE_TOKEN, or give "
                        "--context %s",
                        url, other, other);
    return cli_fail(CLI_USAGE,
                    "no token for %s: the token of the context %s is for %s only; set "
                    "SLUICE_TOKEN, or 'sluice login %s'",
                    url, name, cli_text(context, "url"), url);
}

static int choose_by_name(const struct cli *cli, const json_t *doc, const char *name,
                          const char *by, struct site *ret_site)
{
    const json_t *context = named(doc, name, by);
    bool flag = strcmp(by, "--context") == 0;
    if (!context)
        return CLI_USAGE;
    if (!flag && *cli->cfg->client_token)
        return cli_fail(CLI_USAGE,
                        "SLUICE_TOKEN is set and SLUICE_URL is not: name the address that it is "
                        "for, or unset it to use the context %s (%s)",
                        name, cli_text(context, "url"));
    return take(ret_site, cli_text(context, "url"), cli_text(context, "token"), context, name);
}

int site_choose(struct cli *cli, struct site *ret_site)
{
    struct err err = {0};
    CLI_JSON_AUTO json_t *doc = NULL;
    const char *flag = cli_value(cli, "context", NULL);
    const char *asked = getenv("SLUICE_CONTEXT"); /* NOLINT(concurrency-mt-unsafe): one thread */
    const char *origin = cli->cfg->origin[CONFIG_ID_client_url];
    asked = asked && *asked ? asked : NULL;
    if (!flag && !asked && *cli->cfg->client_url && *cli->cfg->client_token)
        return take(ret_site, cli->cfg->client_url, cli->cfg->client_token, NULL, "");
    if (flag && origin && strncmp(origin, "--", 2) == 0)
        return cli_fail(CLI_USAGE, "--context and %s exclude each other", origin);
    if (contexts_load(&doc, &err))
        return cli_fail_err(CLI_USAGE, &err);
    if (flag)
        return choose_by_name(cli, doc, flag, "--context", ret_site);
    if (*cli->cfg->client_url)
        return choose_by_url(cli, doc, asked, ret_site);
    if (asked)
        return choose_by_name(cli, doc, asked, "SLUICE_CONTEXT", ret_site);
    if (*contexts_current(doc))
        return choose_by_name(cli, doc, contexts_current(doc), "the current context", ret_site);
    return cli_fail(CLI_USAGE, "no address: 'sluice login URL', set SLUICE_URL and SLUICE_TOKEN, "
                               "or start a service on this machine with 'sluice dev'");
}

void site_tell_expiry(const struct site *site, char *ret_text, size_t size)
{
    struct token_claims claims = {0};
    int64_t now_s = (int64_t)time(NULL);
    ret_text[0] = 0;
    if (!site->token || !token_claims_read(site->token, &claims) || claims.expires_s == 0 ||
        claims.expires_s > now_s)
        return;
    long long ago_s = now_s - claims.expires_s;
    (void)snprintf(ret_text, size, "it expired %lld %s ago",
                   ago_s < 120    ? ago_s
                   : ago_s < 7200 ? ago_s / 60
                                  : ago_s / 3600,
                   ago_s < 120    ? "s"
                   : ago_s < 7200 ? "min"
                                  : "h");
}
