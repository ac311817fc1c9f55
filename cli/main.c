/* SPDX-License-Identifier: MIT */
/* sluice: the command line. The commands are in command.def; this file finds one, reads its flags
 * and runs it. */

#include "cli/cli.h"
#include "cli/help.h"

#include "common/base/log.h"

#include <signal.h>
#include <unistd.h>

#define FLAGS_MAX 48

static struct config_flag common_flags[] = {
    {.name = "output", .letter = 'o', .argument = "FORMAT", .doc = "table, json or name"},
    {.name = "context", .argument = "NAME", .doc = "the site to talk to ('sluice context ls')"},
    {.name = "ca", .argument = "FILE", .doc = "CA certificates to check the service by"},
    {.name = "help", .letter = 'h', .doc = "what the command does and takes"},
    {.name = NULL},
};

const struct cli_command cli_commands[] = {
#define COMMAND(id, name, operands, least, most, stop, group, takes, doc, examples)                \
    {name,  operands, doc,  examples,   group,   RESOURCE_##takes,                                 \
     least, most,     stop, flags_##id, cmd_##id},
#include "cli/command.def"
#undef COMMAND
};
const size_t cli_command_count = ARRAY_LEN(cli_commands);

const struct config_flag *cli_flag(const struct cli *cli, const char *name)
{
    for (const struct config_flag *flag = cli->flags; flag->name; flag++) {
        if (strcmp(flag->name, name) == 0)
            return flag;
    }
    return NULL;
}

bool cli_has(const struct cli *cli, const char *name)
{
    const struct config_flag *flag = cli_flag(cli, name);
    return flag && flag->count > 0;
}

const char *cli_value(const struct cli *cli, const char *name, const char *otherwise)
{
    const struct config_flag *flag = cli_flag(cli, name);
    return flag && flag->count > 0 ? flag->value : otherwise;
}

uint32_t cli_number(const struct cli *cli, const char *name, uint32_t otherwise, uint32_t most)
{
    uint64_t number = otherwise;
    const char *text = cli_value(cli, name, NULL);
    if (text && !sv_u64(sv_of(text), most, &number)) {
        (void)cli_fail(CLI_USAGE, "--%s: '%s' is not a whole number from 0 to %u", name, text,
                       most);
        exit(CLI_USAGE); /* NOLINT(concurrency-mt-unsafe): there is one thread */
    }
    return (uint32_t)number;
}

static const struct cli_command *command_named(const char *name)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        if (strcmp(cli_commands[i].name, name) == 0)
            return &cli_commands[i];
    }
    return NULL;
}

/* The longest name that fits: "queue put" goes before "queue". */
static const struct cli_command *find_command(int argc, char **argv, int *ret_words)
{
    char two[64];
    const struct cli_command *command = NULL;
    if (argc >= 2) {
        (void)snprintf(two, sizeof(two), "%s %s", argv[0], argv[1]);
        command = command_named(two);
    }
    *ret_words = command ? 2 : 1;
    return command ? command : command_named(argv[0]);
}

static bool parse_output(struct cli *cli)
{
    const char *text = cli_value(cli, "output", "table");
    static const char *const names[] = {"table", "json", "name"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            cli->output = (enum cli_output)i;
            return true;
        }
    }
    (void)cli_fail(CLI_USAGE, "-o %s: table, json and name are known", text);
    return false;
}

static int watch(struct cli *cli)
{
    static const struct timespec pause = {.tv_sec = 2};
    bool is_terminal = isatty(STDOUT_FILENO);
    for (;;) {
        if (is_terminal) /* to the first place, and nothing below (ECMA-48) */
            (void)fputs("\033[H\033[2J", stdout);
        int status = cli->command->run(cli);
        if (status != CLI_DONE || fflush(stdout) != 0)
            return status;
        (void)nanosleep(&pause, NULL);
        if (!is_terminal)
            (void)fputc('\n', stdout);
    }
}

static int run_command(struct cli *cli, struct config_args *args)
{
    struct err err = {0};
    enum err_code rc = config_load(args, &cli->cfg, &err);
    if (cli_has(cli, "help")) {
        help_command(cli->command, cli->flags);
        return CLI_DONE;
    }
    if (rc)
        return cli_fail_err(CLI_USAGE, &err);
    cli->operands = args->argv + args->rest;
    cli->operand_count = args->argc - args->rest;
    if (!parse_output(cli))
        return CLI_USAGE;
    if (cli->operand_count < cli->command->least || cli->operand_count > cli->command->most)
        return cli_fail(CLI_USAGE, "usage: sluice %s [flags] %s", cli->command->name,
                        cli->command->operands);
    int status = ids_resolve(cli);
    if (status != CLI_DONE)
        return status;
    return cli_has(cli, "watch") ? watch(cli) : cli->command->run(cli);
}

/* `help`, `help run`, `--help`: the latter becomes `run --help`. */
static bool is_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run_words(struct cli *cli, int argc, char **argv, int words, bool help)
{
    static char help_flag[] = "--help";
    char *only_help[] = {argv[0], help_flag, NULL};
    struct config_flag flags[FLAGS_MAX];
    size_t used = 0;
    for (const struct config_flag *flag = cli->command->flags; flag->name; flag++)
        flags[used++] = *flag;
    for (const struct config_flag *flag = common_flags; flag->name; flag++)
        flags[used++] = *flag;
    flags[used] = (struct config_flag){.name = NULL};
    cli->flags = flags;
    struct config_args args = {
        .argc = help ? 2 : argc - words,
        .argv = help ? only_help : argv + words,
        .flags = flags,
        .stop_at_operand = cli->command->stop_at_operand,
    };
    return run_command(cli, &args);
}

int main(int argc, char **argv)
{
    int words = 0;
    (void)signal(SIGPIPE, SIG_DFL);
    log_open("sluice", STDERR_FILENO, LOG_WARN);
    if (argc < 2) {
        help_all(stderr);
        return CLI_USAGE;
    }
    bool help = is_help(argv[1]);
    argc -= help;
    argv += help;
    if (argc >= 2 && strcmp(argv[1], "--version") == 0)
        argv[1] += 2;
    struct cli cli = {.command = argc < 2 ? NULL : find_command(argc - 1, argv + 1, &words)};
    if (!cli.command)
        return help ? help_words(argc - 1, argv + 1) : help_unknown(argc - 1, argv + 1);
    int status = run_words(&cli, argc, argv, words, help);
    http_free(cli.http);
    site_done(&cli.site);
    config_free(cli.cfg);
    if (fflush(stdout) != 0 && status == CLI_DONE)
        status = cli_fail(CLI_REFUSED, "the output could not be written");
    return status;
}
