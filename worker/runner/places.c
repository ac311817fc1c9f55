/* SPDX-License-Identifier: MIT */
#include "worker/runner/places.h"

#include "common/base/landlock.h"
#include "common/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACES_MAX 8192
#define DEPTH_MAX 32

enum access { PLACE_PROGRAMS, PLACE_DATA, PLACE_DEVICE, PLACE_FOLDER };

static const struct {
    const char *path;
    enum access access;
} everywhere[] = {
#define PLACE(path, access) {path, PLACE_##access},
#include "worker/runner/place.def"
#undef PLACE
};

struct place {
    int fd;
    uint64_t access;
};

/* A folder that was opened entry by entry, or in which something denied may come. */
struct split {
    char *path;
    struct stat status;
};

struct places {
    uint64_t handled;
    struct place *at;
    size_t count;
    size_t capacity;
    struct split *splits;
    size_t split_count;
    char **denied; /* without links, as far as it is there */
    size_t denied_count;
    struct err *err; /* while it is opened */
};

uint64_t places_work(uint64_t handled)
{
    return handled & ~(LANDLOCK_MAKE_CHAR | LANDLOCK_MAKE_BLOCK);
}

static uint64_t rights(const struct places *places, enum access access)
{
    static const uint64_t reading = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR;
    switch (access) {
    case PLACE_PROGRAMS:
        return reading | LANDLOCK_EXECUTE;
    case PLACE_DATA:
        return reading;
    case PLACE_DEVICE:
        return LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE;
    case PLACE_FOLDER:
        break;
    }
    return places_work(places->handled);
}

void places_free(struct places *places)
{
    if (!places)
        return;
    for (size_t i = 0; i < places->count; i++)
        fd_close(&places->at[i].fd);
    for (size_t i = 0; i < places->split_count; i++)
        free(places->splits[i].path);
    for (size_t i = 0; i < places->denied_count; i++)
        free(places->denied[i]);
    free(places->at);
    free(places->splits);
    free(places->denied);
    free(places);
}

/* ---- what is denied ------------------------------------------------------------------------ */

/* path is upper, or beneath it */
static bool is_beneath(const char *path, const char *upper)
{
    size_t length = strlen(upper);
    while (length > 0 && upper[length - 1] == '/')
        length--;
    return strncmp(path, upper, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static bool is_denied(const struct places *places, const char *path)
{
    for (size_t i = 0; i < places->denied_count; i++) {
        if (is_beneath(path, places->denied[i]))
            return true;
    }
    return false;
}

static bool holds_denied(const struct places *places, const char *path)
{
    for (size_t i = 0; i < places->denied_count; i++) {
        if (is_beneath(places->denied[i], path))
            return true;
    }
    return false;
}

static enum err_code deny(struct places *places, const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return err_set(places->err, ERR_NOMEM, "no memory for the confinement of jobs");
    places->denied[places->denied_count++] = copy;
    return ERR_OK;
}

static enum err_code watch(struct places *places, const char *path, int fd)
{
    struct split split = {.path = strdup(path)};
    struct split *grown =
        reallocarray(places->splits, places->split_count + 1, sizeof(*places->splits));
    if (grown)
        places->splits = grown;
    if (!grown || !split.path || fstat(fd, &split.status) != 0) {
        free(split.path);
        return err_set(places->err, ERR_NOMEM, "no memory for the confinement of jobs");
    }
    places->splits[places->split_count++] = split;
    return ERR_OK;
}

/* What is not there costs no rule; the folder in which it would come is watched. */
static enum err_code watch_above(struct places *places, const char *path)
{
    char upper[PATH_MAX];
    (void)snprintf(upper, sizeof(upper), "%s", path);
    for (char *slash = strrchr(upper, '/'); slash && slash != upper; slash = strrchr(upper, '/')) {
        *slash = 0;
        FD_AUTO int fd = open(upper, O_PATH | O_CLOEXEC);
        if (fd >= 0)
            return watch(places, upper, fd);
    }
    return ERR_OK; /* in "/", which is not opened to jobs */
}

/* Both as it is named, and where that leads to. */
static enum err_code note_denied(struct places *places, const char *path)
{
    char real[PATH_MAX];
    struct stat status;
    if (lstat(path, &status) != 0 && errno == ENOENT)
        return watch_above(places, path);
    enum err_code rc = deny(places, path);
    if (rc == ERR_OK && realpath(path, real) && strcmp(path, real) != 0)
        rc = deny(places, real);
    return rc;
}

static enum err_code note_all_denied(struct places *places, const json_t *list)
{
    size_t i = 0;
    const json_t *path = NULL;
    enum err_code rc = ERR_OK;
    places->denied = calloc(2 * json_array_size(list) + 1, sizeof(*places->denied));
    if (!places->denied)
        return err_set(places->err, ERR_NOMEM, "no memory for the confinement of jobs");
    json_array_foreach(list, i, path)
    {
        if (rc == ERR_OK)
            rc = note_denied(places, json_string_value(path));
    }
    return rc;
}

/* What is not there, or closed to us, is closed to jobs as well; a shortage passes, and jobs that
 * started without a place would fail for it. */
static enum err_code left_out(struct places *places, const char *path)
{
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM)
        return ERR_OK;
    return err_set_errno(places->err, ERR_IO, errno, "cannot open %.200s for jobs", path);
}

/* ---- opening ------------------------------------------------------------------------------- */

/* Takes the descriptor. What is a link is left out: its target counts where it is. */
static enum err_code add(struct places *places, int take_fd, uint64_t access)
{
    FD_AUTO int fd = take_fd;
    struct stat status;
    if (fstat(fd, &status) != 0 || S_ISLNK(status.st_mode))
        return ERR_OK;
    access &= places->handled;
    if (!S_ISDIR(status.st_mode))
        access &= LANDLOCK_OF_FILES;
    if (places->count == PLACES_MAX)
        return err_set(places->err, ERR_TOO_LARGE,
                       "jobs may reach more than %d places: name folders in worker.read_paths and "
                       "worker.write_paths that hold nothing of the service",
                       PLACES_MAX);
    if (places->count == places->capacity) {
        size_t capacity = places->capacity ? places->capacity * 2 : 256;
        struct place *grown = reallocarray(places->at, capacity, sizeof(*grown));
        if (!grown)
            return err_set(places->err, ERR_NOMEM, "no memory for the confinement of jobs");
        places->at = grown;
        places->capacity = capacity;
    }
    places->at[places->count++] = (struct place){fd, access};
    fd = -1;
    return ERR_OK;
}

static enum err_code open_place(struct places *places, const char *path, uint64_t access,
                                int depth);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the path of what is denied */
static enum err_code open_entries(struct places *places, const char *path, uint64_t access,
                                  int depth)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return left_out(places, path);
    enum err_code rc = watch(places, path, fd);
    DIR *dir = rc == ERR_OK ? fdopendir(fd) : NULL;
    if (!dir) {
        fd_close(&fd);
        return rc ? rc : err_set(places->err, ERR_NOMEM, "no memory for the confinement of jobs");
    }
    const struct dirent *entry = NULL;
    while (rc == ERR_OK && (entry = readdir(dir))) { /* NOLINT(concurrency-mt-unsafe): own DIR */
        char child[PATH_MAX];
        int length = snprintf(child, sizeof(child), "%s/%s", path[1] ? path : "", entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && length > 0 &&
            (size_t)length < sizeof(child))
            rc = open_place(places, child, access, depth + 1);
    }
    (void)closedir(dir);
    return rc;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the path of what is denied */
static enum err_code open_place(struct places *places, const char *path, uint64_t access, int depth)
{
    if (is_denied(places, path) || depth > DEPTH_MAX)
        return ERR_OK;
    if (holds_denied(places, path))
        return open_entries(places, path, access, depth);
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? left_out(places, path) : add(places, fd, access);
}

/* The path may be a link itself, as /bin is. */
static enum err_code open_root(struct places *places, const char *path, enum access access)
{
    char real[PATH_MAX];
    if (!realpath(path, real))
        return left_out(places, path);
    return open_place(places, real, rights(places, access), 0);
}

static enum err_code open_named(struct places *places, const json_t *list, enum access access)
{
    size_t i = 0;
    const json_t *path = NULL;
    enum err_code rc = ERR_OK;
    json_array_foreach(list, i, path)
    {
        struct stat status;
        const char *text = json_string_value(path);
        if (stat(text, &status) != 0)
            log_event(LOG_WARN, "runner.place.missing", LOG_S("path", text));
        if (rc == ERR_OK)
            rc = open_root(places, text, access);
    }
    return rc;
}

enum err_code places_open(const json_t *wanted, uint64_t handled, struct places **ret_places,
                          struct err *err)
{
    struct places *places = calloc(1, sizeof(*places));
    if (!places)
        return err_set(err, ERR_NOMEM, "no memory for the confinement of jobs");
    places->handled = handled;
    places->err = err;
    enum err_code rc = note_all_denied(places, json_object_get(wanted, "deny"));
    for (size_t i = 0; i < ARRAY_LEN(everywhere) && rc == ERR_OK; i++)
        rc = open_root(places, everywhere[i].path, everywhere[i].access);
    if (rc == ERR_OK)
        rc = open_named(places, json_object_get(wanted, "read"), PLACE_PROGRAMS);
    if (rc == ERR_OK)
        rc = open_named(places, json_object_get(wanted, "write"), PLACE_FOLDER);
    places->err = NULL;
    if (rc) {
        places_free(places);
        return rc;
    }
    *ret_places = places;
    return ERR_OK;
}

/* ---- use ----------------------------------------------------------------------------------- */

bool places_changed(const struct places *places)
{
    for (size_t i = 0; i < places->split_count; i++) {
        const struct stat *before = &places->splits[i].status;
        struct stat now;
        if (stat(places->splits[i].path, &now) != 0 || now.st_ino != before->st_ino ||
            now.st_dev != before->st_dev || now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != before->st_mtim.tv_nsec)
            return true;
    }
    return false;
}

bool places_allow(const struct places *places, int ruleset)
{
    for (size_t i = 0; i < places->count; i++) {
        if (landlock_allow(ruleset, places->at[i].fd, places->at[i].access) != 0)
            return false;
    }
    return true;
}
