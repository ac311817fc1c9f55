/* SPDX-License-Identifier: MIT */
/* login, context ls/use/rm. */

#include "cli/cli.h"
#include "cli/contexts.h"
#include "cli/token_claims.h"

#include <ctype.h>
#include <limits.h>
#include <termios.h>
#include <unistd.h>

#define TOKEN_BYTES_MAX ((size_t)16384)

struct config_flag flags_login[] = {
    {.name = "name", .letter = 'n', .argument = "NAME", .doc = "of the context (the host's)"},
    {.name = "token-file", .argument = "FILE", .doc = "the token is in this file; else on stdin"},
    {.name = NULL},
};
struct config_flag flags_context_ls[] = {CLI_WATCH_FLAG, {.name = NULL}};
struct config_flag flags_context_use[] = {{.name = NULL}};
struct config_flag flags_context_rm[] = {{.name = NULL}};

/* ---- login ----------------------------------------------------------------------------------- */

/* What is typed or pasted on a terminal is not shown there. */
static void hush(bool quiet, struct termios *before)
{
    struct termios now;
    if (quiet && tcgetattr(STDIN_FILENO, before) == 0) {
        now = *before;
        now.c_lflag &= ~(tcflag_t)ECHO;
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &now);
    } else if (!quiet) {
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, before);
        (void)fputc('\n', stderr);
    }
}

static size_t read_all(FILE *from, bool a_line, char *ret_text, size_t size)
{
    size_t length = 0;
    int c = 0;
    while (length < size && (c = fgetc(from)) != EOF && !(a_line && c == '\n'))
        ret_text[length++] = (char)c;
    while (length > 0 && isspace((unsigned char)ret_text[length - 1]))
        length--;
    return length;
}

/* From a file, a pipe, or a line of the terminal; never an argument, which others can see. */
static int read_token(const struct cli *cli, const char *url, char *ret_token)
{
    const char *path = cli_value(cli, "token-file", NULL);
    FILE *from = path ? fopen(path, "re") : stdin;
    bool typed = !path && isatty(STDIN_FILENO);
    struct termios before = {0};
    if (!from)
        return cli_fail(CLI_USAGE, "%s cannot be read", path);
    if (typed) {
        (void)fprintf(stderr, "token for %s: ", url);
        hush(true, &before);
    }
    size_t length = read_all(from, typed, ret_token, TOKEN_BYTES_MAX + 1);
    if (typed)
        hush(false, &before);
    if (path)
        (void)fclose(from);
    if (length > TOKEN_BYTES_MAX)
        return cli_fail(CLI_USAGE, "the token is longer than %zu bytes", TOKEN_BYTES_MAX);
    ret_token[length] = 0;
    for (size_t i = 0; i < length; i++) {
        if (!isgraph((unsigned char)ret_token[i]))
            return cli_fail(CLI_USAGE, "the token has a character that no token has, at byte %zu",
                            i + 1);
    }
    return length > 0 ? CLI_DONE
                      : cli_fail(CLI_USAGE, "no token came: give it on stdin, or by "
                                            "--token-file FILE");
}

/* Without the '/' at its end. */
static int read_url(const char *text, char *ret_url, size_t size)
{
    size_t length = strlen(text);
    bool web = strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
    while (length > 0 && text[length - 1] == '/')
        length--;
    if (!web || !sv_copy((struct sv){text, length}, ret_url, size) || strpbrk(text, "@?# ") ||
        !http_is_same_place(ret_url, ret_url))
        return cli_fail(CLI_USAGE,
                        "'%s' is no address of a service, such as "
                        "https://jobs.example.org",
                        text);
    return CLI_DONE;
}

/* "jobs.example.org", "127.0.0.1-8080". */
static void name_of_url(const char *url, char *ret_name)
{
    const char *host = strstr(url, "://") + 3;
    size_t i = 0;
    for (; host[i] && host[i] != '/' && i + 1 < CONTEXT_NAME_SIZE; i++)
        ret_name[i] = (char)(host[i] == ':'                                      ? '-'
                             : isalnum((unsigned char)host[i]) || host[i] == '.' ? host[i]
                             : host[i] == '-' && i > 0                           ? '-'
                                                                                 : '_');
    ret_name[i] = 0;
}

struct login {
    char name[CONTEXT_NAME_SIZE];
    char url[1025];
    char ca[PATH_MAX];
    char token[TOKEN_BYTES_MAX + 2];
    char tenant[128];
    char user[256];
};

/* The token is tried before it is kept. */
static int try_login(struct cli *cli, struct login *login)
{
    struct err err = {0};
    const struct http_request request = {.method = "GET", .path = "/v1/whoami"};
    HTTP_ANSWER_AUTO struct http_answer answer = {0};
    if (http_open(login->url, login->token, cli->cfg->client_timeout_ms, &cli->http, &err))
        return cli_fail_err(CLI_NO_CONNECTION, &err);
    http_use_tls(cli->http, login->ca, cli->cfg->client_tls_cert, cli->cfg->client_tls_key);
    cli->site.token = strdup(login->token);
    if (http_send(cli->http, &request, &answer, &err))
        return cli_fail_err(CLI_NO_CONNECTION, &err);
    if (answer.status != 200)
        return cli_problem(cli, &answer);
    CLI_JSON_AUTO json_t *me = json_loadb(buf_text(&answer.body), answer.body.len, 0, NULL);
    (void)snprintf(login->tenant, sizeof(login->tenant), "%s", cli_text(me, "tenant"));
    (void)snprintf(login->user, sizeof(login->user), "%s", cli_text(me, "user"));
    return *login->user ? CLI_DONE
                        : cli_fail(CLI_REFUSED, "%s is no service of Sluice", login->url);
}

static enum err_code keep_login(json_t *doc, void *arg, struct err *err)
{
    const struct login *login = arg;
    const json_t *now = contexts_find(doc, login->name);
    if (now && !http_is_same_place(cli_text(now, "url"), login->url))
        return err_set(err, ERR_DUPLICATE,
                       "the context %s is for %s: give another name by --name, or remove it by "
                       "'sluice context rm %s'",
                       login->name, cli_text(now, "url"), login->name);
    json_t *context = json_pack("{s:s, s:s, s:s}", "url", login->url, "token", login->token,
                                "tenant", login->tenant);
    if (*login->ca)
        (void)json_object_set_new(context, "ca", json_string(login->ca));
    enum err_code rc = contexts_put(doc, login->name, context, err);
    if (rc == ERR_OK)
        contexts_set_current(doc, login->name);
    return rc;
}

static void warn_of_variables(void)
{
    static const char *const names[] = {"SLUICE_URL", "SLUICE_CONTEXT"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]); /* NOLINT(concurrency-mt-unsafe): one thread */
        if (value && *value)
            (void)cli_fail(0, "%s=%s goes before the current context: unset it", names[i], value);
    }
}

int cmd_login(struct cli *cli)
{
    struct err err = {0};
    struct login login = {0};
    const char *ca = cli_value(cli, "ca", cli->cfg->client_tls_ca);
    int status = read_url(cli->operands[0], login.url, sizeof(login.url));
    if (status != CLI_DONE)
        return status;
    char host[CONTEXT_NAME_SIZE];
    name_of_url(login.url, host);
    const char *name = cli_value(cli, "name", host);
    if (!context_name_is_valid(name))
        return cli_fail(CLI_USAGE,
                        "'%s' is no name of a context: letters, digits, '.', '_', '-', at "
                        "most %d",
                        name, CONTEXT_NAME_SIZE - 1);
    (void)snprintf(login.name, sizeof(login.name), "%s", name);
    if (*ca && !realpath(ca, login.ca))
        return cli_fail(CLI_USAGE, "%s cannot be read", ca);
    status = read_token(cli, login.url, login.token);
    if (status == CLI_DONE)
        status = try_login(cli, &login);
    if (status == CLI_DONE && contexts_change(keep_login, &login, &err))
        status = cli_fail_err(CLI_REFUSED, &err);
    if (status == CLI_DONE) {
        (void)cli_fail(0, "%s of tenant %s at %s: context %s, now the current one", login.user,
                       login.tenant, login.url, login.name);
        warn_of_variables();
    }
    explicit_bzero(login.token, sizeof(login.token));
    return status;
}

/* ---- contexts -------------------------------------------------------------------------------- */

static json_t *view_of(const char *name, const json_t *context, bool current)
{
    char expires[40];
    struct token_claims claims = {0};
    struct tm when;
    bool known = token_claims_read(cli_text(context, "token"), &claims) && claims.expires_s > 0;
    time_t at = (time_t)claims.expires_s;
    json_t *view = json_pack("{s:b, s:s, s:s, s:s, s:s}", "current", current, "name", name, "url",
                             cli_text(context, "url"), "tenant", cli_text(context, "tenant"),
                             "user", claims.user);
    if (known && gmtime_r(&at, &when))
        (void)strftime(expires, sizeof(expires), "%Y-%m-%dT%H:%M:%SZ", &when);
    (void)json_object_set_new(view, "expires", known ? json_string(expires) : json_null());
    return view;
}

int cmd_context_ls(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"NAME", "name"},     {"CURRENT", "current"}, {"ADDRESS", "url"},
        {"TENANT", "tenant"}, {"USER", "user"},       {"EXPIRES", "expires"},
    };
    struct err err = {0};
    const char *name = NULL;
    json_t *context = NULL;
    CLI_JSON_AUTO json_t *doc = NULL;
    CLI_JSON_AUTO json_t *views = json_array();
    if (contexts_load(&doc, &err))
        return cli_fail_err(CLI_REFUSED, &err);
    json_object_foreach(json_object_get(doc, "contexts"), name, context)
    {
        bool current = strcmp(name, contexts_current(doc)) == 0;
        (void)json_array_append_new(views, view_of(name, context, current));
    }
    cli_print_list(cli, views, columns, ARRAY_LEN(columns), "name");
    if (cli->output == CLI_TABLE)
        warn_of_variables();
    return CLI_DONE;
}

static enum err_code use_it(json_t *doc, void *arg, struct err *err)
{
    if (!contexts_find(doc, arg))
        return err_set(err, ERR_NOT_FOUND, "there is no context %s; 'sluice context ls' lists them",
                       (const char *)arg);
    contexts_set_current(doc, arg);
    return ERR_OK;
}

static enum err_code remove_it(json_t *doc, void *arg, struct err *err)
{
    if (!contexts_find(doc, arg))
        return err_set(err, ERR_NOT_FOUND, "there is no context %s; 'sluice context ls' lists them",
                       (const char *)arg);
    (void)json_object_del(json_object_get(doc, "contexts"), arg);
    if (strcmp(contexts_current(doc), arg) == 0)
        (void)json_object_del(doc, "current");
    return ERR_OK;
}

int cmd_context_use(struct cli *cli)
{
    struct err err = {0};
    if (contexts_change(use_it, cli->operands[0], &err))
        return cli_fail_err(CLI_REFUSED, &err);
    warn_of_variables();
    return CLI_DONE;
}

int cmd_context_rm(struct cli *cli)
{
    struct err err = {0};
    if (contexts_change(remove_it, cli->operands[0], &err))
        return cli_fail_err(CLI_REFUSED, &err);
    return CLI_DONE;
}
