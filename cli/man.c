/* SPDX-License-Identifier: MIT */
/* man: the manual pages, made from the tables of commands, programs and settings. */

#include "cli/cli.h"

#include <string.h>

struct config_flag flags_man[] = {{.name = NULL}};

static const struct {
    const char *name;
    const char *phrase;
    const char *text;
} programs[] = {
#define PROGRAM(name, phrase, text) {name, phrase, text},
#include "cli/program.def"
#undef PROGRAM
};

/* Text as roff takes it: no line begins with a dot or a quote, backslashes and hyphens are meant.
 */
static void roff(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at == '\\')
            (void)fputs("\\e", stdout);
        else if (*at == '-')
            (void)fputs("\\-", stdout);
        else if ((*at == '.' || *at == '\'') && (at == text || at[-1] == '\n'))
            (void)printf("\\&%c", *at);
        else
            (void)putchar(*at);
    }
}

static void head(const char *name, int section, const char *phrase)
{
    (void)printf(".TH %s %d \"\" \"sluice %s\"\n.SH NAME\n%s \\- ", name, section, SLUICE_VERSION,
                 name);
    roff(phrase);
    (void)printf("\n");
}

static void print_flag(const struct config_flag *flag)
{
    (void)printf(".TP\n.B ");
    if (flag->letter)
        (void)printf("\\-%c, ", flag->letter);
    (void)printf("\\-\\-");
    roff(flag->name);
    if (flag->argument)
        (void)printf(" \\fI%s\\fR", flag->argument);
    (void)printf("\n");
    roff(flag->doc);
    (void)printf("\n");
}

static void print_command(const struct cli_command *command)
{
    (void)printf(".TP\n.B sluice %s\n", command->name);
    roff(command->operands);
    (void)printf("\n.br\n");
    roff(command->doc);
    (void)printf("\n.RS\n.nf\n");
    roff(command->examples);
    (void)printf("\n.fi\n.RE\n");
    if (!command->flags->name)
        return;
    (void)printf(".RS\n");
    for (const struct config_flag *flag = command->flags; flag->name; flag++)
        print_flag(flag);
    (void)printf(".RE\n");
}

static void print_sluice(void)
{
    const char *group = "";
    head("sluice", 1, "the command line of Sluice");
    (void)printf(".SH SYNOPSIS\n.B sluice\n\\fICOMMAND\\fR [\\fIflags\\fR] [\\fIoperands\\fR]\n");
    for (size_t i = 0; i < cli_command_count; i++) {
        if (strcmp(group, cli_commands[i].group) != 0)
            (void)printf(".SH %s\n", cli_commands[i].group);
        group = cli_commands[i].group;
        print_command(&cli_commands[i]);
    }
    (void)printf(".SH ENVIRONMENT\nSLUICE_URL and SLUICE_TOKEN say where and who, SLUICE_CONTEXT "
                 "names a site that sluice login keeps; every setting of sluice.conf(5) has a "
                 "variable.\n.SH FILES\n~/.config/sluice/contexts.json has the sites and their "
                 "tokens.\n"
                 ".SH EXIT STATUS\n0 done, 1 refused, 2 usage, 3 no connection; run and wait exit "
                 "as the job did, 128+n for a signal.\n");
}

static void print_program(size_t at)
{
    head(programs[at].name, 8, programs[at].phrase);
    (void)printf(".SH SYNOPSIS\n.B %s\n[\\-\\-config \\fIFILE\\fR] "
                 "[\\-\\-\\fISECTION\\fR\\-\\fIKEY\\fR \\fIVALUE\\fR]...\n.SH DESCRIPTION\n",
                 programs[at].name);
    roff(programs[at].text);
    (void)printf("\n.SH SIGNALS\nSIGTERM drains; a second one ends at once. SIGHUP reads again "
                 "what can be changed while it runs.\n"
                 ".SH SEE ALSO\nsluice(1), sluice.conf(5)\n");
}

static void print_settings(void)
{
    head("sluice.conf", 5, "settings of the programs of Sluice");
    (void)printf(".SH DESCRIPTION\n/etc/sluice/sluice.conf, or the file that \\-\\-config or "
                 "SLUICE_CONFIG names: sections in brackets, key = value. A variable of the "
                 "environment wins over the file, a flag over both. A secret may also come from "
                 "the file that the variable with _FILE behind it names.\n.SH SETTINGS\n");
    config_man(stdout);
}

int cmd_man(struct cli *cli)
{
    const char *page = cli->operand_count > 0 ? cli->operands[0] : "sluice";
    if (strcmp(page, "sluice") == 0)
        print_sluice();
    else if (strcmp(page, "sluice.conf") == 0)
        print_settings();
    else
        for (size_t i = 0; i <= ARRAY_LEN(programs); i++) {
            if (i == ARRAY_LEN(programs))
                return cli_fail(CLI_USAGE, "there is no page '%s'", page);
            if (strcmp(page, programs[i].name) != 0)
                continue;
            print_program(i);
            break;
        }
    return CLI_DONE;
}
