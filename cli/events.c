/* SPDX-License-Identifier: MIT */
/* events: what happens to jobs, as it happens. */

#include "cli/cli.h"
#include "cli/sse.h"
#include "cli/table.h"

#include <unistd.h>

struct config_flag flags_events[] = {
    {.name = "type", .argument = "LIST", .doc = "only of these states or kinds: FINISHED,blocked"},
    {.name = "job", .argument = "ID", .doc = "of this job only"},
    {.name = "queue", .argument = "NAME", .doc = "on this queue only"},
    {.name = "after", .argument = "N", .doc = "begin behind the event of this number"},
    {.name = "limit", .letter = 'n', .argument = "N", .doc = "end after so many"},
    {.name = "follow", .letter = 'f', .doc = "until interrupted, as without --limit"},
    {.name = NULL},
};

#define TRIES 60
#define PAUSE_MS 500

struct listener {
    const struct cli *cli;
    uint32_t left; /* UINT32_MAX: no limit */
    bool dropped;
};

static void print_line(const json_t *event)
{
    static const struct {
        const char *member;
        int width;
    } columns[] = {{"at", 24},    {"job", 36},      {"kind", 10}, {"to", 17},
                   {"queue", 12}, {"condition", 0}, {"detail", 0}};
    char cell[TABLE_CELL_MAX];
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        const json_t *value = json_object_get(event, columns[i].member);
        if (columns[i].width == 0 && !json_is_string(value))
            continue;
        table_write_cell(columns[i].member, value, cell, sizeof(cell));
        (void)printf("%s%-*s", i > 0 ? "  " : "", columns[i].width, cell);
    }
    (void)fputc('\n', stdout);
}

static bool take_event(void *arg, const char *name, struct sv data)
{
    struct listener *listener = arg;
    CLI_JSON_AUTO json_t *event = json_loadb(data.ptr, data.len, 0, NULL);
    if (strcmp(name, "dropped") == 0) {
        (void)cli_fail(0, "the stream ended: %s", cli_text(event, "reason"));
        listener->dropped = true;
        return false;
    }
    if (!event)
        return true;
    if (listener->cli->output == CLI_JSON)
        (void)json_dumpf(event, stdout, JSON_COMPACT | (isatty(1) ? JSON_ENSURE_ASCII : 0));
    else if (listener->cli->output == CLI_NAME)
        cli_put(stdout, cli_text(event, "job"));
    else
        print_line(event);
    if (listener->cli->output != CLI_TABLE)
        (void)fputc('\n', stdout);
    listener->left -= listener->left != UINT32_MAX;
    return fflush(stdout) == 0 && listener->left > 0;
}

static void write_path(const struct cli *cli, struct buf *path)
{
    static const char *const plain[] = {"type", "job", "queue", "after"};
    buf_add_text(path, "/v1/events");
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        if (!cli_has(cli, plain[i]))
            continue;
        buf_addf(path, "%s%s=", strchr(buf_text(path), '?') ? "&" : "?", plain[i]);
        cli_url_add(path, cli_value(cli, plain[i], ""));
    }
}

/* One connection; CLI_NO_CONNECTION: try again. */
static int listen_once(struct cli *cli, const char *path, struct sse *sse)
{
    char header[96];
    sse_restart(sse);
    (void)snprintf(header, sizeof(header), "Last-Event-ID: %s", sse->id);
    struct http_request request = {.method = "GET",
                                   .path = path,
                                   .header = sse->id[0] ? header : NULL,
                                   .on_bytes = sse_take,
                                   .arg = sse};
    struct http_transfer transfer = {.request = &request};
    http_send_all(cli_http(cli), &transfer, 1, NULL, NULL);
    long answered = transfer.answer.status;
    int status =
        answered >= 400 && answered < 500 ? cli_problem(cli, &transfer.answer) : CLI_NO_CONNECTION;
    http_answer_done(&transfer.answer);
    return status;
}

int cmd_events(struct cli *cli)
{
    struct listener listener = {.cli = cli,
                                .left = cli_number(cli, "limit", UINT32_MAX, UINT32_MAX)};
    struct sse sse = SSE_INIT(take_event, &listener);
    BUF_AUTO struct buf path = BUF_INIT(8192);
    int status = cli_http(cli) ? CLI_NO_CONNECTION : CLI_USAGE;
    write_path(cli, &path);
    for (int cut = 0; status == CLI_NO_CONNECTION && cut < TRIES; cut++) {
        char before[sizeof(sse.id)];
        memcpy(before, sse.id, sizeof(before));
        status = listen_once(cli, buf_text(&path), &sse);
        if (listener.left == 0 || ferror(stdout))
            status = CLI_DONE;
        if (strcmp(before, sse.id) != 0)
            cut = 0;
        if (status == CLI_NO_CONNECTION)
            (void)usleep(PAUSE_MS * 1000);
    }
    sse_done(&sse);
    return status == CLI_NO_CONNECTION ? cli_fail(status, "the connection was lost") : status;
}
