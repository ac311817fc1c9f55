/* SPDX-License-Identifier: MIT */
#include "cli/contexts.h"

#include "cli/http.h"
#include "cli/profile.h"
#include "common/base/clock.h"
#include "common/base/fs.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/file.h>

#define FILE_NAME "contexts.json"
#define FILE_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define FOLDER_SIZE 512
#define LOCK_WAIT_MS 5000
#define OLD_NAME "profile" /* of the one context that former versions had */

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

bool context_name_is_valid(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length >= CONTEXT_NAME_SIZE || *name == '.' || *name == '-')
        return false;
    for (; *name; name++) {
        if (!isalnum((unsigned char)*name) && !strchr("._-", *name))
            return false;
    }
    return true;
}

static json_t *all_of(const json_t *doc)
{
    return json_object_get(doc, "contexts");
}

json_t *contexts_find(const json_t *doc, const char *name)
{
    return json_object_get(all_of(doc), name);
}

const char *contexts_current(const json_t *doc)
{
    return text_of(doc, "current");
}

void contexts_set_current(json_t *doc, const char *name)
{
    (void)json_object_set_new(doc, "current", json_string(name));
}

enum err_code contexts_put(json_t *doc, const char *name, json_t *take_context, struct err *err)
{
    if (!contexts_find(doc, name) && json_object_size(all_of(doc)) >= CONTEXTS_MAX) {
        json_decref(take_context);
        return err_set(err, ERR_TOO_LARGE,
                       "%d contexts are there already; 'sluice context rm NAME' removes one",
                       CONTEXTS_MAX);
    }
    (void)json_object_set_new(all_of(doc), name, take_context);
    return ERR_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

static json_t *make_context(const char *url, const char *token, const char *tenant)
{
    return json_pack("{s:s, s:s, s:s}", "url", url, "token", token, "tenant", tenant);
}

static void carry_profile_over(json_t *doc)
{
    struct profile profile = {0};
    profile_load(&profile);
    if (!*profile.url)
        return;
    (void)json_object_set_new(all_of(doc), OLD_NAME,
                              make_context(profile.url, profile.token, profile.tenant));
    contexts_set_current(doc, OLD_NAME);
}

static enum err_code read_file(int dir, const char *folder, json_t **ret_doc, struct err *err)
{
    json_error_t reason;
    struct err missing = {0};
    BUF_AUTO struct buf text = BUF_INIT(FILE_BYTES_MAX);
    enum err_code rc = dir < 0 ? ERR_NOT_FOUND : fs_read(dir, FILE_NAME, &text, &missing);
    if (rc == ERR_NOT_FOUND) {
        *ret_doc = json_pack("{s:{}}", "contexts");
        carry_profile_over(*ret_doc);
        return ERR_OK;
    }
    if (rc)
        return err_set(err, ERR_CONFIG, "%s/" FILE_NAME ": %s", folder, missing.text);
    json_t *doc = json_loadb(buf_text(&text), text.len, 0, &reason);
    if (json_is_object(all_of(doc))) {
        *ret_doc = doc;
        return ERR_OK;
    }
    json_decref(doc);
    return err_set(err, ERR_CONFIG,
                   "%s/" FILE_NAME " is no list of contexts: %s; mend or remove it", folder,
                   doc ? "its member contexts is missing" : reason.text);
}

static enum err_code open_folder(bool create, char *ret_folder, int *ret_dir, struct err *err)
{
    struct err missing = {0};
    if (!profile_folder(ret_folder, FOLDER_SIZE))
        return err_set(err, ERR_CONFIG, "contexts have no place: set HOME or XDG_CONFIG_HOME");
    enum err_code rc = fs_open_dir(ret_folder, create, ret_dir, create ? err : &missing);
    return create ? rc : ERR_OK;
}

enum err_code contexts_load(json_t **ret_doc, struct err *err)
{
    char folder[FOLDER_SIZE] = "";
    struct err homeless = {0};
    FD_AUTO int dir = -1;
    (void)!open_folder(false, folder, &dir, &homeless);
    return read_file(dir, folder, ret_doc, err);
}

/* Another process holds it for as long as it takes to write a small file. */
static enum err_code take_lock(int dir, const char *folder, int *ret_fd, struct err *err)
{
    static const struct timespec pause = {.tv_nsec = 20000000};
    int64_t until_ms = clock_mono_ms() + LOCK_WAIT_MS;
    enum err_code rc = fs_open_beneath(dir, "contexts.lock", O_RDWR | O_CREAT, 0600, ret_fd, err);
    while (rc == ERR_OK && flock(*ret_fd, LOCK_EX | LOCK_NB) != 0) {
        if (clock_mono_ms() >= until_ms)
            return err_set(err, ERR_TIMEOUT, "%s/contexts.lock is held by another process for %d s",
                           folder, LOCK_WAIT_MS / 1000);
        (void)nanosleep(&pause, NULL);
    }
    return rc;
}

enum err_code contexts_change(contexts_change_fn *change, void *arg, struct err *err)
{
    char folder[FOLDER_SIZE] = "";
    json_t *doc = NULL;
    FD_AUTO int dir = -1;
    FD_AUTO int lock = -1;
    enum err_code rc = open_folder(true, folder, &dir, err);
    if (rc == ERR_OK)
        rc = take_lock(dir, folder, &lock, err);
    if (rc == ERR_OK)
        rc = read_file(dir, folder, &doc, err);
    if (rc == ERR_OK)
        rc = change(doc, arg, err);
    TEXT_AUTO char *text = rc == ERR_OK ? json_dumps(doc, JSON_INDENT(2)) : NULL;
    json_decref(doc);
    if (rc == ERR_OK && !text)
        return err_set(err, ERR_NOMEM, "out of memory");
    return rc ? rc : fs_write_sync(dir, FILE_NAME, sv_of(text), 0600, err);
}

/* ---- of sluice dev --------------------------------------------------------------------------- */

/* The folder that the state is in for ".state", as ./dev up has it; else the folder itself. */
static void name_after_folder(const char *state, char *ret_name, size_t size)
{
    size_t end = strlen(state);
    if (end > 7 && strcmp(state + end - 7, "/.state") == 0)
        end -= 7;
    size_t start = end;
    while (start > 0 && state[start - 1] != '/')
        start--;
    size_t length = end - start < size - 1 ? end - start : size - 1;
    for (size_t i = 0; i < length; i++) {
        char c = state[start + i];
        bool good = isalnum((unsigned char)c) || c == '_' || (i > 0 && (c == '.' || c == '-'));
        ret_name[i] = (char)(good ? c : '_');
    }
    ret_name[length] = 0;
}

/* The context that this state folder has, or a name that no other has. */
static bool find_name(const json_t *doc, const struct contexts_dev *dev, char *ret_name)
{
    char folder[40];
    const char *name = NULL;
    json_t *context = NULL;
    json_object_foreach(all_of(doc), name, context)
    {
        bool carried = strcmp(name, OLD_NAME) == 0 && !*text_of(context, "state") &&
                       http_is_same_place(text_of(context, "url"), dev->url);
        if (carried || strcmp(text_of(context, "state"), dev->state) == 0)
            return snprintf(ret_name, CONTEXT_NAME_SIZE, "%s", name) > 0;
    }
    name_after_folder(dev->state, folder, sizeof(folder));
    if (!context_name_is_valid(folder))
        (void)snprintf(folder, sizeof(folder), "dev");
    (void)snprintf(ret_name, CONTEXT_NAME_SIZE, "%s", folder);
    for (int i = 1; contexts_find(doc, ret_name) && i <= CONTEXTS_MAX; i++)
        (void)snprintf(ret_name, CONTEXT_NAME_SIZE, i == 1 ? "%s-%u" : "%s-%u-%d", folder,
                       dev->port, i);
    return !contexts_find(doc, ret_name);
}

static enum err_code put_dev(json_t *doc, void *arg, struct err *err)
{
    const struct contexts_dev *dev = arg;
    char name[CONTEXT_NAME_SIZE];
    json_t *context = make_context(dev->url, dev->token, dev->tenant);
    (void)json_object_set_new(context, "state", json_string(dev->state));
    if (!find_name(doc, dev, name)) {
        json_decref(context);
        return err_set(err, ERR_DUPLICATE, "no name is free for the context of %s", dev->state);
    }
    enum err_code rc = contexts_put(doc, name, context, err);
    if (rc == ERR_OK && !contexts_find(doc, contexts_current(doc)))
        contexts_set_current(doc, name);
    return rc;
}

enum err_code contexts_keep_dev(const struct contexts_dev *dev, struct err *err)
{
    return contexts_change(put_dev, (void *)(uintptr_t)dev, err);
}
