/* SPDX-License-Identifier: MIT */
#include "common/config/source.h"

#include "common/base/sv.h"

struct reader {
    struct config_args *args;
    struct config_given *given;
    char **order; /* argv as it shall be: flags before operands */
    int flags;    /* entries of order that are flags */
    int at;       /* entry of argv to read next */
};

static struct config_flag *find_own(struct config_flag *flags, const char *name)
{
    for (struct config_flag *f = flags; f && f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static struct config_flag *find_letter(struct config_flag *flags, char letter)
{
    for (struct config_flag *f = flags; f && f->name; f++)
        if (f->letter == letter)
            return f;
    return NULL;
}

static enum err_code note_own(struct config_flag *flag, const char *value, struct err *err)
{
    if (flag->list && flag->count >= flag->list_max)
        return err_set(err, ERR_INVALID, "--%s may be given %zu times at most", flag->name,
                       flag->list_max);
    if (flag->list)
        flag->list[flag->count] = value;
    flag->count++;
    flag->value = value;
    return ERR_OK;
}

/* The argument of a flag that needs one: after "=", or the next word. */
static enum err_code take_argument(struct reader *r, const char *after_equals, const char *name,
                                   const char **ret_value, struct err *err)
{
    if (!after_equals && r->at >= r->args->argc)
        return err_set(err, ERR_INVALID, "%s needs an argument", name);
    if (!after_equals) {
        after_equals = r->args->argv[r->at];
        r->order[r->flags++] = r->args->argv[r->at++];
    }
    *ret_value = after_equals;
    return ERR_OK;
}

static enum err_code read_setting(struct reader *r, const char *name, const char *after_equals,
                                  struct err *err)
{
    char hint[128];
    char spoken[SETTING_NAME_SIZE + 2];
    size_t id = setting_find(name, SETTING_FLAG);
    snprintf(spoken, sizeof(spoken), "--%.90s", name);
    if (id == CONFIG_COUNT)
        return err_set(err, ERR_INVALID, "unknown flag %s%s", spoken,
                       setting_nearest(name, SETTING_FLAG, hint, sizeof(hint)));
    if (settings[id].type == SETTING_SECRET)
        return err_set(err, ERR_INVALID,
                       "%s: a secret may not stand on a command line, where every user can read "
                       "it; use %s or %s_FILE",
                       spoken, setting_name(id, SETTING_VARIABLE, hint), hint);
    if (settings[id].type == SETTING_BOOL && !after_equals)
        after_equals = "true";
    return take_argument(r, after_equals, spoken, &r->given->value[id], err);
}

static enum err_code read_long(struct reader *r, const char *text, struct err *err)
{
    char name[SETTING_NAME_SIZE];
    size_t length = strcspn(text, "=");
    const char *after_equals = text[length] ? text + length + 1 : NULL;
    if (!sv_copy((struct sv){text, length}, name, sizeof(name)))
        return err_set(err, ERR_INVALID, "unknown flag --%.80s", text);
    struct config_flag *own = find_own(r->args->flags, name);
    if (!own && strcmp(name, "config") == 0)
        return take_argument(r, after_equals, "--config", &r->given->file, err);
    if (!own)
        return read_setting(r, name, after_equals, err);
    if (!own->argument && after_equals)
        return err_set(err, ERR_INVALID, "--%s takes no argument", name);
    const char *value = NULL;
    enum err_code rc = ERR_OK;
    if (own->argument)
        rc = take_argument(r, after_equals, name, &value, err);
    return rc ? rc : note_own(own, value, err);
}

/* "-e", several as "-ef", or with an argument as "-o json" or "-ojson". */
static enum err_code read_letters(struct reader *r, const char *letters, struct err *err)
{
    for (; *letters; letters++) {
        struct config_flag *own = find_letter(r->args->flags, *letters);
        const char *value = NULL;
        enum err_code rc = ERR_OK;
        if (!own)
            return err_set(err, ERR_INVALID, "unknown flag -%c", *letters);
        if (own->argument)
            rc = take_argument(r, letters[1] ? letters + 1 : NULL, own->name, &value, err);
        if (!rc)
            rc = note_own(own, value, err);
        if (rc || own->argument)
            return rc;
    }
    return ERR_OK;
}

/* Reads one word; true in ret_operand when it is none of ours. */
static enum err_code read_word(struct reader *r, bool *ret_operand, struct err *err)
{
    char *word = r->args->argv[r->at];
    *ret_operand = word[0] != '-' || !word[1];
    if (*ret_operand)
        return ERR_OK;
    r->at++;
    r->order[r->flags++] = word;
    return word[1] == '-' ? read_long(r, word + 2, err) : read_letters(r, word + 1, err);
}

static enum err_code read_all(struct reader *r, char **operands, int *ret_operands, struct err *err)
{
    struct config_args *args = r->args;
    int n = 0;
    while (r->at < args->argc) {
        bool operand = false;
        if (strcmp(args->argv[r->at], "--") == 0) {
            r->order[r->flags++] = args->argv[r->at++];
            break;
        }
        enum err_code rc = read_word(r, &operand, err);
        if (rc)
            return rc;
        if (operand && args->stop_at_operand)
            break;
        if (operand)
            operands[n++] = args->argv[r->at++];
    }
    while (r->at < args->argc)
        operands[n++] = args->argv[r->at++];
    *ret_operands = n;
    return ERR_OK;
}

enum err_code config_flags_read(struct config_args *args, struct config_given *ret_given,
                                struct err *err)
{
    for (struct config_flag *f = args->flags; f && f->name; f++) {
        f->count = 0;
        f->value = NULL;
    }
    args->rest = args->argc;
    if (args->argc <= 1)
        return ERR_OK;
    size_t words = (size_t)args->argc;
    char **order = calloc(2 * words, sizeof(*order));
    if (!order)
        return err_set(err, ERR_NOMEM, "out of memory for the command line");
    struct reader reader = {args, ret_given, order, 1, 1};
    int operands = 0;
    order[0] = args->argv[0];
    enum err_code rc = read_all(&reader, order + words, &operands, err);
    if (!rc) {
        args->rest = reader.flags;
        memcpy(args->argv, order, (size_t)reader.flags * sizeof(*order));
        memcpy(args->argv + reader.flags, order + words, (size_t)operands * sizeof(*order));
    }
    free(order);
    return rc;
}
