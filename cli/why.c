/* SPDX-License-Identifier: MIT */
/* why: of a job, a worker, a group of held jobs or a dead message by its id, of a queue or a worker
 * by its name. */
#include "cli/cli.h"
#include "cli/http.h"

#include "common/base/uuid.h"

struct config_flag flags_why[] = {{.name = NULL}};

/* Looked at in this order; ids differ, so at most one of them has it. */
static const char *const by_id[] = {"/v1/jobs/", "/v1/workers/", "/v1/recovery/",
                                    "/v1/dead-messages/"};

/* *ret_why stays NULL if it is not there, or not for this user. */
static int ask(struct cli *cli, const char *folder, const char *name, json_t **ret_why)
{
    BUF_AUTO struct buf path = BUF_INIT(4096);
    HTTP_ANSWER_AUTO struct http_answer answer = {0};
    struct err err = {0};
    struct http *http = cli_http(cli);
    if (!http)
        return CLI_USAGE;
    buf_add_text(&path, folder);
    cli_url_add(&path, name);
    buf_add_text(&path, "/why");
    const struct http_request request = {.method = "GET", .path = buf_text(&path)};
    if (http_send(http, &request, &answer, &err))
        return cli_fail_err(CLI_NO_CONNECTION, &err);
    if (answer.status == 404 || answer.status == 403)
        return CLI_DONE;
    if (answer.status >= 300)
        return cli_problem(cli, &answer);
    *ret_why = json_loadb(buf_text(&answer.body), answer.body.len, 0, NULL);
    return CLI_DONE;
}

/* The newest worker of this name, which is the last one that is listed. */
static int ask_worker(struct cli *cli, const char *name, json_t **ret_why)
{
    CLI_JSON_AUTO json_t *list = NULL;
    const char *id = NULL;
    const json_t *worker = NULL;
    size_t i = 0;
    int status = cli_call(cli, "GET", "/v1/workers", NULL, &list);
    if (status != CLI_DONE)
        return status;
    json_array_foreach(json_object_get(list, "workers"), i, worker)
    {
        if (strcmp(cli_text(worker, "name"), name) == 0)
            id = cli_text(worker, "id");
    }
    return id ? ask(cli, "/v1/workers/", id, ret_why) : CLI_DONE;
}

static int find(struct cli *cli, const char *name, json_t **ret_why)
{
    struct uuid id;
    int status = CLI_DONE;
    if (!uuid_parse(sv_of(name), &id)) {
        status = ask(cli, "/v1/queues/", name, ret_why);
        return status != CLI_DONE || *ret_why ? status : ask_worker(cli, name, ret_why);
    }
    for (size_t i = 0; i < ARRAY_LEN(by_id) && status == CLI_DONE && !*ret_why; i++)
        status = ask(cli, by_id[i], name, ret_why);
    return status;
}

int cmd_why(struct cli *cli)
{
    CLI_JSON_AUTO json_t *why = NULL;
    int status = find(cli, cli->operands[0], &why);
    if (status != CLI_DONE)
        return status;
    if (!why)
        return cli_fail(CLI_REFUSED,
                        "there is no job, queue, worker, group of held jobs or dead message %s, or "
                        "not for you ('sluice whoami')",
                        cli->operands[0]);
    if (cli->output != CLI_TABLE) {
        cli_print_object(cli, why, "why");
        return CLI_DONE;
    }
    cli_put(stdout, cli_text(why, "why"));
    (void)fputc('\n', stdout);
    return CLI_DONE;
}
