/* SPDX-License-Identifier: MIT */
/* completion: scripts by which bash, zsh and fish complete our commands and flags, made from
 * command.def. */

#include "cli/cli.h"

#include <string.h>

struct config_flag flags_completion[] = {{.name = NULL}};

static const char *const every_command[] = {"--output", "--ca", "--help", "--config"};

/* "queue" of "queue put": its length, and whether a second word follows. */
static int first_word(const struct cli_command *command, bool *ret_more)
{
    int length = (int)strcspn(command->name, " ");
    *ret_more = command->name[length] != 0;
    return length;
}

/* Whether an earlier command begins with the same word. */
static bool word_was_told(size_t at)
{
    bool more = false;
    int length = first_word(&cli_commands[at], &more);
    for (size_t i = 0; i < at; i++) {
        if (first_word(&cli_commands[i], &more) == length &&
            strncmp(cli_commands[i].name, cli_commands[at].name, (size_t)length) == 0)
            return true;
    }
    return false;
}

static void print_first_words(void)
{
    bool more = false;
    for (size_t i = 0; i < cli_command_count; i++) {
        if (!word_was_told(i))
            (void)printf(" %.*s", first_word(&cli_commands[i], &more), cli_commands[i].name);
    }
}

static void print_flags(const struct cli_command *command)
{
    for (const struct config_flag *flag = command->flags; flag->name; flag++)
        (void)printf(" --%s", flag->name);
    for (size_t i = 0; i < ARRAY_LEN(every_command); i++)
        (void)printf(" %s", every_command[i]);
}

/* The second words of "queue", for each first word that has some. */
static void print_second_words(size_t at)
{
    bool more = false;
    int length = first_word(&cli_commands[at], &more);
    for (size_t i = at; i < cli_command_count; i++) {
        const char *name = cli_commands[i].name;
        if (strncmp(name, cli_commands[at].name, (size_t)length) == 0 && name[length] == ' ')
            (void)printf(" %s", name + length + 1);
    }
}

/* What bash and zsh share: "$1" and "$2" are the first two words, the answer is in $words. */
static void print_words_function(void)
{
    bool more = false;
    (void)printf("_sluice_words() {\n    case \"$1 $2\" in\n");
    for (size_t i = 0; i < cli_command_count; i++) {
        (void)first_word(&cli_commands[i], &more);
        (void)printf("    \"%s%s) words=\"", cli_commands[i].name, more ? "\"" : " \"*");
        print_flags(&cli_commands[i]);
        (void)printf("\" ;;\n");
    }
    (void)printf("    *) words= ;;\n    esac\n    case \"$1\" in\n");
    for (size_t i = 0; i < cli_command_count; i++) {
        int length = first_word(&cli_commands[i], &more);
        if (!more || word_was_told(i))
            continue;
        (void)printf("    %.*s) words=\"$words", length, cli_commands[i].name);
        print_second_words(i);
        (void)printf("\" ;;\n");
    }
    (void)printf("    esac\n}\n");
}

static void print_bash(void)
{
    (void)printf("# bash completion of sluice\n");
    print_words_function();
    (void)printf("_sluice() {\n"
                 "    local words current=${COMP_WORDS[COMP_CWORD]}\n"
                 "    if ((COMP_CWORD == 1)); then\n        words=\"");
    print_first_words();
    (void)printf("\"\n    else\n"
                 "        _sluice_words \"${COMP_WORDS[1]}\" \"${COMP_WORDS[2]}\"\n    fi\n"
                 "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
                 "}\ncomplete -o default -F _sluice sluice\n");
}

static void print_zsh(void)
{
    (void)printf("#compdef sluice\n");
    print_words_function();
    (void)printf("_sluice() {\n"
                 "    local words_typed=(\"${words[@]}\") words\n"
                 "    if ((CURRENT == 2)); then\n        words=\"");
    print_first_words();
    (void)printf("\"\n    else\n"
                 "        _sluice_words \"${words_typed[2]}\" \"${words_typed[3]}\"\n    fi\n"
                 "    compadd -- ${=words}\n    _files\n"
                 "}\ncompdef _sluice sluice\n");
}

/* In single quotes, as fish reads them. */
static void fish_text(const char *option, const char *text)
{
    (void)printf(" %s '", option);
    for (const char *at = text; *at; at++)
        (void)printf("%s%c", *at == '\'' || *at == '\\' ? "\\" : "", *at);
    (void)putchar('\'');
}

static void fish_second_word(const struct cli_command *command, int length)
{
    (void)printf("complete -c sluice -n '__fish_seen_subcommand_from %.*s' -f -a %s", length,
                 command->name, command->name + length + 1);
    fish_text("-d", command->doc);
    (void)putchar('\n');
}

static void print_fish(void)
{
    bool more = false;
    (void)printf("# fish completion of sluice\n");
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = &cli_commands[i];
        int length = first_word(command, &more);
        if (!word_was_told(i)) {
            (void)printf("complete -c sluice -n __fish_use_subcommand -f -a %.*s", length,
                         command->name);
            fish_text("-d", more ? "" : command->doc);
            (void)putchar('\n');
        }
        if (more)
            fish_second_word(command, length);
        for (const struct config_flag *flag = command->flags; flag->name; flag++) {
            (void)printf("complete -c sluice -n '__fish_seen_subcommand_from %.*s' -l %s%s", length,
                         command->name, flag->name, flag->argument ? " -r" : "");
            fish_text("-d", flag->doc);
            (void)putchar('\n');
        }
    }
}

int cmd_completion(struct cli *cli)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (strcmp(cli->operands[0], shells[i].name) != 0)
            continue;
        shells[i].print();
        return CLI_DONE;
    }
    return cli_fail(CLI_USAGE, "'%s': bash, zsh and fish are known", cli->operands[0]);
}
