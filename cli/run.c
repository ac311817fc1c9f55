/* SPDX-License-Identifier: MIT */
/* run, submit, output, wait: a job from its request to its end. */

#include "cli/cli.h"
#include "cli/follow.h"
#include "cli/request.h"

#include <unistd.h>

static struct request_lists run_lists;
struct config_flag flags_run[] = {
    REQUEST_FLAGS(run_lists),
    {.name = "quiet", .letter = 'q', .doc = "do not tell the job's id"},
    {.name = NULL},
};

static struct request_lists submit_lists;
struct config_flag flags_submit[] = {
    REQUEST_FLAGS(submit_lists),
    {.name = NULL},
};

struct config_flag flags_output[] = {
    {.name = "stderr", .letter = 'e', .doc = "standard error instead of standard output"},
    {.name = "follow", .letter = 'f', .doc = "go on until the job ends"},
    {.name = NULL},
};

struct config_flag flags_wait[] = {
    {.name = "timeout", .argument = "SECONDS", .doc = "give up after this time, with status 125"},
    {.name = NULL},
};

static int submit(struct cli *cli, json_t **ret_job)
{
    CLI_JSON_AUTO json_t *request = NULL;
    if (cli->operand_count == 0 && !cli_has(cli, "file") && !cli_has(cli, "app"))
        return cli_fail(CLI_USAGE, "give a command, --app or --file");
    int status = request_build(cli, &request);
    if (status != CLI_DONE)
        return status;
    status = cli_call(cli, "POST", "/v1/jobs", request, ret_job);
    if (status == CLI_DONE && !*ret_job)
        return cli_fail(CLI_REFUSED, "the service's answer has no job");
    if (status == CLI_DONE)
        cli_warn(*ret_job);
    return status;
}

int cmd_run(struct cli *cli)
{
    CLI_JSON_AUTO json_t *job = NULL;
    CLI_JSON_AUTO json_t *ended = NULL;
    int status = submit(cli, &job);
    if (status != CLI_DONE)
        return status;
    if (!cli_has(cli, "quiet") && isatty(STDERR_FILENO))
        (void)fprintf(stderr, "job %s on queue %s\n", cli_text(job, "id"), cli_text(job, "queue"));
    status = follow_job(cli, cli_text(job, "id"), FOLLOW_STDOUT | FOLLOW_STDERR, true, &ended);
    return status == CLI_DONE ? follow_status(ended) : status;
}

int cmd_submit(struct cli *cli)
{
    CLI_JSON_AUTO json_t *job = NULL;
    int status = submit(cli, &job);
    if (status != CLI_DONE)
        return status;
    if (cli->output == CLI_JSON)
        cli_print_object(cli, job, "id");
    else
        (void)puts(cli_text(job, "id"));
    return CLI_DONE;
}

static bool to_stdout(void *arg, struct sv bytes)
{
    (void)arg;
    return fwrite(bytes.ptr, 1, bytes.len, stdout) == bytes.len;
}

int cmd_output(struct cli *cli)
{
    const char *stream = cli_has(cli, "stderr") ? "stderr" : "stdout";
    CLI_JSON_AUTO json_t *job = NULL;
    if (cli_has(cli, "follow"))
        return follow_job(cli, cli->operands[0],
                          cli_has(cli, "stderr") ? FOLLOW_STDERR : FOLLOW_STDOUT, false, &job);
    BUF_AUTO struct buf path = BUF_INIT(4096);
    buf_add_text(&path, "/v1/jobs/");
    cli_url_add(&path, cli->operands[0]);
    buf_addf(&path, "/output/%s", stream);
    struct http_request request = {.method = "GET", .path = buf_text(&path), .on_bytes = to_stdout};
    HTTP_ANSWER_AUTO struct http_answer answer = {0};
    return cli_send(cli, &request, &answer);
}

int cmd_wait(struct cli *cli)
{
    CLI_JSON_AUTO json_t *job = NULL;
    BUF_AUTO struct buf path = BUF_INIT(4096);
    uint32_t left_s = cli_number(cli, "timeout", UINT32_MAX, UINT32_MAX);
    for (;;) {
        uint32_t step_s = left_s < 20 ? left_s : 20;
        buf_clear(&path);
        buf_add_text(&path, "/v1/jobs/");
        cli_url_add(&path, cli->operands[0]);
        buf_addf(&path, "?wait=%u", step_s);
        cli_json_drop(&job);
        int status = cli_call(cli, "GET", buf_text(&path), NULL, &job);
        if (status != CLI_DONE)
            return status;
        if (json_is_string(json_object_get(job, "ended")))
            return follow_status(job);
        left_s -= left_s == UINT32_MAX ? 0 : step_s;
        if (left_s == 0)
            return cli_fail(125, "job %s is %s", cli->operands[0], cli_text(job, "status"));
    }
}
