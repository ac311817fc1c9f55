/* SPDX-License-Identifier: MIT */
#include "cli/profile.h"

#include "common/base/fs.h"

#include <fcntl.h>
#include <jansson.h>

#define PROFILE_BYTES_MAX ((size_t)64 * 1024)

bool profile_folder(char *ret_path, size_t size)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread, and nobody sets the environment */
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME"); /* NOLINT(concurrency-mt-unsafe) */
    int length = -1;
    if (config && *config == '/')
        length = snprintf(ret_path, size, "%s/sluice", config);
    else if (home && *home == '/')
        length = snprintf(ret_path, size, "%s/.config/sluice", home);
    return length > 0 && (size_t)length < size;
}

static void copy_member(const json_t *object, const char *member, char *ret_text, size_t size)
{
    const json_t *value = json_object_get(object, member);
    if (!json_is_string(value) ||
        !sv_copy((struct sv){json_string_value(value), json_string_length(value)}, ret_text, size))
        ret_text[0] = 0;
}

enum err_code profile_read(const char *path, struct profile *ret_profile, struct err *err)
{
    json_error_t reason;
    json_t *object = json_load_file(path, 0, &reason);
    if (!object)
        return err_set(err, ERR_CONFIG, "%s: %s", path, reason.text);
    copy_member(object, "url", ret_profile->url, sizeof(ret_profile->url));
    copy_member(object, "token", ret_profile->token, sizeof(ret_profile->token));
    copy_member(object, "tenant", ret_profile->tenant, sizeof(ret_profile->tenant));
    json_decref(object);
    return ERR_OK;
}

void profile_load(struct profile *ret_profile)
{
    char folder[512];
    char path[600];
    struct err ignored = {0};
    *ret_profile = (struct profile){0};
    if (!profile_folder(folder, sizeof(folder)))
        return;
    (void)snprintf(path, sizeof(path), "%s/profile.json", folder);
    if (profile_read(path, ret_profile, &ignored))
        *ret_profile = (struct profile){0};
}

enum err_code profile_write(const char *folder, const struct profile *profile, struct err *err)
{
    FD_AUTO int dir = -1;
    enum err_code rc = fs_open_dir(folder, true, &dir, err);
    if (rc)
        return rc;
    BUF_AUTO struct buf text = BUF_INIT(PROFILE_BYTES_MAX);
    buf_add_text(&text, "{\n  \"url\": ");
    buf_add_json_string(&text, sv_of(profile->url));
    buf_add_text(&text, ",\n  \"tenant\": ");
    buf_add_json_string(&text, sv_of(profile->tenant));
    buf_add_text(&text, ",\n  \"token\": ");
    buf_add_json_string(&text, sv_of(profile->token));
    buf_add_text(&text, "\n}\n");
    return fs_write_sync(dir, "profile.json", buf_sv(&text), 0600, err);
}
