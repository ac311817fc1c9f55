/* SPDX-License-Identifier: MIT */
#include "common/base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FS_PATH_MAX 1024
#define FS_DEPTH_MAX 64

static enum err_code code_of(int errno_value)
{
    /* ENXIO: a socket, or the writing end of a pipe that nobody reads; no file in either case. */
    if (errno_value == ENOENT || errno_value == ENOTDIR || errno_value == ENXIO)
        return ERR_NOT_FOUND;
    if (errno_value == EXDEV || errno_value == ELOOP)
        return ERR_INVALID;
    return ERR_IO;
}

enum err_code fs_open_dir(const char *path, bool create, int *ret_fd, struct err *err)
{
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int fd = open(path, flags);
    if (fd < 0 && errno == ENOENT && create) {
        FD_AUTO int start = open(path[0] == '/' ? "/" : ".", flags);
        char relative[FS_PATH_MAX];
        int length = snprintf(relative, sizeof(relative), "%s", path + (path[0] == '/'));
        if (start < 0 || length < 0 || (size_t)length >= sizeof(relative))
            return err_set_errno(err, ERR_IO, errno, "cannot open directory %s", path);
        for (char *slash = strchr(relative, '/'); slash; slash = strchr(slash + 1, '/')) {
            *slash = 0;
            if (mkdirat(start, relative, 0755) != 0 && errno != EEXIST)
                return err_set_errno(err, ERR_IO, errno, "cannot make directory %s", path);
            *slash = '/';
        }
        if (mkdirat(start, relative, 0755) != 0 && errno != EEXIST)
            return err_set_errno(err, ERR_IO, errno, "cannot make directory %s", path);
        fd = open(path, flags);
    }
    if (fd < 0)
        return err_set_errno(err, code_of(errno), errno, "cannot open directory %s", path);
    *ret_fd = fd;
    return ERR_OK;
}

static struct open_how how_to_open(int flags, mode_t mode, uint64_t resolve)
{
    return (struct open_how){
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = flags & (O_CREAT | O_TMPFILE) ? mode : 0,
        .resolve = resolve,
    };
}

static enum err_code open_at(int dir_fd, const char *path, const struct open_how *how, int *ret_fd,
                             struct err *err)
{
    long fd = -1;
    do {
        fd = syscall(SYS_openat2, dir_fd, path, how, sizeof(*how));
    } while (fd < 0 && (errno == EINTR || errno == EAGAIN)); /* EAGAIN: a rename raced with it */
    if (fd < 0)
        return err_set_errno(err, code_of(errno), errno, "cannot open %s", path);
    *ret_fd = (int)fd;
    return ERR_OK;
}

enum err_code fs_open_beneath(int dir_fd, const char *path, int flags, mode_t mode, int *ret_fd,
                              struct err *err)
{
    struct open_how how = how_to_open(flags, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
    return open_at(dir_fd, path, &how, ret_fd, err);
}

enum err_code fs_open_plain(int dir_fd, const char *path, int flags, mode_t mode, int *ret_fd,
                            struct err *err)
{
    struct open_how how = how_to_open(flags, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    return open_at(dir_fd, path, &how, ret_fd, err);
}

enum err_code fs_make_dirs(int dir_fd, const char *path, mode_t mode, int *ret_fd, struct err *err)
{
    if (!fs_path_is_safe(sv_of(path)))
        return err_set(err, ERR_INVALID, "%s is not a path beneath its root", path);
    FD_AUTO int at = -1;
    char part[FS_PATH_MAX + 1];
    const char *rest = path;
    while (*rest) {
        size_t length = strcspn(rest, "/");
        memcpy(part, rest, length);
        part[length] = 0;
        int from = at < 0 ? dir_fd : at;
        if (mkdirat(from, part, mode) != 0 && errno != EEXIST)
            return err_set_errno(err, code_of(errno), errno, "cannot make directory %s", path);
        int next = -1;
        enum err_code rc =
            fs_open_beneath(from, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &next, err);
        if (rc)
            return rc;
        fd_close(&at);
        at = next;
        rest += length + (rest[length] == '/');
    }
    if (ret_fd) {
        *ret_fd = at;
        at = -1;
    }
    return ERR_OK;
}

enum err_code fs_read(int dir_fd, const char *path, struct buf *ret_bytes, struct err *err)
{
    FD_AUTO int fd = -1;
    enum err_code rc = fs_open_beneath(dir_fd, path, O_RDONLY, 0, &fd, err);
    if (rc)
        return rc;
    char chunk[8192];
    for (;;) {
        ssize_t got = read(fd, chunk, sizeof(chunk));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_errno(err, ERR_IO, errno, "cannot read %s", path);
        if (got == 0)
            return ERR_OK;
        if (!buf_add(ret_bytes, chunk, (size_t)got))
            return err_set(err, ERR_TOO_LARGE, "%s is larger than %zu bytes", path,
                           ret_bytes->limit);
    }
}

static enum err_code write_all(int fd, struct sv bytes, const char *name, struct err *err)
{
    while (bytes.len > 0) {
        ssize_t done = write(fd, bytes.ptr, bytes.len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_set_errno(err, ERR_IO, errno, "cannot write %s", name);
        bytes = (struct sv){bytes.ptr + done, bytes.len - (size_t)done};
    }
    return ERR_OK;
}

enum err_code fs_write_sync(int dir_fd, const char *name, struct sv bytes, mode_t mode,
                            struct err *err)
{
    char beside[NAME_MAX + 1];
    int length = snprintf(beside, sizeof(beside), ".%s.new", name);
    if (length < 0 || (size_t)length >= sizeof(beside) || strchr(name, '/'))
        return err_set(err, ERR_INVALID, "%s is not a file name", name);
    FD_AUTO int fd = -1;
    enum err_code rc =
        fs_open_beneath(dir_fd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode, &fd, err);
    if (rc)
        return rc;
    rc = write_all(fd, bytes, name, err);
    if (rc)
        return rc;
    if (fsync(fd) != 0 || renameat(dir_fd, beside, dir_fd, name) != 0 || fsync(dir_fd) != 0)
        return err_set_errno(err, ERR_IO, errno, "cannot keep %s", name);
    return ERR_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most FS_DEPTH_MAX deep */
static enum err_code add_sizes(int dir_fd, int depth, uint64_t *bytes, struct err *err)
{
    int copy = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir) {
        fd_close(&copy);
        return err_set_errno(err, ERR_IO, errno, "cannot read a directory");
    }
    enum err_code rc = ERR_OK;
    struct dirent *entry = NULL;
    while (rc == ERR_OK && (entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        struct stat status;
        bool is_itself = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (is_itself || fstatat(dir_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (S_ISREG(status.st_mode))
            *bytes += (uint64_t)status.st_size;
        if (!S_ISDIR(status.st_mode) || depth == FS_DEPTH_MAX)
            continue;
        FD_AUTO int child =
            openat(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (child >= 0)
            rc = add_sizes(child, depth + 1, bytes, err);
    }
    (void)closedir(dir);
    return rc;
}

enum err_code fs_tree_size(int dir_fd, const char *path, uint64_t *ret_bytes, struct err *err)
{
    FD_AUTO int fd = -1;
    uint64_t bytes = 0;
    enum err_code rc =
        fs_open_beneath(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd, err);
    if (rc == ERR_NOT_FOUND) {
        err_clear(err);
        rc = ERR_OK;
    } else if (rc == ERR_OK) {
        rc = add_sizes(fd, 0, &bytes, err);
    }
    if (rc == ERR_OK)
        *ret_bytes = bytes;
    return rc;
}

bool fs_path_is_safe(struct sv path)
{
    if (path.len == 0 || path.len > FS_PATH_MAX || memchr(path.ptr, 0, path.len))
        return false;
    size_t start = 0;
    for (size_t i = 0; i <= path.len; i++) {
        if (i < path.len && path.ptr[i] != '/')
            continue;
        struct sv part = {path.ptr + start, i - start};
        if (part.len == 0 || part.len > NAME_MAX || sv_is(part, "..") || sv_is(part, "."))
            return false;
        start = i + 1;
    }
    return true;
}
