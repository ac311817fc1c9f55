/* SPDX-License-Identifier: MIT */
#include "common/config/config.h"

#include "common/config/setting.h"

#include <inttypes.h>

#define VALUE_SIZE 4096

void config_show(const struct config *cfg, FILE *out, bool origin)
{
    char name[SETTING_NAME_SIZE];
    char value[VALUE_SIZE];
    for (size_t id = 0; id < CONFIG_COUNT; id++) {
        setting_show(cfg, id, value, sizeof(value));
        setting_name(id, SETTING_DOTTED, name);
        if (origin)
            fprintf(out, "%-40s %s = %s\n", cfg->origin[id] ? cfg->origin[id] : "default", name,
                    value);
        else
            fprintf(out, "%s = %s\n", name, value);
    }
}

static void doc_limits(FILE *out, const struct setting *s)
{
    switch (s->type) {
    case SETTING_UINT:
    case SETTING_SIZE:
        fprintf(out, "%" PRIu64 " to %" PRIu64, s->min, s->max);
        break;
    case SETTING_BOOL:
        fputs("true or false", out);
        break;
    case SETTING_CHOICE:
        for (const char *c = s->by_default; *c; c++)
            fputs(*c == '|' ? ", " : (char[]){*c, 0}, out);
        break;
    case SETTING_PATH:
        fputs("absolute path", out);
        break;
    case SETTING_HOSTS:
        fputs("HOST or HOST:PORT, separated by commas", out);
        break;
    case SETTING_LIST:
        fputs("absolute paths, separated by commas", out);
        break;
    default:
        fprintf(out, "%s of %" PRIu64 " to %" PRIu64 " bytes",
                s->type == SETTING_SECRET ? "secret" : "text", s->min, s->max);
    }
}

static const char doc_head[] =
    "# Settings\n\n"
    "Made from `common/config/config.def` by `sluice config --doc`. A setting stands in\n"
    "`/etc/sluice/sluice.conf` (or the file that `--config` or `SLUICE_CONFIG` names) as `key = "
    "value`\n"
    "beneath its `[section]`, in the environment as the variable, or on the command line as\n"
    "`--section-key VALUE`; the later wins. A secret is never a flag; it may come from the file "
    "that\n"
    "`<variable>_FILE` names.\n\n";

void config_doc(FILE *out)
{
    const char *section = "";
    fputs(doc_head, out);
    char variable[SETTING_NAME_SIZE];
    for (size_t id = 0; id < CONFIG_COUNT; id++) {
        const struct setting *s = &settings[id];
        if (strcmp(section, s->section) != 0)
            fprintf(out,
                    "%s## [%s]\n\n| key | variable | default | allowed | what it is |\n"
                    "|---|---|---|---|---|\n",
                    section[0] ? "\n" : "", s->section);
        section = s->section;
        int length = s->type == SETTING_CHOICE ? (int)strcspn(s->by_default, "|")
                                               : (int)strlen(s->by_default);
        fprintf(out, "| `%s` | `%s` | %.*s | ", s->key,
                setting_name(id, SETTING_VARIABLE, variable), length, s->by_default);
        doc_limits(out, s);
        fprintf(out, " | %s |\n", s->doc);
    }
}

void config_man(FILE *out)
{
    const char *section = "";
    char variable[SETTING_NAME_SIZE];
    for (size_t id = 0; id < CONFIG_COUNT; id++) {
        const struct setting *s = &settings[id];
        if (strcmp(section, s->section) != 0)
            fprintf(out, ".SS [%s]\n", s->section);
        section = s->section;
        fprintf(out, ".TP\n.B %s\n%s; ", s->key, s->doc);
        doc_limits(out, s);
        fprintf(out, ".\n.br\n%s", setting_name(id, SETTING_VARIABLE, variable));
        if (s->by_default[0])
            fprintf(out, ", by default %.*s",
                    s->type == SETTING_CHOICE ? (int)strcspn(s->by_default, "|") : VALUE_SIZE,
                    s->by_default);
        fprintf(out, "\n");
    }
}

void config_usage(FILE *out, const struct config_flag *flags)
{
    for (const struct config_flag *f = flags; f && f->name; f++) {
        char shape[64];
        snprintf(shape, sizeof(shape), "%c%c%s--%s%s%s", f->letter ? '-' : ' ',
                 f->letter ? f->letter : ' ', f->letter ? ", " : "  ", f->name,
                 f->argument ? " " : "", f->argument ? f->argument : "");
        fprintf(out, "  %-30s %s\n", shape, f->doc);
    }
    fprintf(out, "  %-30s %s\n", "    --config FILE", "read settings from FILE");
    fprintf(out, "  %-30s %s\n", "    --SECTION-KEY VALUE",
            "any setting, as --log-level debug (`sluice config` lists them)");
}
