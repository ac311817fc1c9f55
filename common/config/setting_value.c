/* SPDX-License-Identifier: MIT */
#include "common/config/setting.h"

#include "common/base/hosts.h"
#include "common/base/sv.h"

#include <inttypes.h>
#include <stdarg.h>

#define LIST_MAX 64

/* The field of a setting; the cast is right because the type in the row made the field. */
#define FIELD(cfg, s, c_type) ((c_type *)(void *)((char *)(cfg) + (s)->offset))
#define FIELD_READ(cfg, s, c_type)                                                                 \
    ((c_type const *)(const void *)((const char *)(cfg) + (s)->offset))

struct value { /* a text that becomes the value of a setting */
    const struct setting *setting;
    const char *text;
    char where[256]; /* "sluice.conf:12: db.port", for messages */
};

static bool is_text(enum setting_type type)
{
    return type == SETTING_TEXT || type == SETTING_SECRET || type == SETTING_PATH ||
           type == SETTING_HOSTS || type == SETTING_CHOICE;
}

/* limit says what would be allowed. */
static enum err_code refuse(const struct value *v, struct err *err, const char *format, ...)
    PRINTF_LIKE(3, 4);

static enum err_code refuse(const struct value *v, struct err *err, const char *format, ...)
{
    char limit[160];
    va_list args;
    va_start(args, format);
    vsnprintf(limit, sizeof(limit), format, args);
    va_end(args);
    if (v->setting->type == SETTING_SECRET)
        return err_set(err, ERR_CONFIG, "%s: the value is not allowed: %s", v->where, limit);
    return err_set(err, ERR_CONFIG, "%s: \"%.80s\" is not allowed: %s", v->where, v->text, limit);
}

static enum err_code put_text(struct config *cfg, const struct value *v, struct err *err)
{
    char **field = FIELD(cfg, v->setting, char *);
    char *copy = strdup(v->text);
    if (!copy)
        return err_set(err, ERR_NOMEM, "%s: out of memory", v->where);
    if (*field)
        explicit_bzero(*field, strlen(*field));
    free(*field);
    *field = copy;
    return ERR_OK;
}

static enum err_code put_bounded(struct config *cfg, const struct value *v, struct err *err)
{
    size_t length = strlen(v->text);
    if (length < v->setting->min || length > v->setting->max)
        return refuse(v, err, "it must have %" PRIu64 " to %" PRIu64 " bytes", v->setting->min,
                      v->setting->max);
    return put_text(cfg, v, err);
}

static enum err_code put_path(struct config *cfg, const struct value *v, struct err *err)
{
    if (v->text[0] != '/' && (v->text[0] || v->setting->min > 0))
        return refuse(v, err, "it must be a path that begins with /");
    if (strlen(v->text) > 1024)
        return refuse(v, err, "a path has 1024 bytes at most");
    return put_text(cfg, v, err);
}

static enum err_code put_hosts(struct config *cfg, const struct value *v, struct err *err)
{
    if (hosts_count(v->text) == 0)
        return refuse(v, err, "it must be HOST or HOST:PORT, up to %d of them separated by commas",
                      HOSTS_MAX);
    return put_text(cfg, v, err);
}

static bool choice_has(const char *choices, struct sv word)
{
    for (const char *at = choices; *at;) {
        size_t length = strcspn(at, "|");
        if (sv_eq((struct sv){at, length}, word))
            return true;
        at += length + (at[length] == '|');
    }
    return false;
}

static enum err_code put_choice(struct config *cfg, const struct value *v, struct err *err)
{
    const char *choices = v->setting->by_default;
    char first[64];
    if (v->text == choices) { /* the default is the first word */
        if (!sv_copy((struct sv){choices, strcspn(choices, "|")}, first, sizeof(first)))
            return refuse(v, err, "a word is too long");
        struct value word = *v;
        word.text = first;
        return put_text(cfg, &word, err);
    }
    if (!v->text[0] || !choice_has(choices, sv_of(v->text)))
        return refuse(v, err, "it must be one of %s", choices);
    return put_text(cfg, v, err);
}

static enum err_code put_uint(struct config *cfg, const struct value *v, struct err *err)
{
    uint64_t number = 0;
    if (!sv_u64(sv_of(v->text), v->setting->max, &number) || number < v->setting->min)
        return refuse(v, err, "it must be a whole number from %" PRIu64 " to %" PRIu64,
                      v->setting->min, v->setting->max);
    *FIELD(cfg, v->setting, unsigned) = (unsigned)number;
    return ERR_OK;
}

static enum err_code put_size(struct config *cfg, const struct value *v, struct err *err)
{
    static const char units[][4] = {"KiB", "MiB", "GiB"};
    struct sv digits = sv_of(v->text);
    unsigned shift = 0;
    for (unsigned i = 0; i < ARRAY_LEN(units); i++)
        if (digits.len > 3 && strcmp(v->text + digits.len - 3, units[i]) == 0)
            shift = 10 * (i + 1);
    if (shift)
        digits.len -= 3;
    uint64_t number = 0;
    if (!sv_u64(digits, v->setting->max >> shift, &number) || number << shift < v->setting->min)
        return refuse(v, err, "it must be %" PRIu64 " to %" PRIu64 " bytes, as 65536 or 64KiB",
                      v->setting->min, v->setting->max);
    *FIELD(cfg, v->setting, uint64_t) = number << shift;
    return ERR_OK;
}

static enum err_code put_bool(struct config *cfg, const struct value *v, struct err *err)
{
    bool yes = strcmp(v->text, "true") == 0;
    if (!yes && strcmp(v->text, "false") != 0)
        return refuse(v, err, "it must be true or false");
    *FIELD(cfg, v->setting, bool) = yes;
    return ERR_OK;
}

static void list_clear(struct config_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct config_list){0};
}

static enum err_code list_fill(struct config_list *list, const struct value *v, struct err *err)
{
    for (const char *at = v->text; *at;) {
        size_t length = strcspn(at, ",");
        struct sv item = {at + strspn(at, " "), 0};
        item.len = item.ptr < at + length ? (size_t)(at + length - item.ptr) : 0;
        while (item.len > 0 && item.ptr[item.len - 1] == ' ')
            item.len--;
        if (item.len == 0 || item.ptr[0] != '/' || item.len > 1024)
            return refuse(v, err, "it must be paths that begin with /, separated by commas");
        if (list->count == LIST_MAX)
            return refuse(v, err, "it has more than %d parts", LIST_MAX);
        char *copy = strndup(item.ptr, item.len);
        if (!copy)
            return err_set(err, ERR_NOMEM, "%s: out of memory", v->where);
        list->items[list->count++] = copy;
        at += length + (at[length] == ',');
    }
    return ERR_OK;
}

static enum err_code put_list(struct config *cfg, const struct value *v, struct err *err)
{
    struct config_list list = {calloc(LIST_MAX, sizeof(*list.items)), 0};
    if (!list.items)
        return err_set(err, ERR_NOMEM, "%s: out of memory", v->where);
    enum err_code rc = list_fill(&list, v, err);
    if (rc) {
        list_clear(&list);
        return rc;
    }
    struct config_list *field = FIELD(cfg, v->setting, struct config_list);
    list_clear(field);
    *field = list;
    return ERR_OK;
}

static bool is_printable(const char *text)
{
    if (!sv_is_utf8(sv_of(text)))
        return false;
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    return true;
}

enum err_code setting_put(struct config *cfg, size_t id, const char *text, const char *origin,
                          struct err *err)
{
    static enum err_code (*const put[])(struct config *, const struct value *, struct err *) = {
        [SETTING_TEXT] = put_bounded,  [SETTING_SECRET] = put_bounded, [SETTING_PATH] = put_path,
        [SETTING_CHOICE] = put_choice, [SETTING_UINT] = put_uint,      [SETTING_SIZE] = put_size,
        [SETTING_BOOL] = put_bool,     [SETTING_LIST] = put_list,      [SETTING_HOSTS] = put_hosts,
    };
    char name[SETTING_NAME_SIZE];
    struct value v = {.setting = &settings[id], .text = text};
    snprintf(v.where, sizeof(v.where), "%s: %s", origin ? origin : "default",
             setting_name(id, SETTING_DOTTED, name));
    if (!is_printable(text) || strlen(text) > SETTING_VALUE_MAX)
        return err_set(err, ERR_CONFIG, "%s: it must be at most %d bytes of UTF-8 on one line",
                       v.where, SETTING_VALUE_MAX);
    char *kept = origin ? strdup(origin) : NULL;
    if (origin && !kept)
        return err_set(err, ERR_NOMEM, "%s: out of memory", v.where);
    enum err_code rc = put[v.setting->type](cfg, &v, err);
    if (rc) {
        free(kept);
        return rc;
    }
    free(cfg->origin[id]);
    cfg->origin[id] = kept;
    return ERR_OK;
}

void setting_clear(struct config *cfg, size_t id)
{
    const struct setting *s = &settings[id];
    if (is_text(s->type)) {
        char **field = FIELD(cfg, s, char *);
        if (*field)
            explicit_bzero(*field, strlen(*field));
        free(*field);
        *field = NULL;
    } else if (s->type == SETTING_LIST) {
        list_clear(FIELD(cfg, s, struct config_list));
    }
    free(cfg->origin[id]);
    cfg->origin[id] = NULL;
}

static void show_list(const struct config_list *list, char *ret_text, size_t size)
{
    size_t used = 0;
    ret_text[0] = 0;
    for (size_t i = 0; i < list->count && used < size; i++) {
        int n = snprintf(ret_text + used, size - used, "%s%s", i ? ", " : "", list->items[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

void setting_show(const struct config *cfg, size_t id, char *ret_text, size_t size)
{
    const struct setting *s = &settings[id];
    switch (s->type) {
    case SETTING_SECRET:
        snprintf(ret_text, size, "%s", (*FIELD_READ(cfg, s, char *))[0] ? "(set)" : "");
        break;
    case SETTING_UINT:
        snprintf(ret_text, size, "%u", *FIELD_READ(cfg, s, unsigned));
        break;
    case SETTING_SIZE:
        snprintf(ret_text, size, "%" PRIu64, *FIELD_READ(cfg, s, uint64_t));
        break;
    case SETTING_BOOL:
        snprintf(ret_text, size, "%s", *FIELD_READ(cfg, s, bool) ? "true" : "false");
        break;
    case SETTING_LIST:
        show_list(FIELD_READ(cfg, s, struct config_list), ret_text, size);
        break;
    default:
        snprintf(ret_text, size, "%s", *FIELD_READ(cfg, s, char *));
    }
}
