/* SPDX-License-Identifier: MIT */
/* jobs, job, why, resubmit, whoami. */

#include "cli/cli.h"

static const char *statuses[CLI_FLAG_LIST_MAX];
struct config_flag flags_jobs[] = {
    CLI_WATCH_FLAG,
    {.name = "status",
     .letter = 's',
     .argument = "STATUS",
     .doc = "only these; may be repeated",
     .list = statuses,
     .list_max = CLI_FLAG_LIST_MAX},
    {.name = "filter", .letter = 'f', .argument = "TEXT", .doc = "in the filter language"},
    {.name = "owner", .argument = "USER", .doc = "of this user only"},
    {.name = "queue", .argument = "NAME", .doc = "on this queue only"},
    {.name = "limit", .letter = 'n', .argument = "N", .doc = "at most so many (50)"},
    {.name = "all", .letter = 'a', .doc = "all pages, and hidden jobs"},
    {.name = NULL},
};
struct config_flag flags_job[] = {{.name = NULL}};
struct config_flag flags_resubmit[] = {{.name = NULL}};
struct config_flag flags_whoami[] = {{.name = NULL}};

#define JOBS_PAGE 500

static void add_parameter(struct buf *path, const char *name, const char *value)
{
    buf_addf(path, "&%s=", name);
    cli_url_add(path, value);
}

static void write_query(const struct cli *cli, uint32_t limit, const char *cursor, struct buf *path)
{
    static const char *const plain[] = {"filter", "owner", "queue"};
    const struct config_flag *status = cli_flag(cli, "status");
    buf_clear(path);
    buf_addf(path, "/v1/jobs?limit=%u", limit);
    for (size_t i = 0; i < status->count; i++)
        add_parameter(path, "status", status->list[i]);
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        if (cli_has(cli, plain[i]))
            add_parameter(path, plain[i], cli_value(cli, plain[i], ""));
    }
    if (cli_has(cli, "all"))
        add_parameter(path, "hidden", "true");
    if (*cursor)
        add_parameter(path, "cursor", cursor);
}

int cmd_jobs(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"ID", "id"},         {"NAME", "name"},     {"OWNER", "owner"},     {"QUEUE", "queue"},
        {"STATUS", "status"}, {"WHY", "condition"}, {"CREATED", "created"}, {"AGE", "created"},
    };
    CLI_JSON_AUTO json_t *all = json_array();
    CLI_JSON_AUTO json_t *page = NULL;
    BUF_AUTO struct buf path = BUF_INIT(16384);
    bool every_page = cli_has(cli, "all") && !cli_has(cli, "limit");
    uint32_t limit = cli_number(cli, "limit", every_page ? JOBS_PAGE : 50, 1000);
    TEXT_AUTO char *cursor = strdup("");
    size_t missing = limit;
    do { /* a page of a long search may be short, and yet not be the last */
        write_query(cli, every_page ? limit : (uint32_t)missing, cursor, &path);
        cli_json_drop(&page);
        int status = cli_call(cli, "GET", buf_text(&path), NULL, &page);
        if (status != CLI_DONE)
            return status;
        (void)json_array_extend(all, json_object_get(page, "jobs"));
        text_free(&cursor);
        cursor = strdup(cli_text(page, "nextCursor"));
        size_t found = json_array_size(all);
        missing = found < limit ? limit - found : 0;
    } while ((every_page || missing > 0) && cursor && *cursor);
    cli_print_list(cli, all, columns, ARRAY_LEN(columns), "id");
    if (cursor && *cursor && cli->output == CLI_TABLE)
        (void)fprintf(stderr, "there are more; -n N or -a shows them\n");
    return CLI_DONE;
}

static int call_job(struct cli *cli, const char *method, const char *id, const char *act,
                    json_t **ret_json)
{
    BUF_AUTO struct buf path = BUF_INIT(4096);
    buf_add_text(&path, "/v1/jobs/");
    cli_url_add(&path, id);
    buf_add_text(&path, act);
    return cli_call(cli, method, buf_text(&path), NULL, ret_json);
}

int cmd_job(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"WHEN", "at"},       {"EVENT", "kind"}, {"STATUS", "to"},
        {"WHY", "condition"}, {"BY", "actor"},   {"DETAIL", "detail"},
    };
    CLI_JSON_AUTO json_t *job = NULL;
    CLI_JSON_AUTO json_t *events = NULL;
    int status = call_job(cli, "GET", cli->operands[0], "", &job);
    if (status != CLI_DONE)
        return status;
    if (cli->output != CLI_TABLE) {
        cli_print_object(cli, job, "id");
        return CLI_DONE;
    }
    cli_print_object(cli, job, "id");
    status = call_job(cli, "GET", cli->operands[0], "/events", &events);
    if (status != CLI_DONE)
        return status;
    (void)fputc('\n', stdout);
    cli_print_list(cli, json_object_get(events, "events"), columns, ARRAY_LEN(columns), "seq");
    return CLI_DONE;
}

int cmd_resubmit(struct cli *cli)
{
    CLI_JSON_AUTO json_t *job = NULL;
    int status = call_job(cli, "POST", cli->operands[0], "/resubmit", &job);
    if (status != CLI_DONE)
        return status;
    if (cli->output == CLI_JSON)
        cli_print_object(cli, job, "id");
    else
        (void)puts(cli_text(job, "id"));
    return CLI_DONE;
}

int cmd_whoami(struct cli *cli)
{
    CLI_JSON_AUTO json_t *me = NULL;
    int status = cli_call(cli, "GET", "/v1/whoami", NULL, &me);
    if (status != CLI_DONE)
        return status;
    (void)json_object_set_new(me, "site", json_string(cli->site.url));
    (void)json_object_set_new(me, "context",
                              *cli->site.name ? json_string(cli->site.name) : json_null());
    cli_print_object(cli, me, "user");
    return status;
}
