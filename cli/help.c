/* SPDX-License-Identifier: MIT */
#include "cli/help.h"

#define DISTANCE_MAX 2 /* a name that differs more is not what was meant */

void help_all(FILE *out)
{
    const char *group = "";
    (void)fputs("usage: sluice COMMAND [flags] [operands]\n", out);
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = &cli_commands[i];
        char line[128];
        if (strcmp(group, command->group) != 0)
            (void)fprintf(out, "\n%s\n", command->group);
        group = command->group;
        (void)snprintf(line, sizeof(line), "%s %s", command->name, command->operands);
        (void)fprintf(out, "  %-36s %s\n", line, command->doc);
    }
    (void)fputs(
        "\n'sluice help COMMAND' shows its flags and examples. Address and token come from\n"
        "--context, SLUICE_URL and SLUICE_TOKEN, SLUICE_CONTEXT, or the current context.\n",
        out);
}

static void print_examples(const char *heading, const char *text)
{
    (void)fputs(heading, stdout);
    while (*text) {
        size_t length = strcspn(text, "\n");
        (void)printf("  %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

void help_command(const struct cli_command *command, const struct config_flag *flags)
{
    (void)printf("usage: sluice %s [flags] %s\n%s\n\n", command->name, command->operands,
                 command->doc);
    config_usage(stdout, flags);
    print_examples("\nexamples:\n", command->examples);
}

/* Of "queue put" the part behind "queue "; NULL if it is no command of this family. */
static const char *member_of(const struct cli_command *command, const char *family)
{
    size_t length = strlen(family);
    bool is_one = strncmp(command->name, family, length) == 0 && command->name[length] == ' ';
    return is_one ? command->name + length + 1 : NULL;
}

static bool is_family(const char *word)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        if (member_of(&cli_commands[i], word))
            return true;
    }
    return false;
}

static void print_family(const char *family)
{
    (void)printf("usage: sluice %s COMMAND [flags] [operands]\n\n", family);
    for (size_t i = 0; i < cli_command_count; i++) {
        char line[128];
        const struct cli_command *command = &cli_commands[i];
        if (!member_of(command, family))
            continue;
        (void)snprintf(line, sizeof(line), "%s %s", command->name, command->operands);
        (void)printf("  %-36s %s\n", line, command->doc);
    }
    (void)printf("\nexamples:\n");
    for (size_t i = 0; i < cli_command_count; i++) {
        if (member_of(&cli_commands[i], family))
            print_examples("", cli_commands[i].examples);
    }
    (void)printf("\n'sluice %s COMMAND --help' shows the flags.\n", family);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

int help_words(int count, char **words)
{
    if (count == 0)
        help_all(stdout);
    else if (is_family(words[0]))
        print_family(words[0]);
    else
        return help_unknown(count, words);
    return CLI_DONE;
}

/* The nearest name; family: of its members only, else of all first words too. */
static const char *nearest(const char *word, const char *family)
{
    const char *best = NULL;
    size_t best_distance = DISTANCE_MAX + 1;
    for (size_t i = 0; i < cli_command_count; i++) {
        const char *name = family ? member_of(&cli_commands[i], family) : cli_commands[i].name;
        struct sv known = {name, name ? strcspn(name, " ") : 0};
        size_t far = sv_distance(sv_of(word), known);
        if (!name || far >= best_distance || far >= known.len)
            continue;
        best = name;
        best_distance = far;
    }
    return best;
}

int help_unknown(int count, char **words)
{
    BUF_AUTO struct buf members = BUF_INIT(1024);
    const char *word = words[0];
    if (!is_family(word)) {
        const char *meant = nearest(word, NULL);
        return meant ? cli_fail(CLI_USAGE, "'%s' is not a command; did you mean '%.*s'?", word,
                                (int)strcspn(meant, " "), meant)
                     : cli_fail(CLI_USAGE, "'%s' is not a command; 'sluice help' lists them", word);
    }
    for (int i = 1; i < count; i++) {
        if (asks_for_help(words[i])) {
            print_family(word);
            return CLI_DONE;
        }
    }
    const char *meant = count > 1 ? nearest(words[1], word) : NULL;
    if (meant)
        return cli_fail(CLI_USAGE, "'%s %s' is not a command; did you mean '%s %s'?", word,
                        words[1], word, meant);
    for (size_t i = 0; i < cli_command_count; i++) {
        const char *member = member_of(&cli_commands[i], word);
        if (member)
            buf_addf(&members, " %s", member);
    }
    return cli_fail(CLI_USAGE, "'%s' wants one of:%s", word, buf_text(&members));
}
