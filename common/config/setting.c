/* SPDX-License-Identifier: MIT */
#include "common/config/setting.h"

#include "common/base/sv.h"

#define MAX_DISTANCE 4 /* a name that differs more is not what was meant */

const struct setting settings[CONFIG_COUNT] = {
#define CONFIG(type, section, key, by_default, min, max, doc)                                      \
    {SETTING_##type,                                                                               \
     #section,                                                                                     \
     #key,                                                                                         \
     by_default,                                                                                   \
     min,                                                                                          \
     max,                                                                                          \
     doc,                                                                                          \
     offsetof(struct config, section##_##key)},
#include "common/config/config.def"
#undef CONFIG
};

static char letter_of(char c, enum setting_form form)
{
    if (form == SETTING_VARIABLE)
        return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    return form == SETTING_FLAG && c == '_' ? '-' : c;
}

const char *setting_name(size_t id, enum setting_form form, char *ret_name)
{
    const struct setting *s = &settings[id];
    if (form == SETTING_DOTTED)
        snprintf(ret_name, SETTING_NAME_SIZE, "%s.%s", s->section, s->key);
    else if (form == SETTING_FLAG)
        snprintf(ret_name, SETTING_NAME_SIZE, "%s-%s", s->section, s->key);
    else
        snprintf(ret_name, SETTING_NAME_SIZE, "SLUICE_%s_%s", s->section, s->key);
    for (char *c = ret_name; *c; c++)
        *c = letter_of(*c, form);
    return ret_name;
}

size_t setting_find(const char *name, enum setting_form form)
{
    char candidate[SETTING_NAME_SIZE];
    for (size_t id = 0; id < CONFIG_COUNT; id++)
        if (strcmp(setting_name(id, form, candidate), name) == 0)
            return id;
    return CONFIG_COUNT;
}

bool setting_section_exists(const char *section)
{
    for (size_t id = 0; id < CONFIG_COUNT; id++)
        if (strcmp(settings[id].section, section) == 0)
            return true;
    return false;
}

const char *setting_nearest(const char *name, enum setting_form form, char *ret_text, size_t size)
{
    size_t best = CONFIG_COUNT;
    size_t best_distance = MAX_DISTANCE + 1;
    char candidate[SETTING_NAME_SIZE];
    ret_text[0] = 0;
    if (strlen(name) >= SETTING_NAME_SIZE)
        return ret_text;
    for (size_t id = 0; id < CONFIG_COUNT; id++) {
        size_t d = sv_distance(sv_of(name), sv_of(setting_name(id, form, candidate)));
        if (d < best_distance) {
            best_distance = d;
            best = id;
        }
    }
    if (best < CONFIG_COUNT)
        snprintf(ret_text, size, "; did you mean %s%s?", form == SETTING_FLAG ? "--" : "",
                 setting_name(best, form, candidate));
    return ret_text;
}
