/* SPDX-License-Identifier: MIT */
/* rm -rf of what a stranger made: directories of any depth and mode. A directory inside another is
 * moved up to the top of the tree before its own turn comes: so there are never more than two
 * levels to hold open, and neither depth nor width costs descriptors, stack or memory. */

#include "common/base/fault.h"
#include "common/base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct removal {
    int top;
    uint64_t names;    /* given to what was moved up */
    uint64_t progress; /* entries removed or moved in this pass */
    struct err *err;   /* the first failure of this pass */
};

static void note_failure(struct removal *removal, const char *what, const char *name)
{
    (void)!err_set_errno(removal->err, ERR_IO, errno, "cannot %s %s", what, name);
}

#define DIRECTORY (O_DIRECTORY | O_NOFOLLOW)

/* Opens what an O_PATH descriptor stands for. Its mode is changed through it, since a name could be
 * replaced by a symbolic link to a file of somebody else; fchmod does not take such a descriptor.
 */
static int open_place(int place)
{
    char link[40];
    int fd = openat(place, ".", O_RDONLY | DIRECTORY | O_CLOEXEC);
    if (fd >= 0 || errno != EACCES)
        return fd;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
    return chmod(link, S_IRWXU) == 0 ? openat(place, ".", O_RDONLY | DIRECTORY | O_CLOEXEC) : -1;
}

static int open_any_mode(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | DIRECTORY | O_CLOEXEC);
    if (fd >= 0 || errno != EACCES)
        return fd;
    FD_AUTO int place = openat(dir_fd, name, O_PATH | DIRECTORY | O_CLOEXEC);
    return place < 0 ? -1 : open_place(place);
}

/* Entries are removed from it: its owner needs to write and search in it. */
static void make_writable(int fd)
{
    struct stat status;
    if (fstat(fd, &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU)
        (void)fchmod(fd, S_IRWXU); /* without success what follows fails, and says so */
}

/* A directory can be moved by who may write in it: ".." is an entry of it. */
static bool move_up(struct removal *removal, int from, const char *name)
{
    char up[40];
    FD_AUTO int moved = open_any_mode(from, name);
    if (moved < 0)
        return false;
    make_writable(moved);
    for (;;) {
        (void)snprintf(up, sizeof(up), ".removed-%llu", (unsigned long long)removal->names++);
        if (renameat(from, name, removal->top, up) == 0)
            return true;
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
            return false;
    }
}

static DIR *read_again(int fd)
{
    int copy = openat(fd, ".", O_RDONLY | DIRECTORY | O_CLOEXEC); /* closedir() closes it */
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir)
        fd_close(&copy);
    return dir;
}

static const char *next_name(DIR *dir)
{
    const struct dirent *entry = NULL;
    do {
        entry = readdir(dir); /* NOLINT(concurrency-mt-unsafe): own DIR */
    } while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry ? entry->d_name : NULL;
}

/* Files go, directories are moved up. */
static void empty_child(struct removal *removal, int child, const char *child_name)
{
    const char *name = NULL;
    DIR *dir = read_again(child);
    if (!dir) {
        note_failure(removal, "read", child_name);
        return;
    }
    while ((name = next_name(dir)) != NULL) {
        if (unlinkat(child, name, 0) == 0 || errno == ENOENT || move_up(removal, child, name))
            removal->progress++;
        else
            note_failure(removal, "remove", name);
    }
    (void)closedir(dir);
}

static void remove_child(struct removal *removal, const char *name)
{
    FD_AUTO int child = open_any_mode(removal->top, name);
    if (child < 0) {
        if (errno != ENOENT)
            note_failure(removal, "remove", name);
        return;
    }
    make_writable(child);
    empty_child(removal, child, name);
    if (unlinkat(removal->top, name, AT_REMOVEDIR) == 0)
        removal->progress++;
    else if (errno != ENOENT)
        note_failure(removal, "remove", name);
}

/* One pass over the top; what was moved up meanwhile may have its turn in the next. */
static enum err_code pass(struct removal *removal)
{
    const char *name = NULL;
    DIR *dir = read_again(removal->top);
    removal->progress = 0;
    if (!dir)
        return err_set_errno(removal->err, ERR_IO, errno, "cannot read a directory");
    while ((name = next_name(dir)) != NULL) {
        if (unlinkat(removal->top, name, 0) == 0)
            removal->progress++;
        else if (errno != ENOENT)
            remove_child(removal, name);
    }
    (void)closedir(dir);
    return removal->err->code;
}

enum err_code fs_remove_tree(int dir_fd, const char *path, struct err *err)
{
    struct err last = {0};
    struct removal removal = {.err = &last};
    if (FAULT_FAILS("fs.remove"))
        return err_set(err, ERR_IO, "cannot remove %s", path);
    if (unlinkat(dir_fd, path, 0) == 0 || errno == ENOENT)
        return ERR_OK;
    FD_AUTO int place = -1;
    enum err_code rc =
        fs_open_beneath(dir_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, &place, err);
    if (rc)
        return rc;
    FD_AUTO int top = open_place(place);
    if (top < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot open %s", path);
    make_writable(top);
    removal.top = top;
    do {
        err_clear(&last);
        (void)!pass(&removal);
        if (unlinkat(dir_fd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return ERR_OK;
    } while (removal.progress > 0);
    if (last.code)
        return err_set(err, last.code, "%s", last.text);
    return err_set_errno(err, ERR_IO, errno, "cannot remove %s", path);
}
