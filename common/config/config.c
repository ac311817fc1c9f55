/* SPDX-License-Identifier: MIT */
#include "common/config/config.h"

#include "common/base/sv.h"
#include "common/config/setting.h"
#include "common/config/source.h"

#include <errno.h>

#define DEFAULT_FILE "/etc/sluice/sluice.conf"

extern char **environ;

/* Variables that people know by a shorter name. */
static const struct {
    const char *name;
    enum config_id id;
} aliases[] = {
    {"SLUICE_URL", CONFIG_ID_client_url},
    {"SLUICE_TOKEN", CONFIG_ID_client_token},
    {"SLUICE_CA", CONFIG_ID_client_tls_ca},
};

void config_free(struct config *cfg)
{
    if (!cfg)
        return;
    for (size_t i = 0; i < cfg->sources.count; i++)
        free(cfg->sources.items[i]);
    free(cfg->sources.items);
    for (size_t id = 0; id < CONFIG_COUNT; id++)
        setting_clear(cfg, id);
    free(cfg);
}

enum err_code config_note_source(struct config *cfg, const char *path, struct err *err)
{
    struct config_list *sources = &cfg->sources;
    char **grown = reallocarray(sources->items, sources->count + 1, sizeof(*grown));
    if (grown)
        sources->items = grown;
    if (!grown)
        return err_set(err, ERR_NOMEM, "out of memory for the configuration");
    char *real = realpath(path, NULL);
    if (real) /* else it is a pipe, or gone */
        sources->items[sources->count++] = real;
    return ERR_OK;
}

static enum err_code put_defaults(struct config *cfg, struct err *err)
{
    for (size_t id = 0; id < CONFIG_COUNT; id++) {
        enum err_code rc = setting_put(cfg, id, settings[id].by_default, NULL, err);
        if (rc)
            return rc;
    }
    return ERR_OK;
}

static enum err_code put_file(struct config *cfg, const char *flag, struct err *err)
{
    const char *variable = getenv("SLUICE_CONFIG");
    if (flag)
        return config_file_read(cfg, flag, true, err);
    if (variable)
        return variable[0] ? config_file_read(cfg, variable, true, err) : ERR_OK;
    return config_file_read(cfg, DEFAULT_FILE, false, err);
}

/* Index of the secret that variable names the file of, or CONFIG_COUNT. */
static size_t find_secret_file(const char *variable)
{
    char name[SETTING_NAME_SIZE];
    size_t length = strlen(variable);
    if (length <= 5 || strcmp(variable + length - 5, "_FILE") != 0 ||
        !sv_copy((struct sv){variable, length - 5}, name, sizeof(name)))
        return CONFIG_COUNT;
    size_t id = setting_find(name, SETTING_VARIABLE);
    return id < CONFIG_COUNT && settings[id].type == SETTING_SECRET ? id : CONFIG_COUNT;
}

static enum err_code put_secret_file(struct config *cfg, size_t id, const char *variable,
                                     const char *path, struct err *err)
{
    char name[SETTING_NAME_SIZE];
    char secret[SETTING_VALUE_MAX + 2];
    if (getenv(setting_name(id, SETTING_VARIABLE, name)))
        return err_set(err, ERR_CONFIG, "%s and %s are both set; one of them must go", name,
                       variable);
    FILE *file = fopen(path, "re");
    if (!file)
        return err_set_errno(err, ERR_CONFIG, errno, "%s: cannot read %.200s", variable, path);
    size_t length = fread(secret, 1, sizeof(secret) - 1, file);
    bool failed = ferror(file);
    fclose(file);
    secret[length] = 0;
    if (length > 0 && secret[length - 1] == '\n')
        secret[--length] = 0;
    if (length > 0 && secret[length - 1] == '\r')
        secret[--length] = 0;
    enum err_code rc = ERR_OK;
    if (failed || strlen(secret) != length)
        rc = err_set(err, ERR_CONFIG, "%s: %.200s cannot be read as text", variable, path);
    else
        rc = setting_put(cfg, id, secret, variable, err);
    if (rc == ERR_OK)
        rc = config_note_source(cfg, path, err);
    explicit_bzero(secret, sizeof(secret));
    return rc;
}

static bool looks_like_a_setting(const char *variable)
{
    char section[SETTING_NAME_SIZE];
    const char *start = variable + strlen("SLUICE_");
    size_t length = strcspn(start, "_");
    if (!start[length] || !sv_copy((struct sv){start, length}, section, sizeof(section)))
        return false;
    for (char *c = section; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    return setting_section_exists(section);
}

static enum err_code put_variable(struct config *cfg, const char *name, const char *value,
                                  struct err *err)
{
    char hint[128];
    size_t id = setting_find(name, SETTING_VARIABLE);
    if (id < CONFIG_COUNT)
        return setting_put(cfg, id, value, name, err);
    id = find_secret_file(name);
    if (id < CONFIG_COUNT)
        return put_secret_file(cfg, id, name, value, err);
    if (!looks_like_a_setting(name))
        return ERR_OK;
    return err_set(err, ERR_CONFIG, "unknown setting %.100s in the environment%s", name,
                   setting_nearest(name, SETTING_VARIABLE, hint, sizeof(hint)));
}

static enum err_code put_environment(struct config *cfg, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        const char *value = getenv(aliases[i].name);
        enum err_code rc =
            value ? setting_put(cfg, aliases[i].id, value, aliases[i].name, err) : ERR_OK;
        if (rc)
            return rc;
    }
    for (char **entry = environ; entry && *entry; entry++) {
        char name[SETTING_NAME_SIZE * 2];
        struct sv key = {*entry, strcspn(*entry, "=")};
        if (strncmp(*entry, "SLUICE_", 7) != 0 || !sv_copy(key, name, sizeof(name)))
            continue;
        enum err_code rc = put_variable(cfg, name, *entry + key.len + 1, err);
        if (rc)
            return rc;
    }
    return ERR_OK;
}

static enum err_code put_flags(struct config *cfg, const struct config_given *given,
                               struct err *err)
{
    char name[SETTING_NAME_SIZE];
    char origin[SETTING_NAME_SIZE + 2];
    for (size_t id = 0; id < CONFIG_COUNT; id++) {
        if (!given->value[id])
            continue;
        snprintf(origin, sizeof(origin), "--%s", setting_name(id, SETTING_FLAG, name));
        enum err_code rc = setting_put(cfg, id, given->value[id], origin, err);
        if (rc == ERR_CONFIG && err) /* a fault of whoever typed the command */
            err->code = ERR_INVALID;
        if (rc)
            return rc == ERR_CONFIG ? ERR_INVALID : rc;
    }
    return ERR_OK;
}

/* Settings that are each allowed but not together. */
static enum err_code check_together(const struct config *cfg, struct err *err)
{
    if (cfg->fleet_lease_ms < 3 * cfg->fleet_beat_ms)
        return err_set(err, ERR_CONFIG,
                       "fleet.lease_ms %u is less than three times fleet.beat_ms %u: a late beat "
                       "would look like a dead worker",
                       cfg->fleet_lease_ms, cfg->fleet_beat_ms);
    if (cfg->limits_default_minutes > cfg->limits_max_minutes)
        return err_set(err, ERR_CONFIG, "limits.default_minutes %u is more than max_minutes %u",
                       cfg->limits_default_minutes, cfg->limits_max_minutes);
    return ERR_OK;
}

enum err_code config_load(struct config_args *args, struct config **ret_cfg, struct err *err)
{
    AUTO(config_free) struct config *cfg = calloc(1, sizeof(*cfg));
    struct config_given given = {0};
    if (!cfg)
        return err_set(err, ERR_NOMEM, "out of memory for the configuration");
    enum err_code rc = args ? config_flags_read(args, &given, err) : ERR_OK;
    if (!rc)
        rc = put_defaults(cfg, err);
    if (!rc)
        rc = put_file(cfg, given.file, err);
    if (!rc)
        rc = put_environment(cfg, err);
    if (!rc)
        rc = put_flags(cfg, &given, err);
    if (!rc)
        rc = check_together(cfg, err);
    if (rc)
        return rc;
    *ret_cfg = TAKE(cfg);
    return ERR_OK;
}
