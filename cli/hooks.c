/* SPDX-License-Identifier: MIT */
/* subscriptions, subscription get/put/rm/enable/disable/rotate, deliveries, delivery, redeliver. */

#include "cli/cli.h"

#define PATH_LIMIT ((size_t)2048)
#define PAGE_MOST 1000
#define BASE "/v1/subscriptions/"

struct config_flag flags_subscriptions[] = {CLI_WATCH_FLAG, {.name = NULL}};
struct config_flag flags_subscription_get[] = {{.name = NULL}};
struct config_flag flags_subscription_rm[] = {{.name = NULL}};
struct config_flag flags_subscription_enable[] = {{.name = NULL}};
struct config_flag flags_subscription_disable[] = {{.name = NULL}};
struct config_flag flags_subscription_rotate[] = {{.name = NULL}};
struct config_flag flags_subscription_put[] = {
    {.name = "url", .argument = "URL", .doc = "where to tell it; a new one needs it"},
    {.name = "states",
     .argument = "LIST",
     .doc = "states to tell of, separated by commas (FINISHED,CANCELLED,FAILED)"},
    {.name = "description", .argument = "TEXT", .doc = "what it is for"},
    {.name = NULL},
};
struct config_flag flags_deliveries[] = {
    CLI_WATCH_FLAG,
    {.name = "subscription", .argument = "NAME", .doc = "only of this subscription"},
    {.name = "job", .argument = "ID", .doc = "only of this job"},
    {.name = "state",
     .argument = "STATE",
     .doc = "only held, due, delivered, dead or dropped ones"},
    {.name = "limit", .argument = "N", .doc = "the newest N (50)"},
    {.name = NULL},
};
struct config_flag flags_delivery[] = {{.name = NULL}};
struct config_flag flags_redeliver[] = {{.name = NULL}};

/* ---- subscriptions --------------------------------------------------------------------------- */

int cmd_subscriptions(struct cli *cli)
{
    static const struct cli_column columns[] = {{"NAME", "name"},
                                                {"ENABLED", "enabled"},
                                                {"URL", "url"},
                                                {"STATES", "states"},
                                                {"DESCRIPTION", "description"}};
    CLI_JSON_AUTO json_t *answer = NULL;
    int status = cli_call(cli, "GET", "/v1/subscriptions", NULL, &answer);
    if (status == CLI_DONE)
        cli_print_list(cli, json_object_get(answer, "subscriptions"), columns, ARRAY_LEN(columns),
                       "name");
    return status;
}

/* name: the member that -o name prints; NULL: nothing is printed. */
static int call_one(struct cli *cli, const char *method, const char *base, const char *act,
                    const char *name)
{
    CLI_JSON_AUTO json_t *answer = NULL;
    BUF_AUTO struct buf path = BUF_INIT(PATH_LIMIT);
    buf_add_text(&path, base);
    cli_url_add(&path, cli->operands[0]);
    buf_add_text(&path, act);
    int status = cli_call(cli, method, buf_text(&path), NULL, &answer);
    if (status == CLI_DONE && name && answer)
        cli_print_object(cli, answer, name);
    return status;
}

int cmd_subscription_get(struct cli *cli)
{
    return call_one(cli, "GET", BASE, "", "name");
}

int cmd_subscription_rm(struct cli *cli)
{
    return call_one(cli, "DELETE", BASE, "", NULL);
}

int cmd_subscription_enable(struct cli *cli)
{
    return call_one(cli, "POST", BASE, "/enable", "name");
}

int cmd_subscription_disable(struct cli *cli)
{
    return call_one(cli, "POST", BASE, "/disable", "name");
}

int cmd_subscription_rotate(struct cli *cli)
{
    return call_one(cli, "POST", BASE, "/rotate", "secret");
}

static json_t *words_of(const char *list)
{
    json_t *words = json_array();
    while (*list) {
        size_t length = strcspn(list, ",");
        if (length > 0)
            (void)json_array_append_new(words, json_stringn(list, length));
        list += length + (list[length] == ',');
    }
    return words;
}

/* What is not given by a flag stays as it is. */
static json_t *hook_body(const struct cli *cli, const json_t *now)
{
    static const char *const kept[] = {"url", "states", "description"};
    json_t *body = json_object();
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        json_t *value = json_object_get(now, kept[i]);
        if (value)
            (void)json_object_set(body, kept[i], value);
    }
    if (cli_has(cli, "url"))
        (void)json_object_set_new(body, "url", json_string(cli_value(cli, "url", "")));
    if (cli_has(cli, "states"))
        (void)json_object_set_new(body, "states", words_of(cli_value(cli, "states", "")));
    if (cli_has(cli, "description"))
        (void)json_object_set_new(body, "description",
                                  json_string(cli_value(cli, "description", "")));
    return body;
}

int cmd_subscription_put(struct cli *cli)
{
    char match[80] = "";
    CLI_JSON_AUTO json_t *now = NULL;
    BUF_AUTO struct buf path = BUF_INIT(PATH_LIMIT);
    buf_add_text(&path, BASE);
    cli_url_add(&path, cli->operands[0]);
    int status = cli_read_to_change(cli, buf_text(&path), &now, match, sizeof(match));
    if (status != CLI_DONE)
        return status;
    CLI_JSON_AUTO json_t *body = hook_body(cli, now);
    CLI_JSON_AUTO json_t *made = NULL;
    status = cli_put_changed(cli, buf_text(&path), body, match, &made);
    if (status != CLI_DONE)
        return status;
    cli_print_object(cli, made, now ? "name" : "secret");
    return CLI_DONE;
}

/* ---- deliveries ------------------------------------------------------------------------------ */

static void add_filter(const struct cli *cli, const char *name, struct buf *path)
{
    if (!cli_has(cli, name))
        return;
    buf_addf(path, "&%s=", name);
    cli_url_add(path, cli_value(cli, name, ""));
}

static void write_query(const struct cli *cli, size_t limit, const char *cursor, struct buf *path)
{
    buf_clear(path);
    buf_addf(path, "/v1/deliveries?limit=%zu", limit);
    add_filter(cli, "subscription", path);
    add_filter(cli, "job", path);
    add_filter(cli, "state", path);
    if (!*cursor)
        return;
    buf_add_text(path, "&cursor=");
    cli_url_add(path, cursor);
}

int cmd_deliveries(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"ID", "id"},          {"CREATED", "created"},   {"SUBSCRIPTION", "subscription"},
        {"JOB", "job"},        {"EVENT", "event"},       {"STATE", "state"},
        {"TRIES", "attempts"}, {"STATUS", "httpStatus"}, {"ERROR", "error"},
    };
    CLI_JSON_AUTO json_t *all = json_array();
    CLI_JSON_AUTO json_t *page = NULL;
    BUF_AUTO struct buf path = BUF_INIT(PATH_LIMIT);
    TEXT_AUTO char *cursor = strdup("");
    size_t limit = cli_number(cli, "limit", 50, PAGE_MOST);
    do { /* a page of a long search may be short, and yet not be the last */
        write_query(cli, limit - json_array_size(all), cursor ? cursor : "", &path);
        cli_json_drop(&page);
        int status = cli_call(cli, "GET", buf_text(&path), NULL, &page);
        if (status != CLI_DONE)
            return status;
        (void)json_array_extend(all, json_object_get(page, "deliveries"));
        text_free(&cursor);
        cursor = strdup(cli_text(page, "nextCursor"));
    } while (cursor && *cursor && json_array_size(all) < limit);
    cli_print_list(cli, all, columns, ARRAY_LEN(columns), "id");
    if (cursor && *cursor)
        (void)cli_fail(0, "there are more: raise --limit");
    return CLI_DONE;
}

int cmd_delivery(struct cli *cli)
{
    return call_one(cli, "GET", "/v1/deliveries/", "", "id");
}

int cmd_redeliver(struct cli *cli)
{
    return cli_act_on_each(cli, "/v1/deliveries/", "redeliver", "is sent again");
}
