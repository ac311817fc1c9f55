/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <ctype.h>
#include <stdarg.h>

int cli_fail(int status, const char *format, ...)
{
    TEXT_AUTO char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        text = NULL;
    (void)fputs("sluice: ", stderr);
    cli_put(stderr, text ? text : "out of memory");
    (void)fputc('\n', stderr);
    return status;
}

int cli_fail_err(int status, const struct err *err)
{
    if (err->pointer[0])
        return cli_fail(status, "%s (at %s)", err->text, err->pointer);
    return cli_fail(status, "%s", err->text);
}

void cli_json_drop(json_t **value)
{
    json_decref(*value);
    *value = NULL;
}

const char *cli_text(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

void cli_url_add(struct buf *url, const char *text)
{
    for (; *text; text++) {
        if (isalnum((unsigned char)*text) || strchr("-._~", *text))
            buf_add(url, text, 1);
        else
            buf_addf(url, "%%%02X", (unsigned char)*text);
    }
}

/* " [SLUICE-1010, request 01a2...]": where to look it up, here and in the log of the service. */
static void add_reference(struct buf *text, const json_t *problem, const struct http_answer *answer)
{
    const char *code = cli_text(problem, "code");
    const char *request = cli_text(problem, "requestId");
    request = *request ? request : answer->request_id;
    if (*code || *request)
        buf_addf(text, " [%s%s%s%s]", code, *code && *request ? ", " : "",
                 *request ? "request " : "", request);
    if (*answer->retry_after)
        buf_addf(text, "; try again in %s s", answer->retry_after);
}

/* A request can have more than one fault; the first is the detail. */
static void put_further(const json_t *problem)
{
    const json_t *errors = json_object_get(problem, "errors");
    for (size_t i = 1; i < json_array_size(errors); i++) {
        const json_t *one = json_array_get(errors, i);
        (void)cli_fail(CLI_REFUSED, "also: %s (at %s)", cli_text(one, "reason"),
                       cli_text(one, "pointer"));
    }
}

/* A person reads the sentence, the place and where to look it up. */
int cli_problem(const struct cli *cli, const struct http_answer *answer)
{
    CLI_JSON_AUTO json_t *problem = json_loadb(buf_text(&answer->body), answer->body.len, 0, NULL);
    const char *detail = cli_text(problem, "detail");
    const json_t *first = json_array_get(json_object_get(problem, "errors"), 0);
    const char *pointer = cli_text(first, "pointer");
    char expired[64] = "";
    /* The service says so of a token that is good in all else. */
    if (answer->status == 401 && !strstr(detail, "expired"))
        site_tell_expiry(&cli->site, expired, sizeof(expired));
    BUF_AUTO struct buf text = BUF_INIT(answer->body.len + 512);
    if (*detail)
        buf_addf(&text, "%s%s%s", detail, *expired ? "; " : "", expired);
    else
        buf_addf(&text, "the service answered with status %ld", answer->status);
    if (*pointer)
        buf_addf(&text, " (at %s)", pointer);
    add_reference(&text, problem, answer);
    int status = cli_fail(CLI_REFUSED, "%s", buf_text(&text));
    if (*cli_text(problem, "caret")) {
        cli_put(stderr, cli_text(problem, "caret"));
        (void)fputc('\n', stderr);
    }
    put_further(problem);
    return status;
}

struct http *cli_http(struct cli *cli)
{
    struct err err = {0};
    if (cli->http)
        return cli->http;
    if (site_choose(cli, &cli->site) != CLI_DONE)
        return NULL;
    const char *ca = *cli->cfg->client_tls_ca ? cli->cfg->client_tls_ca : cli->site.ca;
    if (http_open(cli->site.url, cli->site.token, cli->cfg->client_timeout_ms, &cli->http, &err))
        (void)cli_fail_err(CLI_NO_CONNECTION, &err);
    else
        http_use_tls(cli->http, cli_value(cli, "ca", ca), cli->cfg->client_tls_cert,
                     cli->cfg->client_tls_key);
    return cli->http;
}

int cli_send(struct cli *cli, const struct http_request *request, struct http_answer *ret_answer)
{
    struct err err = {0};
    struct http *http = cli_http(cli);
    *ret_answer = (struct http_answer){0};
    if (!http)
        return CLI_USAGE;
    if (http_send(http, request, ret_answer, &err))
        return cli_fail_err(CLI_NO_CONNECTION, &err);
    return ret_answer->status < 300 ? CLI_DONE : cli_problem(cli, ret_answer);
}

int cli_call(struct cli *cli, const char *method, const char *path, const json_t *body,
             json_t **ret_json)
{
    TEXT_AUTO char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct http_request request = {.method = method, .path = path, .body = sv_of(text)};
    HTTP_ANSWER_AUTO struct http_answer answer = {0};
    int status = cli_send(cli, &request, &answer);
    if (status == CLI_DONE && ret_json)
        *ret_json = json_loadb(buf_text(&answer.body), answer.body.len, 0, NULL);
    return status;
}

int cli_call_pages(struct cli *cli, const char *path, const char *member, json_t **ret_items)
{
    CLI_JSON_AUTO json_t *all = json_array();
    CLI_JSON_AUTO json_t *page = NULL;
    BUF_AUTO struct buf next = BUF_INIT(1024);
    buf_add_text(&next, path);
    do {
        cli_json_drop(&page);
        int status = cli_call(cli, "GET", buf_text(&next), NULL, &page);
        if (status != CLI_DONE)
            return status;
        (void)json_array_extend(all, json_object_get(page, member));
        buf_clear(&next);
        buf_addf(&next, "%s?cursor=", path);
        cli_url_add(&next, cli_text(page, "nextCursor"));
    } while (*cli_text(page, "nextCursor"));
    *ret_items = json_incref(all);
    return CLI_DONE;
}

int cli_read_to_change(struct cli *cli, const char *path, json_t **ret_now, char *ret_match,
                       size_t size)
{
    struct err err = {0};
    struct http *http = cli_http(cli);
    struct http_request request = {.method = "GET", .path = path};
    HTTP_ANSWER_AUTO struct http_answer answer = {0};
    if (!http)
        return CLI_USAGE;
    if (http_send(http, &request, &answer, &err))
        return cli_fail_err(CLI_NO_CONNECTION, &err);
    (void)snprintf(ret_match, size, "If-None-Match: *");
    if (answer.status == 404)
        return CLI_DONE;
    if (answer.status != 200)
        return cli_problem(cli, &answer);
    *ret_now = json_loadb(buf_text(&answer.body), answer.body.len, 0, NULL);
    (void)snprintf(ret_match, size, "If-Match: %s", answer.etag);
    return CLI_DONE;
}

int cli_put_changed(struct cli *cli, const char *path, const json_t *body, const char *match,
                    json_t **ret_made)
{
    TEXT_AUTO char *text = json_dumps(body, JSON_COMPACT);
    struct http_request request = {
        .method = "PUT", .path = path, .body = sv_of(text), .header = match};
    HTTP_ANSWER_AUTO struct http_answer answer = {0};
    int status = cli_send(cli, &request, &answer);
    if (status == CLI_DONE)
        *ret_made = json_loadb(buf_text(&answer.body), answer.body.len, 0, NULL);
    return status;
}

int cli_act_on_each(struct cli *cli, const char *base, const char *what, const char *told)
{
    int result = CLI_DONE;
    for (int i = 0; i < cli->operand_count; i++) {
        BUF_AUTO struct buf path = BUF_INIT(1024);
        buf_add_text(&path, base);
        cli_url_add(&path, cli->operands[i]);
        buf_addf(&path, "/%s", what);
        int status = cli_call(cli, "POST", buf_text(&path), NULL, NULL);
        if (status == CLI_DONE)
            (void)fprintf(stderr, "%s: %s\n", cli->operands[i], told);
        else if (result == CLI_DONE)
            result = status;
    }
    return result;
}
