/* SPDX-License-Identifier: MIT */
/* ids: a part of an id, or a worker's name, where a command wants the id. */

#include "cli/cli.h"
#include "common/base/uuid.h"

#include <strings.h>

#define PAGES_MAX 2 /* of 500: so many of the newest are looked at */
#define PART_MIN 4  /* shorter ones hit by chance */
#define SHOWN_MAX 10

static const struct {
    const char *word;
    const char *list;
    const char *member;
    const char *id;
    const char *name;
    bool has_parts;
} kinds[] = {
#define RESOURCE(id, word, list, member, id_member, name, short_ids)                               \
    {word, list, member, id_member, name, short_ids},
#include "cli/resource.def"
#undef RESOURCE
};

static int load(struct cli *cli, json_t **ret_items)
{
    CLI_JSON_AUTO json_t *all = json_array();
    CLI_JSON_AUTO json_t *page = NULL;
    const char *list = kinds[cli->command->takes].list;
    BUF_AUTO struct buf path = BUF_INIT(4096);
    buf_add_text(&path, list);
    for (int i = 0; i < PAGES_MAX; i++) {
        cli_json_drop(&page);
        int status = cli_call(cli, "GET", buf_text(&path), NULL, &page);
        if (status != CLI_DONE)
            return status;
        (void)json_array_extend(all, json_object_get(page, kinds[cli->command->takes].member));
        if (!*cli_text(page, "nextCursor"))
            break;
        buf_clear(&path);
        buf_addf(&path, "%s%scursor=", list, strchr(list, '?') ? "&" : "?");
        cli_url_add(&path, cli_text(page, "nextCursor"));
    }
    *ret_items = TAKE(all);
    return CLI_DONE;
}

static bool begins_or_ends(const char *id, const char *part)
{
    size_t length = strlen(part);
    size_t whole = strlen(id);
    return length >= PART_MIN && length <= whole &&
           (strncasecmp(id, part, length) == 0 || strcasecmp(id + whole - length, part) == 0);
}

enum match { MATCH_NONE, MATCH_PART_OF_NAME, MATCH_PART_OF_ID, MATCH_NAME, MATCH_LIVE_NAME };

static enum match match(const json_t *item, const char *id, const char *name, const char *text)
{
    const char *named = *name ? cli_text(item, name) : "";
    if (*named && strcmp(named, text) == 0)
        return strcmp(cli_text(item, "state"), "live") == 0 ? MATCH_LIVE_NAME : MATCH_NAME;
    if (begins_or_ends(cli_text(item, id), text))
        return MATCH_PART_OF_ID;
    return *named && strncmp(named, text, strlen(text)) == 0 ? MATCH_PART_OF_NAME : MATCH_NONE;
}

static int tell_ambiguous(const struct cli *cli, const json_t *items, const char *text,
                          enum match best)
{
    size_t i = 0;
    int shown = 0;
    const json_t *item = NULL;
    enum resource kind = cli->command->takes;
    (void)cli_fail(0, "'%s' may be more than one %s:", text, kinds[kind].word);
    json_array_foreach(items, i, item)
    {
        if (match(item, kinds[kind].id, kinds[kind].name, text) != best)
            continue;
        if (++shown > SHOWN_MAX) {
            (void)cli_fail(0, "  and others");
            break;
        }
        const char *name = cli_text(item, "name");
        (void)cli_fail(0, "  %s%s%s", cli_text(item, kinds[kind].id), *name ? "  " : "", name);
    }
    return CLI_REFUSED;
}

/* The best kind of match counts, and it must be one. */
static int resolve(const struct cli *cli, const json_t *items, char **operand)
{
    size_t i = 0;
    int found = 0;
    const json_t *item = NULL;
    const char *id = NULL;
    enum match best = MATCH_NONE;
    enum resource kind = cli->command->takes;
    json_array_foreach(items, i, item)
    {
        enum match m = match(item, kinds[kind].id, kinds[kind].name, *operand);
        if (m == MATCH_NONE || m < best)
            continue;
        found = m > best ? 1 : found + 1;
        best = m;
        id = cli_text(item, kinds[kind].id);
    }
    if (found > 1)
        return tell_ambiguous(cli, items, *operand, best);
    if (found == 0 && kind == RESOURCE_THINGS)
        return CLI_DONE;
    if (found == 0)
        return cli_fail(CLI_REFUSED, "no %s of the newest %zu begins or ends with '%s'",
                        kinds[kind].word, json_array_size(items), *operand);
    *operand = strdup(id);
    return *operand ? CLI_DONE : cli_fail(CLI_REFUSED, "out of memory");
}

/* What cannot be a part of an id is left to the service to refuse. */
static bool is_part(enum resource kind, const char *text)
{
    struct uuid whole;
    if (uuid_parse(sv_of(text), &whole))
        return false;
    return *kinds[kind].name || (strlen(text) >= PART_MIN && strlen(text) < UUID_TEXT_SIZE - 1 &&
                                 strspn(text, "0123456789abcdefABCDEF-") == strlen(text));
}

int ids_resolve(struct cli *cli)
{
    enum resource kind = cli->command->takes;
    CLI_JSON_AUTO json_t *items = NULL;
    int status = CLI_DONE;
    int count = cli->command->most == 1000 ? cli->operand_count : cli->operand_count > 0;
    for (int i = 0; kinds[kind].has_parts && i < count && status == CLI_DONE; i++) {
        if (!is_part(kind, cli->operands[i]))
            continue;
        if (!items)
            status = load(cli, &items);
        if (status == CLI_DONE)
            status = resolve(cli, items, &cli->operands[i]);
    }
    return status;
}
