/* SPDX-License-Identifier: MIT */
/* ready: whether a process serves; what a container's health check runs. */

#include "cli/cli.h"

#include "common/base/clock.h"

#include <time.h>

#define TRY_MS 4000 /* a health check has little time */

struct config_flag flags_ready[] = {
    {.name = "wait", .argument = "SECONDS", .doc = "ask again until it is, at most this long"},
    {.name = NULL},
};

/* Beside the process its own certificate will do. */
static void set_tls(const struct cli *cli, struct http *http)
{
    const struct config *cfg = cli->cfg;
    const char *ca = cli_value(cli, "ca", cfg->client_tls_ca);
    http_use_tls(http, ca, cfg->client_tls_cert, cfg->client_tls_key);
    if (!*ca && *cfg->web_tls_cert)
        http_pin(http, cfg->web_tls_cert);
}

/* CLI_DONE: ready. CLI_REFUSED: it says that it is not, and why in *ret_answer. */
static int ask(const struct cli *cli, const char *url, struct http_answer *ret_answer,
               struct err *err)
{
    struct http *http = NULL;
    const struct http_request request = {.method = "GET", .path = "/readyz"};
    *err = (struct err){0};
    enum err_code rc = http_open(url, "", TRY_MS, &http, err);
    if (rc == ERR_OK)
        set_tls(cli, http);
    if (rc == ERR_OK)
        rc = http_send(http, &request, ret_answer, err);
    http_free(http);
    if (rc)
        return CLI_NO_CONNECTION;
    return ret_answer->status == 200 ? CLI_DONE : CLI_REFUSED;
}

int cmd_ready(struct cli *cli)
{
    static const struct timespec pause = {.tv_nsec = 200000000};
    const char *url = cli->operand_count > 0 ? cli->operands[0] : cli->cfg->client_url;
    int64_t until_ms = clock_mono_ms() + (int64_t)cli_number(cli, "wait", 0, 86400) * 1000;
    if (!*url)
        return cli_fail(CLI_USAGE, "which process? give its address, as http://127.0.0.1:8080");
    for (;;) {
        struct err err = {0};
        HTTP_ANSWER_AUTO struct http_answer answer = {0};
        int status = ask(cli, url, &answer, &err);
        if (status == CLI_DONE)
            return CLI_DONE;
        if (clock_mono_ms() >= until_ms)
            return status == CLI_NO_CONNECTION
                       ? cli_fail_err(status, &err)
                       : cli_fail(status, "%s is not ready: %s", url, buf_text(&answer.body));
        (void)nanosleep(&pause, NULL);
    }
}
