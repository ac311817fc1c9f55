/* SPDX-License-Identifier: MIT */
#include "common/config/source.h"

#include "common/base/sv.h"

#include <errno.h>
#include <ini.h>
#include <pthread.h>

#define LINE_MAX_BYTES (SETTING_VALUE_MAX + SETTING_NAME_SIZE)

struct file {
    struct config *cfg;
    const char *path;
    FILE *stream;
    unsigned line;               /* the one being read; inih does not tell */
    unsigned seen[CONFIG_COUNT]; /* line that set it, 0: none */
    enum err_code rc;
    struct err *err;
};

static void set_dialect(void)
{
    ini_allow_multiline = false;       /* an indented line is a line like any other */
    ini_allow_inline_comments = false; /* a password may hold " ;" */
    ini_stop_on_first_error = true;
    ini_use_stack = false;
    ini_max_line = LINE_MAX_BYTES;
    ini_initial_alloc = LINE_MAX_BYTES;
}

static char *next_line(char *text, int size, void *stream)
{
    struct file *file = stream;
    char *line = fgets(text, size, file->stream);
    if (!line)
        return NULL;
    file->line++;
    if (!strchr(line, '\n') && !feof(file->stream)) {
        file->rc = err_set(file->err, ERR_CONFIG, "%s:%u: the line is longer than %d bytes",
                           file->path, file->line, LINE_MAX_BYTES - 3);
        return NULL;
    }
    return line;
}

/* Called for each "key = value"; 0 tells inih to stop. */
static int put_line(void *user, const char *section, const char *key, const char *value)
{
    struct file *file = user;
    char name[2 * SETTING_NAME_SIZE];
    char hint[128];
    char origin[256];
    snprintf(name, sizeof(name), "%s.%s", section, key);
    snprintf(origin, sizeof(origin), "%.200s:%u", file->path, file->line);
    size_t id = setting_find(name, SETTING_DOTTED);
    if (id == CONFIG_COUNT)
        file->rc = err_set(file->err, ERR_CONFIG, "%s: unknown setting \"%.80s\"%s", origin, name,
                           setting_nearest(name, SETTING_DOTTED, hint, sizeof(hint)));
    else if (file->seen[id])
        file->rc = err_set(file->err, ERR_CONFIG, "%s: %s was set in line %u already", origin, name,
                           file->seen[id]);
    else
        file->rc = setting_put(file->cfg, id, value, origin, file->err);
    if (id < CONFIG_COUNT)
        file->seen[id] = file->line;
    return file->rc == ERR_OK;
}

enum err_code config_file_read(struct config *cfg, const char *path, bool must_exist,
                               struct err *err)
{
    static pthread_once_t dialect_once = PTHREAD_ONCE_INIT;
    struct file file = {.cfg = cfg, .path = path, .err = err};
    pthread_once(&dialect_once, set_dialect);
    file.stream = fopen(path, "re");
    if (!file.stream && errno == ENOENT && !must_exist)
        return ERR_OK;
    if (!file.stream)
        return err_set_errno(err, ERR_CONFIG, errno, "cannot read the configuration file %s", path);
    int line = ini_parse_stream(next_line, &file, put_line, &file);
    bool failed = ferror(file.stream);
    fclose(file.stream);
    if (file.rc)
        return file.rc;
    if (failed)
        return err_set(err, ERR_CONFIG, "cannot read the configuration file %s", path);
    if (line < 0)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (line > 0)
        return err_set(err, ERR_CONFIG, "%s:%d: the line is neither [section] nor key = value",
                       path, line);
    return config_note_source(cfg, path, err);
}
